//! Names of the peers that the engine, the checks and the drawings speak of.

/// One word each way, in cache lines of their own: what all who poll are compared with.
pub const TWO_LINES: &str = "floor-two-lines";
/// One word in one cache line.
pub const LINE_FLOOR: &str = "floor-line";
/// One word and a futex.
pub const FUTEX_FLOOR: &str = "floor-futex";
/// Our queues.
pub const OURS: &str = "ours";
/// Our queues with a burst's packets in them, as two ends of ours send them: where they differ from the one before.
pub const BURST: &str = "ours-whole-burst";
/// The same with packets of HAL 1.2, as an end that knows no more sends them.
pub const BURST_OF_HAL_1_2: &str = "ours-whole-burst-1.2";
/// libfmq's algorithm.
pub const LIBFMQ: &str = "libfmq-algorithm";
/// iceoryx2, request and response.
pub const ICEORYX_REQUEST: &str = "iceoryx2-request-response";
/// iceoryx2, publish and subscribe.
pub const ICEORYX_PUBLISH: &str = "iceoryx2-publish-subscribe";
/// iceoryx2, a frame loaned and read in place.
pub const ICEORYX_FRAME: &str = "frame-iceoryx2";
/// ipc-channel.
pub const IPC_CHANNEL: &str = "ipc-channel";
/// shmem-ipc.
pub const SHMEM_IPC: &str = "shmem-ipc";
/// A frame handed over by our queue.
pub const FRAME: &str = "frame-ours";
/// A frame handed over by a bare word.
pub const FRAME_FLOOR: &str = "frame-plain-copy";
/// A frame that is there already, named in a message.
pub const FRAME_IN_POOL: &str = "frame-in-pool";
