//! Everything that can go wrong with a queue.

use burst_shm::{Errno, ShmError};

/// Why an operation on a queue failed.
///
/// [`Full`](QueueError::Full), [`Empty`](QueueError::Empty) and
/// [`Timeout`](QueueError::Timeout) are back-pressure: wait or retry.
/// [`Overrun`](QueueError::Overrun) is reported once and then reading goes on.
/// [`Corrupt`](QueueError::Corrupt) and [`PeerDied`](QueueError::PeerDied) are final: drop the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// Not enough free space now.
    #[error("queue full: asked for {wanted} B, {free} B free")]
    Full {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes free.
        free: u64,
    },
    /// Not enough readable items now.
    #[error("queue empty: asked for {wanted} B, {available} B readable")]
    Empty {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes readable.
        available: u64,
    },
    /// More than the queue can ever hold, or more than was claimed.
    #[error("{wanted} B do not fit: the limit is {limit} B")]
    TooLarge {
        /// Bytes asked for.
        wanted: u64,
        /// The capacity, or the size of the claim.
        limit: u64,
    },
    /// A slice that is not a whole number of items.
    #[error("{len} B are not a whole number of items of {quantum} B")]
    NotWhole {
        /// Length of the slice.
        len: u64,
        /// Bytes per item.
        quantum: u64,
    },
    /// The peer's counter is impossible. Final.
    #[error("corrupt counters: read {read}, write {write}, capacity {capacity} B")]
    Corrupt {
        /// The read counter.
        read: u64,
        /// The write counter.
        write: u64,
        /// Bytes in the ring.
        capacity: u64,
    },
    /// The writer of an unsynchronized queue was a whole ring ahead. What was unread is lost; the
    /// next read starts at what is written from now on.
    #[error("overrun: {lost} B were overwritten before they were read")]
    Overrun {
        /// Bytes that this reader will never see.
        lost: u64,
    },
    /// The deadline passed.
    #[error("the deadline passed")]
    Timeout,
    /// The peer is gone, or this end was closed.
    #[error("the peer is gone")]
    PeerDied,
    /// A blocking call on a queue without an event word.
    #[error("the queue has no event word to sleep on")]
    NoEventFlag,
    /// No bit to wait for, or the reserved bit 31.
    #[error("event bits {bits:#x} cannot be waited for")]
    BadBits {
        /// The mask that was passed.
        bits: u32,
    },
    /// The queue that was asked for cannot exist.
    #[error("capacity of {capacity} items of {quantum} B: the ring must have 1..={max} B")]
    BadConfig {
        /// Items asked for.
        capacity: u64,
        /// Bytes per item.
        quantum: u64,
        /// Largest ring.
        max: u64,
    },
    /// The peer's descriptor was refused.
    #[error("descriptor refused: {0}")]
    Descriptor(#[from] DescriptorError),
    /// The memory behind a queue was refused.
    #[error(transparent)]
    Memory(#[from] ShmError),
    /// More queues than the kernel can wait for at once, or none.
    #[error("cannot wait for {queues} queues at once: 1..={max}")]
    TooManyQueues {
        /// Queues passed.
        queues: usize,
        /// Most the kernel takes.
        max: usize,
    },
    /// A system call failed in a way it should not.
    #[error("{call}: {errno}")]
    System {
        /// The call.
        call: &'static str,
        /// Its error number.
        errno: Errno,
    },
}

/// A part of a queue that a grantor describes. The index in the grantor array gives the meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Grantor 0.
    ReadCounter,
    /// Grantor 1.
    WriteCounter,
    /// Grantor 2.
    Ring,
    /// Grantor 3.
    EventWord,
    /// Grantor 4, unsynchronized queues of our own kind only.
    WriteIntent,
}

/// Why a descriptor was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// Fewer than three grantors.
    #[error("{grantors} grantors, need at least 3")]
    TooFewGrantors {
        /// How many there are.
        grantors: usize,
    },
    /// More grantors or descriptors than anybody needs.
    #[error("{count} grantors or descriptors, more than {max}")]
    TooMany {
        /// How many there are.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// The flags do not name the flavour of this end.
    #[error("flags {flags} are not flavour {expected}")]
    Flavour {
        /// What the descriptor says.
        flags: u32,
        /// What this end is.
        expected: u32,
    },
    /// Items of zero bytes, or of another size than the caller expects.
    #[error("quantum {quantum}, expected {expected}")]
    Quantum {
        /// What the descriptor says.
        quantum: u32,
        /// What was expected; zero when anything but zero would do.
        expected: u32,
    },
    /// A grantor names a descriptor that is not there.
    #[error("{part:?}: fd {fd_index} of {fds}")]
    FdIndex {
        /// Which grantor.
        part: Part,
        /// The index.
        fd_index: u32,
        /// Number of descriptors.
        fds: usize,
    },
    /// An offset that is not a multiple of eight.
    #[error("{part:?}: offset {offset} is not a multiple of 8")]
    Misaligned {
        /// Which grantor.
        part: Part,
        /// The offset.
        offset: u32,
    },
    /// An extent too small for its part, or too large for any.
    #[error("{part:?}: extent {extent} is not in {min}..={max}")]
    Extent {
        /// Which grantor.
        part: Part,
        /// The extent.
        extent: u64,
        /// Smallest legal one.
        min: u64,
        /// Largest legal one.
        max: u64,
    },
    /// The ring does not hold a whole number of items.
    #[error("ring of {extent} B is no multiple of the quantum {quantum}")]
    RingNotWhole {
        /// Bytes in the ring.
        extent: u64,
        /// Bytes per item.
        quantum: u32,
    },
    /// A part ends behind the end of its memory.
    #[error("{part:?} ends at {end}, its memory at {size}")]
    OutsideMemory {
        /// Which grantor.
        part: Part,
        /// End of the part.
        end: u64,
        /// Size of the memory.
        size: u64,
    },
    /// Two parts share bytes.
    #[error("{first:?} and {second:?} overlap")]
    Overlap {
        /// One of them.
        first: Part,
        /// The other.
        second: Part,
    },
}
