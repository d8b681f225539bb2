//! What it costs to look at a cache line that another CPU has just written, and how often to look.
//!
//! A look takes the line back from the other end, which may be about to store to it: then it has to fetch the
//! line once more, and the message comes later by that. Between CPUs that share a cache this costs little.
//! Between others a look takes as long as several clock reads, and a waiter that looks all the time makes a
//! round trip a fifth longer. So there it leaves the line alone for a while after each look that found nothing. Which
//! of both it is, every waiter measures at its own looks; nothing is known of a machine beforehand
//! (`docs/decisions/0038-looking-less-often.md`).

use std::cmp::Ordering;

use crate::clock;

/// CPUs are far from each other where a look takes longer than so many clock reads, of which there is one between any
/// two looks anyway. Near ones need no longer pause.
const CLOCKS_PER_FAR_LOOK: u32 = 2;
/// Two CPUs are halves of one core, with the same caches, where this many looks take no longer than a clock read. A line from another
/// core's cache takes longer on every processor that was measured.
const LOOKS_BESIDE_PER_CLOCK: u32 = 2;
/// The other end has a far line for half of what a look takes before the next look (measured: a third more makes no
/// difference, twice as long costs up to three quarters of what it saves).
const GAPS_PER_LOOK: u32 = 2;
/// The most hints to wait between two looks, whatever was measured.
const PAUSES_MAX: u32 = 64;
/// Looks that are timed at first, before anything is decided on them.
const FIRST_LOOKS: usize = 16;
/// After those, one wait of so many has its looks timed: less than one in a hundred, so that no percentile
/// that anybody gives shows what timing costs. A prime number, as a ring holds mostly a power of two of messages: a writer that
/// looked once in 256 of them would do so at the same place of the ring each time, for ever at the one where it has just looked for room.
const TIMED_EVERY: u32 = 251;
/// The estimate begins as the median of the first looks. By this part of itself it follows each later look that took longer or less long:
/// it settles at the median of those, and an interrupt counts no more than any other.
const FOLLOW: u32 = 16;
/// No line takes longer, in nanoseconds: a look that does was interrupted.
const LOOK_MAX_NS: u64 = 1_000;

/// What looks of one waiter take.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Median of the looks that found news, without the clock's own time.
    look_ns: u32,
    /// What the first looks took; in the order of their lengths once all are there.
    first: [u32; FIRST_LOOKS],
    /// How many of them there were so far.
    looks: usize,
    /// Waits until the next whose looks are timed.
    until_timed: u32,
    /// Hints to the processor, that this thread waits, between two looks; none where the CPUs are near, or nobody knows.
    pauses: u32,
    /// Whether the CPUs are halves of one core; not while nobody knows.
    beside: bool,
}

impl Line {
    /// Looks were timed, and took little.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn of_near_cpu() -> Line {
        Line { look_ns: 1, looks: FIRST_LOOKS, until_timed: TIMED_EVERY - 1, ..Line::default() }
    }

    /// Looks were timed, and took next to nothing.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn of_cpu_beside() -> Line {
        Line { beside: true, ..Line::of_near_cpu() }
    }

    /// Looks were timed, and took as long as they do between far CPUs.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn of_far_cpu() -> Line {
        Line { look_ns: 100, pauses: 2, ..Line::of_near_cpu() }
    }

    /// Whether to time the looks of the wait that begins. Counts it.
    #[inline]
    pub(crate) fn is_timed(&mut self) -> bool {
        if self.counts_untimed() {
            return false;
        }
        self.until_timed = if self.looks < FIRST_LOOKS { 0 } else { TIMED_EVERY - 1 };
        true
    }

    /// Counts the wait that begins, unless its looks are to be timed. A wait may be counted twice: it is timed a little sooner then.
    #[inline]
    pub(crate) fn counts_untimed(&mut self) -> bool {
        match self.until_timed.checked_sub(1) {
            Some(left) => {
                self.until_timed = left;
                true
            }
            None => false,
        }
    }

    /// Whether the CPU of the other end is far from this one.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.pauses > 0
    }

    /// Whether the CPU of the other end is the other half of this one's core.
    #[inline]
    pub(crate) fn is_beside(&self) -> bool {
        self.beside
    }

    /// Leaves the line alone for a while after a look that found nothing.
    #[inline]
    pub(crate) fn leave_alone(&self) {
        for _ in 0..self.pauses {
            std::hint::spin_loop();
        }
    }

    /// Looks, and takes in how long that took if it found news.
    #[cold]
    pub(crate) fn timed_look(&mut self, look: impl FnOnce() -> bool) -> bool {
        let before = clock::now_ns();
        let news = look();
        if news {
            let took = clock::now_ns().saturating_sub(before);
            self.learn(took, costs());
        }
        news
    }

    fn learn(&mut self, took_ns: u64, costs: Costs) {
        let Ok(took) = u32::try_from(took_ns.min(LOOK_MAX_NS)) else { return };
        let took = took.saturating_sub(costs.clock_ns);
        if let Some(first) = self.first.get_mut(self.looks) {
            *first = took;
            self.looks += 1;
            if self.looks < FIRST_LOOKS {
                return;
            }
            self.first.sort_unstable();
            self.look_ns = self.first[FIRST_LOOKS / 2];
        } else {
            let step = (self.look_ns / FOLLOW).max(1);
            self.look_ns = match took.cmp(&self.look_ns) {
                Ordering::Greater => self.look_ns + step,
                Ordering::Less => self.look_ns.saturating_sub(step),
                Ordering::Equal => self.look_ns,
            };
        }
        let far = self.look_ns > CLOCKS_PER_FAR_LOOK.saturating_mul(costs.clock_ns);
        let pauses = self.look_ns.div_ceil(GAPS_PER_LOOK.saturating_mul(costs.pause_ns));
        self.pauses = if far { pauses.clamp(1, PAUSES_MAX) } else { 0 };
        self.beside = self.look_ns.saturating_mul(LOOKS_BESIDE_PER_CLOCK) <= costs.clock_ns;
    }
}

/// What waiting itself takes on this machine.
#[derive(Debug, Clone, Copy)]
struct Costs {
    /// Reading the clock, in nanoseconds.
    clock_ns: u32,
    /// A hint that this thread waits, in nanoseconds: some clock cycles on one processor, more than a hundred on another.
    pause_ns: u32,
}

/// The quickest of some measurements of each, made at the first call, in some microseconds.
#[cfg(not(loom))]
fn costs() -> Costs {
    use std::sync::OnceLock;
    const TRIES: u32 = 8;
    const REPEATS: u32 = 16;

    fn quickest(what: impl Fn()) -> u32 {
        let measure = |_| {
            let begin = clock::now_ns();
            (0..REPEATS).for_each(|_| what());
            u32::try_from((clock::now_ns() - begin) / u64::from(REPEATS)).unwrap_or(u32::MAX)
        };
        (0..TRIES).map(measure).min().map_or(u32::MAX, |ns| ns.max(1))
    }
    static COSTS: OnceLock<Costs> = OnceLock::new();
    *COSTS.get_or_init(|| Costs {
        clock_ns: quickest(|| {
            std::hint::black_box(clock::now_ns());
        }),
        pause_ns: quickest(std::hint::spin_loop),
    })
}

/// Nobody polls in a model.
#[cfg(loom)]
fn costs() -> Costs {
    Costs { clock_ns: 1, pause_ns: 1 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { clock_ns: 20, pause_ns: 12 };

    fn learned(looks: impl IntoIterator<Item = u64>) -> Line {
        let mut line = Line::default();
        looks.into_iter().for_each(|took| line.learn(took, COSTS));
        line
    }

    #[test]
    fn a_line_that_takes_longer_than_clock_reads_is_left_alone_between_looks() {
        assert!(!learned([90; 15]).is_far(), "too few to decide on");
        assert_eq!(learned([90; 16]).pauses, 3);
        assert!(!learned([60; 100]).is_far(), "the clock is pause enough");
        assert_eq!(learned([62; 100]).pauses, 2);
        let slow = Costs { clock_ns: 20, pause_ns: 60 };
        let mut line = Line::default();
        (0..16).for_each(|_| line.learn(90, slow));
        assert_eq!(line.pauses, 1, "a single hint that takes longer");
        (0..1_000).for_each(|_| line.learn(1_000_000, COSTS));
        assert!(line.pauses <= PAUSES_MAX, "{line:?}");
    }

    #[test]
    fn interrupted_looks_count_like_any_other_and_a_peer_that_moves_is_noticed() {
        let disturbed = (0..160).map(|n| if n % 4 == 3 { 1_000_000 } else { 50 });
        let mut line = learned(disturbed);
        assert!(!line.is_far(), "{line:?}");
        (0..100).for_each(|_| line.learn(120, COSTS));
        assert!((90..=110).contains(&line.look_ns) && line.is_far(), "{line:?}");
        (0..100).for_each(|_| line.learn(50, COSTS));
        assert!(!line.is_far(), "{line:?}");
    }

    #[test]
    fn a_line_that_takes_next_to_nothing_is_in_the_caches_of_the_own_core() {
        assert!(!learned([5; 15]).is_beside(), "too few to decide on");
        // A look and the clock's own time.
        assert!(learned([20; 16]).is_beside() && learned([30; 100]).is_beside());
        assert!(!learned([31; 100]).is_beside() && !learned([60; 100]).is_beside());
        let mut line = learned([22; 16]);
        (0..100).for_each(|_| line.learn(50, COSTS));
        assert!(!line.is_beside(), "the peer moved to another core: {line:?}");
    }

    #[test]
    fn a_first_look_that_was_interrupted_counts_no_more_than_the_others() {
        let interrupted = [1_000_000, 1_000_000, 20].into_iter().chain([22; 13]);
        assert!(learned(interrupted).is_beside());
        let mut line = learned([20; 16]);
        assert_eq!(line.look_ns, 0, "no longer than the clock itself");
        line.learn(1_000_000, COSTS);
        assert!(line.is_beside() && !line.is_far(), "{line:?}");
    }

    #[test]
    fn every_wait_is_timed_at_first_and_later_one_in_a_few_hundred() {
        let mut line = Line::default();
        for _ in 0..FIRST_LOOKS {
            assert!(line.is_timed());
            line.learn(83, COSTS);
        }
        assert!(line.is_timed());
        let timed = (0..10 * TIMED_EVERY).filter(|_| line.is_timed()).count();
        assert_eq!(timed, 10);
    }

    #[test]
    fn who_sends_a_power_of_two_of_messages_per_ring_looks_at_every_place_of_it() {
        let mut line = learned([20; 16]);
        let per_ring = 64;
        let places: std::collections::BTreeSet<u32> =
            (0..per_ring * TIMED_EVERY).filter(|_| line.is_timed()).map(|n| n % per_ring).collect();
        assert_eq!(places, (0..per_ring).collect());
    }

    #[test]
    fn only_looks_that_find_news_are_learned_from() {
        let mut line = Line::default();
        assert!(!line.timed_look(|| false));
        assert_eq!(line.looks, 0);
        assert!(line.timed_look(|| true));
        assert_eq!(line.looks, 1);
    }

    #[test]
    fn what_waiting_takes_is_measured() {
        let Costs { clock_ns, pause_ns } = costs();
        assert!((1..100_000).contains(&clock_ns) && (1..100_000).contains(&pause_ns));
    }
}
