//! A fast message queue in shared memory: two processes exchange small items in a fraction of a
//! microsecond, without a system call while both are busy.
//!
//! It follows Android's FMQ: descriptors, counters, event word and notification bits are those of
//! libfmq, so that a process which uses libfmq can sit at the other end, either way round.
//!
//! # Two flavours
//!
//! | | [`Producer`], [`Consumer`] | [`UnsyncProducer`], [`UnsyncConsumer`] |
//! |---|---|---|
//! | readers | one | any number |
//! | a full queue | back-pressure: the writer waits, or gets [`Full`](QueueError::Full) | the oldest items are overwritten |
//! | a slow reader | slows the writer down | gets [`Overrun`](QueueError::Overrun) once |
//! | blocking calls | yes, with an absolute [`Deadline`] | none |
//!
//! # The memory
//!
//! One memfd holds it all. Four grantors (five for the unsynchronized flavour) say where each part
//! lies; the end that attaches checks every number before it uses it.
//!
//! ```text
//!         0          128         256         384             512
//!         |           |           |           |               |
//!         +-----------+-----------+-----------+---------------+---------------------------+
//!         | read      | write     | event     | intent        | ring                      |
//!         | counter   | counter   | word      | (unsync only) | capacity x quantum bytes  |
//!         +-----------+-----------+-----------+---------------+---------------------------+
//! grantor   0           1           3           4               2
//! written   reader      writer      both        writer          writer
//! by
//!
//!         ring, of 6 items:   read = 14 items           write = 18 items
//!                             14 mod 6 = 2              18 mod 6 = 0
//!
//!         |  free  |  free  | item14 | item15 | item16 | item17 |
//!         0        1        2        3        4        5        6
//!       write                read
//! ```
//!
//! Counters count bytes since the beginning and never wrap; a position in the ring is the counter
//! modulo the capacity. Empty is `read == write`, full is `write - read == capacity`: all of the
//! ring is used. Each part has cache lines of its own. libfmq packs them side by side (0, 8 and 16);
//! the grantors make both layouts legal.
//!
//! # A queue between two threads
//!
//! ```
//! use std::time::Duration;
//! use fmq::{Deadline, QueueConfig, pair};
//!
//! // Eight items of 16 bytes.
//! let (mut producer, mut consumer) = pair(&QueueConfig::new(16, 8))?;
//!
//! let writer = std::thread::spawn(move || -> Result<(), fmq::QueueError> {
//!     // Copied in, published, and the reader woken if it sleeps.
//!     producer.write_blocking(b"sixteen letters!", Deadline::never())?;
//!     // The same without a copy of one's own: claim, fill, publish and wake.
//!     let mut claim = producer.claim(2)?;
//!     claim.copy_in(0, &[1; 16])?;
//!     claim.copy_in(16, &[2; 16])?;
//!     claim.commit(2)
//! });
//!
//! let deadline = Deadline::after(Duration::from_secs(10));
//! assert!(consumer.wait(3, deadline)? >= 3);
//! let mut item = [0; 16];
//! consumer.read(&mut item)?;
//! assert_eq!(&item, b"sixteen letters!");
//! let claim = consumer.peek(2)?;
//! claim.copy_out(16, &mut item)?;
//! assert_eq!(item, [2; 16]);
//! claim.commit(2)?;
//! # writer.join().unwrap()?;
//! # Ok::<(), fmq::QueueError>(())
//! ```
//!
//! # Between two processes
//!
//! One side makes the queue and sends [`Producer::descriptor`] or [`Consumer::descriptor`], plain
//! numbers and file descriptors, over a Unix socket; the other side attaches. Counters are never
//! reset, so the order in which the two come does not matter. (libfmq resets them by default: with
//! such a peer neither end may write before both have attached.) `examples/two_processes.rs` is a whole
//! program; run it with `cargo run --release -p fmq --example two_processes`.
//!
//! # Which wait to choose
//!
//! | [`Wait`] | latency | CPU | for |
//! |---|---|---|---|
//! | [`Adaptive`](Wait::Adaptive) (default) | that of spinning while answers come quickly or at even times; one sleep otherwise | little more than sleeping | nearly everybody |
//! | [`Spin`](Wait::Spin) | lowest, about a cache line's trip | a whole CPU per waiting end | one pair of pinned processes with a CPU each |
//! | [`Sleep`](Wait::Sleep) | two wake-ups per round trip, 30 to 60 µs; 3 to 5 µs where both ends share a CPU | least | rare messages; more processes than CPUs |
//!
//! Adaptive measures once per process what it costs that both sides sleep (call [`warm_up`] at start
//! to have it done before the first message), polls for that long, then sleeps. It keeps the average of its waits: where they
//! are longer than that but alike, it naps until shortly before the answer is due and polls from there,
//! unless naps end late, as they do on a busy machine;
//! where they are far longer and not alike, it sleeps at once; and after failed polls (a peer on the
//! same CPU) it sleeps at once for a while. Before a sleep, an end yields its CPU once where it has
//! learned that this helps: a peer on the same CPU then answers without either end being woken.
//! Whatever the choice, no end spins on a machine with one CPU, and at most as many threads of a
//! process spin as it has CPUs, less one. So the peer may sleep at any time: whatever gives it
//! something to do wakes it, which is a system call only while it sleeps. Who does several such
//! things at once uses the quiet variants ([`write_quiet`](Producer::write_quiet)) and then
//! [`wake`](Producer::wake), once.
//!
//! * Release late: [`Consumer::read_deferred`], answer, then [`Consumer::release`]. The writer's
//!   cache line is touched once per message, after the answer is on its way.
//! * One thread for several queues: [`WaitSet`]. An event loop: [`Consumer::readiness`].
//! * Items with a type: [`TypedProducer`], [`TypedConsumer`].
//! * Powers of two are not needed: no operation divides.
//! * A short ring is a quick one. It is walked from end to end, so all of it passes through the
//!   first-level caches of both CPUs: room for what may be under way, up to a page, stays there; with
//!   24 KiB a round trip of half a kibibyte takes a quarter more
//!   (`docs/decisions/0010-queues-of-a-page.md`).
//!
//! # Ending
//!
//! Nothing in a queue says that the peer is alive. The thread that watches the peer's process (by a
//! socket's hang-up or a pidfd) calls [`Closer::close`], and every blocking call of that end returns
//! [`QueueError::PeerDied`] at once, asleep or polling. The CLOSED bit of the event word tells a peer
//! that uses this library the same. Items written before the close are still handed out.
//!
//! # Threat model
//!
//! The peer is another process that can write any value into any shared byte at any instant, close
//! or truncate what it sent, and die. It can stop the conversation, and it can send rubbish. It
//! cannot make this process panic, hang past a deadline, fault, or touch a byte outside the queue:
//!
//! * Descriptors are checked before anything is mapped: counts, alignment, extents, parts inside
//!   their memory, parts disjoint (also through two descriptors of one memory), a ring of whole
//!   items. Memory that can shrink is sealed by us or refused, so there is no `SIGBUS`.
//! * Our own counter lives in private memory; the shared copy is written and never read back. The
//!   peer's counter is loaded once per poll, checked, and used from the local copy. An impossible
//!   value poisons this end: every later call gives [`QueueError::Corrupt`].
//! * Payload leaves the ring as a copy. Validate the copy, not the ring.
//! * The event word is a hint. A peer that flips its bits causes spurious wake-ups, a bounded number of
//!   them before this end naps for a millisecond instead; deadlines are looked at after each. In a
//!   [`WaitSet`] only the queue of that peer is looked at so seldom. The thread that closes an end wakes the
//!   sleeping one again and again until that says it is awake, so a peer that clears the bits cannot
//!   make the sleeper miss the close.
//!
//! What remains: a peer that holds the queue's memory can keep it allocated, and a peer that never
//! answers makes every call run into its deadline. Readers of an unsynchronized queue can disturb
//! each other unless it was made by [`UnsyncProducer::create_for_readers_only`]. Items from a plain
//! libfmq writer can be torn in a small window that libfmq's protocol leaves open
//! ([`UnsyncConsumer::detects_torn_reads`] is false then): the copy is checked against the write
//! counter, which such a writer moves only after it has overwritten the bytes.
//!
//! # How it is shown
//!
//! The protocol (`ring`, `unsync_ring`, `event_flag`, `wait`, `closer`) knows neither mappings nor
//! system calls; loom runs it under every interleaving (`tests/loom/*.rs`), with the weakened
//! variants in `tests/README.md` each seen to fail. `README.md` maps libfmq's own tests to ours.

#![forbid(unsafe_code)]

pub mod clock;
#[doc(hidden)]
pub mod closer;
pub mod error;
pub mod event_flag;
#[doc(hidden)]
pub mod futex;
#[doc(hidden)]
pub mod geometry;
mod line;
#[doc(hidden)]
pub mod machine;
#[doc(hidden)]
pub mod ring;
mod rounds;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod unsync_ring;
#[doc(hidden)]
pub mod wait;

#[cfg(not(loom))]
mod ahead;
#[cfg(not(loom))]
mod consumer;
#[cfg(not(loom))]
mod descriptor;
#[cfg(not(loom))]
mod gauge;
#[cfg(not(loom))]
mod producer;
#[cfg(not(loom))]
mod queue_memory;
#[cfg(not(loom))]
mod readiness;
#[cfg(not(loom))]
mod span;
#[cfg(not(loom))]
mod typed;
#[cfg(not(loom))]
mod unsync;
#[cfg(not(loom))]
mod wait_set;
#[cfg(not(loom))]
mod wake_up;
mod yield_policy;

/// What of `burst_shm` stands in this crate's interface: memory for [`Producer::create_in`], words for
/// [`EventFlag`], and the causes inside of [`QueueError`].
pub use burst_shm::{Errno, Mapping, Memory, Refusal, Shared, ShmError};
pub use clock::Deadline;
pub use error::{DescriptorError, Part, QueueError};
pub use geometry::MAX_RING_BYTES;
pub use machine::warm_up;
pub use wait::Wait;

#[cfg(not(loom))]
pub use self::{
    closer::Closer,
    consumer::{Consumer, ReadClaim},
    descriptor::{Descriptor, Grantor, MAX_PARTS, SYNCHRONIZED, UNSYNCHRONIZED},
    event_flag::{EventError, EventFlag},
    gauge::Gauge,
    producer::{Claim, Producer},
    queue_memory::QueueConfig,
    readiness::Readiness,
    typed::{Item, Typed, TypedConsumer, TypedProducer, TypedUnsyncConsumer, TypedUnsyncProducer},
    unsync::{UnsyncClaim, UnsyncConsumer, UnsyncProducer, UnsyncReadClaim},
    wait_set::{MAX_QUEUES, Ready, WaitSet},
};

/// Both ends of a new queue, for two threads of one process.
///
/// # Errors
/// As [`Producer::create`].
#[cfg(not(loom))]
pub fn pair(config: &QueueConfig) -> Result<(Producer, Consumer), QueueError> {
    let producer = Producer::create(config)?;
    let consumer = Consumer::attach(producer.descriptor()?)?;
    Ok((producer, consumer))
}
