//! What the ends of a queue have their CPUs do about a message before it is known to be there. Hints: which lines are
//! fetched early, by whom, and in which way a reader looks at the counter. Which is best depends on how long the message is and on
//! the generation of the CPU (`docs/decisions/0050-the-place-of-the-next-message.md`, `0053-a-reader-looks-ahead.md`,
//! `0056-lines-that-are-given-away.md`, `0059-the-fifth-generation-looks-ahead.md`).

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use burst_shm::{LookAhead, Region, Shared};

use crate::sync::AtomicU64;

/// Longest message that both ends fetch early. The lines of a longer one are the writer's alone until they are written.
const MAX_SHARED_BYTES: u64 = 512;
/// Longest message whose place the writer fetches early, and that it gives away: longer ones gained nothing by the first.
const MAX_FETCHED_BYTES: u64 = 2048;

/// Lengths of messages whose place the writer takes from the reader early.
const FETCHED_TO_WRITE: RangeInclusive<u64> = MAX_SHARED_BYTES + 1..=MAX_FETCHED_BYTES;

/// Lengths of messages whose lines the writer takes all at once. Other ones gained nothing by it
/// (`docs/decisions/0055-fewer-instructions-between-two-messages.md`).
const TAKEN_BYTES: RangeInclusive<u64> = 129..=512;

/// Looks between two reads of the clock where a reader looks ahead and does nothing else. Such a look leaves the line where it is
/// unless the writer has asked for it, so there is no need to rest.
const LOOKS_AHEAD: NonZeroU32 = NonZeroU32::new(8).unwrap();

/// How a message comes to its reader together with its counter. Each end keeps its own: it is asked several times for each message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// The ends fetch its place before it is written.
    Early,
    /// The reader fetches it while the counter is on its way, if it can.
    LookAhead(Option<LookAhead>),
    /// As `Early` between near CPUs. Between far ones the writer hands message and counter to the cache that both share, and the
    /// reader finds them there instead of asking the writer's CPU for them.
    GiveAway,
}

/// The CPU is known by its features: nothing that an end measures tells apart the generations that need different ways.
static WAY: LazyLock<Way> = LazyLock::new(|| match burst_shm::is_zen4_or_zen5() {
    true => Way::LookAhead(LookAhead::new()),
    false if burst_shm::gives_lines_away() => Way::GiveAway,
    false => Way::Early,
});

/// Whom a writer writes for, as far as it makes a difference. Only a writer that can give lines away looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// A reader on the other half of this core, whose caches are the same: nothing has to be fetched or given away.
    Beside,
    /// A reader on a far CPU that takes each message before the next one comes.
    FarInConversation,
    /// Any other, or nobody knows.
    Any,
}

impl Audience {
    /// Whether a message is stored in few, wide pieces. Halves of a core share what holds stores until they are in the cache, too.
    #[inline(always)]
    pub(crate) fn wants_wide_stores(self) -> bool {
        self == Audience::Beside
    }
}

impl Way {
    pub(crate) fn of_this_cpu() -> Way {
        *WAY
    }

    /// How a reader is to look at the counter, where its CPU has a better way than loads.
    #[inline(always)]
    pub(crate) fn look_ahead(self) -> Option<LookAhead> {
        match self {
            Way::LookAhead(ahead) => ahead,
            Way::Early | Way::GiveAway => None,
        }
    }

    /// Whether a writer gives lines away where the reader's CPU is far.
    #[inline(always)]
    pub(crate) fn gives_lines_away(self) -> bool {
        matches!(self, Way::GiveAway)
    }

    /// How often a reader that does nothing else looks between two reads of the clock.
    #[inline(always)]
    pub(crate) fn looks_between_clocks(self, otherwise: NonZeroU32) -> NonZeroU32 {
        if self.look_ahead().is_some() { LOOKS_AHEAD } else { otherwise }
    }

    /// Brings the place of a message that the reader waits for into its CPU's caches, if both ends fetch it; as far as it lies
    /// before the end of the ring.
    #[inline]
    pub(crate) fn prefetch_to_read(self, ring: &Region<'_>, position: u64, len: u64) {
        if !matches!(self, Way::LookAhead(_)) && len <= MAX_SHARED_BYTES {
            let (position, len) = before_end(ring, position, len);
            ring.prefetch(position, len);
        }
    }

    /// What the writer's CPU does about a message (its place and length) when it has been published: brings the place of a next one
    /// like it, at `next`, into its caches. Its lines lie in the reader's since that read there, and a store that has to get them
    /// from it makes the next message late. Or gives the message and its counter away.
    #[inline]
    pub(crate) fn after_publishing(
        self,
        ring: &Region<'_>,
        (at, len): (u64, u64),
        next: u64,
        (audience, counter): (Audience, &Shared<AtomicU64>),
    ) {
        if matches!(self, Way::LookAhead(_)) || audience == Audience::Beside {
            return;
        }
        let (next, bytes) = before_end(ring, next, len);
        match audience {
            Audience::FarInConversation if len <= MAX_FETCHED_BYTES => {
                let (at, bytes) = before_end(ring, at, len);
                ring.give_away(at, bytes);
                counter.give_away();
            }
            Audience::Any if len <= MAX_SHARED_BYTES => ring.prefetch(next, bytes),
            _ => {}
        }
        if FETCHED_TO_WRITE.contains(&len) {
            ring.prefetch_to_write(next, bytes);
        }
    }

    /// Asks for the lines of a message that is about to be written, all at once, where that is quicker than one after the other as they are
    /// stored to: they come from the reader's CPU while the bytes are copied. The counter's line is not asked for: a CPU may do
    /// so long before it stores there, and the reader's next look takes it back.
    #[inline(always)]
    pub(crate) fn take_to_write(
        self,
        ring: &Region<'_>,
        position: u64,
        len: u64,
        audience: Audience,
    ) {
        let is_taken = match self {
            Way::LookAhead(_) => TAKEN_BYTES.contains(&len),
            Way::GiveAway => {
                audience == Audience::FarInConversation && FETCHED_TO_WRITE.contains(&len)
            }
            Way::Early => false,
        };
        if is_taken {
            let (at, bytes) = before_end(ring, position, len);
            ring.prefetch_to_write(at, bytes);
        }
    }
}

/// Where that is in the ring, and how much of it lies before the ring's end.
#[inline]
fn before_end(ring: &Region<'_>, position: u64, len: u64) -> (usize, usize) {
    let position = usize::try_from(position).unwrap_or(usize::MAX);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    (position, len.min(ring.len().saturating_sub(position)))
}
