//! What the ends of a queue have their CPUs do about a message before it is known to be there. Hints: which lines are
//! fetched early, by whom, and in which way a reader looks at the counter. Which is best depends on how long the message is and on
//! the generation of the CPU (`docs/decisions/0050-the-place-of-the-next-message.md`, `0053-a-reader-looks-ahead.md`).

use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;

use burst_shm::{LookAhead, Region, prefetch_word_to_write};

/// Longest message that both ends fetch early. The lines of a longer one are the writer's alone until they are written.
const MAX_SHARED_BYTES: u64 = 512;
/// Longest message whose place the writer fetches early: longer ones gained nothing.
const MAX_FETCHED_BYTES: u64 = 2048;

/// Lengths of messages whose lines the writer takes all at once. Between processes shorter ones gained nothing by it, and
/// ones of 1,024 bytes lost (`docs/decisions/0054-sums-never-leave-their-registers.md`).
const TAKEN_BYTES: RangeInclusive<u64> = 129..=512;

/// How a message comes to its reader together with its counter.
enum Way {
    /// The ends fetch its place before it is written.
    Early,
    /// The reader fetches it while the counter is on its way, if it can.
    LookAhead(Option<LookAhead>),
}

/// The CPU is known by its features: nothing that an end measures tells apart the generations that need different ways.
static WAY: LazyLock<Way> = LazyLock::new(|| match burst_shm::is_zen4() {
    true => Way::LookAhead(LookAhead::new()),
    false => Way::Early,
});

/// How a reader is to look at the counter, where its CPU has a better way than loads.
#[inline]
pub(crate) fn look_ahead() -> Option<LookAhead> {
    match *WAY {
        Way::LookAhead(ahead) => ahead,
        Way::Early => None,
    }
}

/// Brings the place of a message that the reader waits for into its CPU's caches, if both ends fetch it; as far as it lies
/// before the end of the ring.
#[inline]
pub(crate) fn prefetch_to_read(ring: &Region<'_>, position: u64, len: u64) {
    if let Way::Early = *WAY
        && len <= MAX_SHARED_BYTES
    {
        let (position, len) = before_end(ring, position, len);
        ring.prefetch(position, len);
    }
}

/// Brings the place of the writer's next message into its CPU's caches.
#[inline]
pub(crate) fn prefetch_to_write(ring: &Region<'_>, position: u64, len: u64) {
    let Way::Early = *WAY else { return };
    let (at, bytes) = before_end(ring, position, len);
    if len <= MAX_SHARED_BYTES {
        ring.prefetch(at, bytes);
    } else if len <= MAX_FETCHED_BYTES {
        ring.prefetch_to_write(at, bytes);
    }
}

/// Asks for the lines of a message that is about to be written, and of its counter, all at once where the reader looks ahead: they
/// come from the reader's CPU while the bytes are copied, and not one after the other as they are stored to.
#[inline]
pub(crate) fn take_to_write(ring: &Region<'_>, position: u64, len: u64, counter: &AtomicU64) {
    if TAKEN_BYTES.contains(&len) && look_ahead().is_some() {
        let (at, bytes) = before_end(ring, position, len);
        ring.prefetch_to_write(at, bytes);
        prefetch_word_to_write(counter);
    }
}

/// Where that is in the ring, and how much of it lies before the ring's end.
#[inline]
fn before_end(ring: &Region<'_>, position: u64, len: u64) -> (usize, usize) {
    let position = usize::try_from(position).unwrap_or(usize::MAX);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    (position, len.min(ring.len().saturating_sub(position)))
}
