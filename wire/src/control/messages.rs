//! Calls of a client, replies to them, and the callback that asks a client for memories.

use bincode::{Decode, Encode};
use burst_hal::ErrorStatus;

use super::bounded::{List, Text};
use super::model::ModelBody;
use super::requests::{
    CachePlace, FencedRequest, PoolSource, SynchronousRequest, WireBufferRequest,
};
use super::values::{
    DeviceInfo, Executed, PreparedHow, RANK_MAX, WireExecutionInfo, WirePrepareOptions,
};

/// Slots that one `GetMemories` may ask for; more are asked for in turn.
pub const MEMORIES_MAX: usize = 128;
/// Grantors that a queue's descriptor may have: four of libfmq, one of ours, and room.
const GRANTORS_MAX: usize = 8;
/// Operations whose support one reply tells of; each is a byte, and all fit one message.
const OPERATIONS_MAX: usize = 60_000;
/// Devices of one service.
const DEVICES_MAX: usize = 64;
/// Longest explanation of a refusal.
pub const DETAIL_MAX: usize = 1024;

/// Anything a client sends after its greeting.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientMessage {
    /// A call; its reply carries the same number.
    Call {
        /// Chosen by the client.
        id: u64,
        /// What is to be done.
        call: Call,
    },
    /// The answer to [`ServerMessage::GetMemories`], with one descriptor per length.
    Memories {
        /// The number of the question.
        id: u64,
        /// Code of the status; lengths come only with NONE.
        status: i32,
        /// Bytes of each memory, in the order asked for.
        lengths: List<u64, MEMORIES_MAX>,
    },
    /// A message of a later version, which is ignored.
    Unknown {
        /// Its kind.
        kind: u32,
    },
}

/// What a client can ask for. The descriptors that come with each are named in its text.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// Names of the devices; [`Answer::Devices`].
    ListDevices,
    /// All constant facts about a device; [`Answer::Device`].
    DeviceInfo {
        /// Index in the list.
        device: u32,
    },
    /// Whether a device takes work; [`Answer::DeviceStatus`].
    DeviceStatus {
        /// Index in the list.
        device: u32,
    },
    /// Which operations of a model a device runs; [`Answer::Supported`].
    /// Descriptors: the body, then the model's pools.
    SupportedOperations {
        /// Index in the list.
        device: u32,
        /// Where the model lies.
        model: ModelBody,
    },
    /// Makes a model ready; [`Answer::Prepared`]. Descriptors as above.
    Prepare {
        /// Index in the list.
        device: u32,
        /// Where the model lies.
        model: ModelBody,
        /// How.
        options: WirePrepareOptions,
    },
    /// Lets go of a prepared model; bursts on it live on.
    ReleaseModel {
        /// From [`Answer::Prepared`].
        model: u32,
    },
    /// Gives a memory a number of the client's choice, for all its models and bursts.
    /// Descriptor: the memory.
    ShareMemory {
        /// Not in use.
        memory: u32,
        /// Bytes of it that may be used.
        length: u64,
    },
    /// As `ShareMemory`, but the service makes the memory: it writes, the client can only read.
    /// [`Answer::Done`] comes with the descriptor.
    AllocateMemory {
        /// Not in use.
        memory: u32,
        /// Bytes wanted.
        length: u64,
    },
    /// Takes the number back. Slots that have the memory keep it.
    ForgetMemory {
        /// The number.
        memory: u32,
    },
    /// One execution without a burst; [`Answer::Executed`].
    /// Descriptors: one per [`PoolSource::Descriptor`].
    Execute(SynchronousRequest),
    /// Starts a burst; [`Answer::Burst`]. Descriptors: those of the request queue, then those of
    /// the result queue.
    ConfigureBurst {
        /// From [`Answer::Prepared`].
        model: u32,
        /// The queue the client writes.
        request_queue: QueueDescriptor,
        /// The queue the service writes.
        result_queue: QueueDescriptor,
        /// Additions to use, of those both ends know.
        features: u64,
        /// How the service is asked to wait for requests.
        wait: WaitStyle,
        /// Requests that may be under way at once: 1 without [`Features::PIPELINING`], and at most
        /// [`PIPELINE_DEPTH_MAX`] with it.
        ///
        /// [`Features::PIPELINING`]: crate::Features::PIPELINING
        /// [`PIPELINE_DEPTH_MAX`]: crate::PIPELINE_DEPTH_MAX
        depth: u16,
    },
    /// Puts a memory into a slot before its first use.
    /// Descriptor: one where the source is [`PoolSource::Descriptor`].
    PushMemory {
        /// From [`Answer::Burst`].
        burst: u32,
        /// Not in use.
        slot: i32,
        /// Which memory.
        source: PoolSource,
    },
    /// Empties a slot; unknown slots are ignored. The slot may be used again after the reply.
    FreeMemory {
        /// From [`Answer::Burst`].
        burst: u32,
        /// The slot.
        slot: i32,
    },
    /// Ends a burst.
    CloseBurst {
        /// From [`Answer::Burst`].
        burst: u32,
    },
    /// One execution whose result is told later, by [`ServerMessage::Executed`]. Descriptors as those of
    /// `Execute`.
    ExecuteAsynchronously {
        /// Chosen by the client; not that of another one whose result it has not been told.
        execution: u32,
        /// What to execute.
        request: SynchronousRequest,
    },
    /// One execution that waits for fences and gives a fence; [`Answer::Fenced`].
    /// Descriptors: those of `Execute`, then the fences.
    ExecuteFenced(FencedRequest),
    /// Asks an execution to give up. Its result is told like any other. Unknown ones are ignored.
    CancelExecution {
        /// Chosen by the client, or from [`Answer::Fenced`].
        execution: u32,
    },
    /// What came of a fenced execution; [`Answer::ExecutionInfo`].
    ExecutionInfo {
        /// From [`Answer::Fenced`].
        execution: u32,
    },
    /// What came of a fenced execution is no longer wanted. It goes on.
    ReleaseExecution {
        /// From [`Answer::Fenced`].
        execution: u32,
    },
    /// As `Prepare`, and keeps the compilation in files. Descriptors: those of the body, then the
    /// files. [`Answer::Prepared`].
    PrepareCaching {
        /// Index in the list.
        device: u32,
        /// Where the model lies.
        model: ModelBody,
        /// How.
        options: WirePrepareOptions,
        /// Where to keep it.
        cache: CachePlace,
    },
    /// Makes the model ready that was kept in files. Descriptors: the files. [`Answer::Restored`].
    PrepareFromCache {
        /// Index in the list.
        device: u32,
        /// Where it was kept.
        cache: CachePlace,
        /// When it is no longer wanted: nanoseconds on the steady clock.
        deadline: Option<u64>,
    },
    /// Makes a buffer of the driver; [`Answer::Buffer`].
    AllocateBuffer {
        /// Index in the list.
        device: u32,
        /// What it is for.
        request: WireBufferRequest,
    },
    /// Copies the value of a buffer. Descriptor: one where the pool is [`PoolSource::Descriptor`].
    CopyFromBuffer {
        /// From [`Answer::Buffer`].
        token: u32,
        /// Where to.
        to: PoolSource,
    },
    /// Gives a buffer a value. Descriptor: as for `CopyFromBuffer`.
    CopyToBuffer {
        /// From [`Answer::Buffer`].
        token: u32,
        /// Where from.
        from: PoolSource,
        /// Of the value; empty where the buffer has only one shape.
        dimensions: List<u32, RANK_MAX>,
    },
    /// Lets go of a buffer; executions under way keep it.
    ReleaseBuffer {
        /// From [`Answer::Buffer`].
        token: u32,
    },
    /// From now on the spans of all that is done for this client are written to a memory, in the form of
    /// [`trace`](crate::trace). Descriptor: the memory.
    BeginTrace {
        /// Bytes of it that may be used: at least [`TRACE_BYTES_MIN`](crate::trace::TRACE_BYTES_MIN), at most
        /// [`TRACE_BYTES_MAX`](crate::trace::TRACE_BYTES_MAX).
        length: u64,
    },
    /// No more spans are written once this is answered. Where none are, it is done all the same.
    EndTrace,
    /// A call of a later version, which is refused.
    Unknown {
        /// Its number.
        number: u32,
    },
}

impl Call {
    /// Whether it may take long; at most [`super::SLOW_CALLS_MAX`] of these at once.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        matches!(
            self,
            Call::SupportedOperations { .. }
                | Call::Prepare { .. }
                | Call::PrepareCaching { .. }
                | Call::PrepareFromCache { .. }
                | Call::Execute(_)
                | Call::CopyFromBuffer { .. }
                | Call::CopyToBuffer { .. }
        )
    }

    /// How many descriptors must come with it; none with one that is refused whatever it brings.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        match self {
            Call::SupportedOperations { model, .. } | Call::Prepare { model, .. } => {
                model.descriptors()
            }
            Call::ShareMemory { .. } | Call::BeginTrace { .. } => 1,
            Call::PrepareCaching { model, cache, .. } => model.descriptors() + cache.files(),
            Call::PrepareFromCache { cache, .. } => cache.files(),
            Call::Execute(request) | Call::ExecuteAsynchronously { request, .. } => {
                request.descriptors()
            }
            Call::ExecuteFenced(FencedRequest { request, fences, .. }) => {
                request.descriptors() + *fences as usize
            }
            Call::ConfigureBurst { request_queue, result_queue, .. } => {
                request_queue.descriptors as usize + result_queue.descriptors as usize
            }
            Call::PushMemory { source, .. }
            | Call::CopyFromBuffer { to: source, .. }
            | Call::CopyToBuffer { from: source, .. } => source.descriptors(),
            _ => 0,
        }
    }
}

/// How the service is to wait for the requests of a burst. A wish: the service may have its own
/// mind about its processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitStyle {
    /// As the service finds best.
    #[default]
    Service,
    /// Never sleep: lowest latency, one processor busy all the time.
    Spin,
    /// Poll for about as long as a wake-up costs, then sleep.
    Adaptive,
    /// Sleep at once.
    Sleep,
    /// A way of a later version: the service waits as it finds best.
    Other(u32),
}

/// How a queue lies in its memory.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct QueueDescriptor {
    /// Bytes of one datum.
    pub quantum: u32,
    /// Which kind of queue.
    pub flags: u32,
    /// How many descriptors of the message belong to it.
    pub descriptors: u8,
    /// Where its parts are.
    pub grantors: List<QueueGrantor, GRANTORS_MAX>,
}

/// Where one part of a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct QueueGrantor {
    /// Which of the queue's descriptors.
    pub fd_index: u32,
    /// First byte in it.
    pub offset: u32,
    /// Length in bytes.
    pub extent: u64,
}

/// Anything a service sends after its greeting.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerMessage {
    /// The reply to a call.
    Reply(Reply),
    /// The service lacks memories that a request named; [`ClientMessage::Memories`] answers.
    GetMemories {
        /// Chosen by the service.
        id: u64,
        /// Which burst.
        burst: u32,
        /// The slots.
        slots: List<i32, MEMORIES_MAX>,
    },
    /// The service gave up a burst whose queues were corrupt or whose results the client did not take;
    /// nothing more will come from it.
    BurstEnded {
        /// Which.
        burst: u32,
        /// Why, for people.
        detail: Text<DETAIL_MAX>,
    },
    /// What came of an execution that was started asynchronously.
    Executed {
        /// Chosen by the client.
        execution: u32,
        /// Its result.
        executed: Executed,
    },
    /// The service was told to stop, and hangs up now.
    Stopping,
    /// A message of a later version, which is ignored.
    Unknown {
        /// Its kind.
        kind: u32,
    },
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The number of the call.
    pub id: u64,
    /// What came of it.
    pub outcome: Result<Answer, Refusal>,
}

/// Why a call was not done.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Refusal {
    /// Code of the status.
    pub status: i32,
    /// The reason, for people.
    pub detail: Text<DETAIL_MAX>,
    /// The reason, for programs, where the status does not say it.
    pub cause: RefusalCause,
}

/// Why a call was refused, where a program can do something about it that the status does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefusalCause {
    /// The status says it all.
    #[default]
    Stated,
    /// The service knows no such call: its version is older.
    UnknownCall,
    /// The message is longer than any may be, or than itself says.
    TooLong,
    /// A cause of a later version.
    Other(u32),
}

impl Refusal {
    /// A refusal with this status and reason.
    #[must_use]
    pub fn new(status: ErrorStatus, detail: &str) -> Self {
        let cause = RefusalCause::default();
        Refusal { status: status.code(), detail: Text::cut(detail), cause }
    }

    /// The same, with a cause.
    #[must_use]
    pub fn because(self, cause: RefusalCause) -> Self {
        Refusal { cause, ..self }
    }

    /// The status; GENERAL_FAILURE where the code is none, or would mean success.
    #[must_use]
    pub fn status(&self) -> ErrorStatus {
        match ErrorStatus::from_code(self.status) {
            Some(ErrorStatus::None) | None => ErrorStatus::GeneralFailure,
            Some(status) => status,
        }
    }
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It was done; there is nothing more to say.
    Done,
    /// Names of the devices.
    Devices(List<Text<64>, DEVICES_MAX>),
    /// Facts about a device.
    Device(DeviceInfo),
    /// Code of a device's status.
    DeviceStatus(i32),
    /// For each operation whether the device runs it.
    Supported(List<bool, OPERATIONS_MAX>),
    /// The number of a prepared model.
    Prepared {
        /// The number.
        model: u32,
    },
    /// The number of a burst.
    Burst {
        /// The number.
        burst: u32,
    },
    /// The result of an execution.
    Executed(Executed),
    /// A fenced execution was started. Descriptor: its fence, where it has not ended yet.
    Fenced {
        /// Its number.
        execution: u32,
    },
    /// What came of a fenced execution.
    ExecutionInfo(WireExecutionInfo),
    /// A model was prepared from files.
    Restored {
        /// Its number.
        model: u32,
        /// How many inputs it has.
        inputs: u32,
        /// How many outputs it has.
        outputs: u32,
        /// Datums that a request for it takes at most.
        longest_packet: u32,
        /// How it was prepared, as the files say.
        prepared: PreparedHow,
    },
    /// A buffer.
    Buffer {
        /// The number that stands for it in requests of this client.
        token: u32,
    },
    /// An answer of a later version.
    Unknown {
        /// Its kind.
        kind: u32,
    },
}
