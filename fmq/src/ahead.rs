//! What the ends of a queue have their CPUs do about a message before it is known to be there. Hints: which lines are
//! fetched early, by whom, and in which way a reader looks at the counter. Which is best depends on how long the message is and on
//! the generation of the CPU (`docs/decisions/0050-the-place-of-the-next-message.md`, `0053-a-reader-looks-ahead.md`).

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use burst_shm::{LookAhead, Region};

/// Longest message that both ends fetch early. The lines of a longer one are the writer's alone until they are written.
const MAX_SHARED_BYTES: u64 = 512;
/// Longest message whose place the writer fetches early: longer ones gained nothing.
const MAX_FETCHED_BYTES: u64 = 2048;

/// Lengths of messages whose lines the writer takes all at once. Other ones gained nothing by it
/// (`docs/decisions/0055-fewer-instructions-between-two-messages.md`).
const TAKEN_BYTES: RangeInclusive<u64> = 129..=512;

/// Looks between two reads of the clock where a reader looks ahead and does nothing else. Such a look leaves the line where it is
/// unless the writer has asked for it, so there is no need to rest.
const LOOKS_AHEAD: NonZeroU32 = NonZeroU32::new(8).unwrap();

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

/// How often a reader that does nothing else looks between two reads of the clock.
#[inline]
pub(crate) fn looks_between_clocks(otherwise: NonZeroU32) -> NonZeroU32 {
    if look_ahead().is_some() { LOOKS_AHEAD } else { otherwise }
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

/// Asks for the lines of a message that is about to be written, all at once where the reader looks ahead: they come from the reader's
/// CPU while the bytes are copied, and not one after the other as they are stored to. The counter's line is not asked for: a CPU may do
/// so long before it stores there, and the reader's next look takes it back.
#[inline(always)]
pub(crate) fn take_to_write(ring: &Region<'_>, position: u64, len: u64) {
    if TAKEN_BYTES.contains(&len) && look_ahead().is_some() {
        let (at, bytes) = before_end(ring, position, len);
        ring.prefetch_to_write(at, bytes);
    }
}

/// Where that is in the ring, and how much of it lies before the ring's end.
#[inline]
fn before_end(ring: &Region<'_>, position: u64, len: u64) -> (usize, usize) {
    let position = usize::try_from(position).unwrap_or(usize::MAX);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    (position, len.min(ring.len().saturating_sub(position)))
}
