use std::cell::Cell;

use super::*;
use crate::closer::Closed;
use crate::sync::{EventWord, Ordering};

const BUDGET: u64 = 1000;

fn adaptive() -> Waiter {
    Waiter::new(Wait::Adaptive { budget_ns: Some(BUDGET) })
}

fn learned(average_ns: u64, deviation_ns: u64) -> Waiter {
    Waiter { average_ns, deviation_ns, ..adaptive() }
}

/// What the policy says where polling is possible at all.
fn plans(waiters: Vec<(Waiter, Plan)>) {
    for (i, (mut waiter, expected)) in waiters.into_iter().enumerate() {
        let expected = if machine::max_spinners() > 0 { expected } else { Plan::Sleep };
        assert_eq!(waiter.plan(), expected, "case {i}");
    }
}

fn poll(limit_ns: u64) -> Plan {
    Plan::Poll { limit_ns }
}

#[test]
fn the_longer_the_waits_the_shorter_the_polling() {
    let unlike = |average_ns| learned(average_ns, average_ns);
    plans(vec![
        (Waiter::new(Wait::Sleep), Plan::Sleep),
        (Waiter::new(Wait::Spin), poll(u64::MAX)),
        (unlike(0), poll(2 * BUDGET)),
        (unlike(BUDGET), poll(2 * BUDGET)),
        (unlike(BUDGET + 1), poll(BUDGET)),
        (unlike(GIVE_UP_FACTOR * BUDGET), poll(BUDGET)),
        (unlike(GIVE_UP_FACTOR * BUDGET + 1), Plan::Sleep),
    ]);
}

#[test]
fn waits_that_are_alike_are_polled_through_or_napped_through() {
    let margin = BUDGET + TIMER_SLACK_NS;
    let far = 10 * margin;
    plans(vec![
        (learned(BUDGET + 1, 0), poll(2 * BUDGET + 1)),
        (learned(margin + BUDGET - 1, 0), poll(margin + 2 * BUDGET - 1)),
        (learned(margin + BUDGET, 0), Plan::Nap { nap_ns: BUDGET, limit_ns: margin + BUDGET }),
        (
            learned(far, 100),
            Plan::Nap { nap_ns: far - margin - 200, limit_ns: margin + BUDGET + 400 },
        ),
        (learned(far, far / ALIKE + 1), Plan::Sleep),
    ]);
}

#[test]
fn a_steady_service_is_predicted_after_some_requests_and_a_hiccup_is_forgotten() {
    let mut waiter = adaptive();
    for _ in 0..40 {
        waiter.learn(2_000_000);
    }
    let napped = |waiter: &mut Waiter| match waiter.plan() {
        Plan::Nap { nap_ns, limit_ns } => {
            let due = 2_000_000 - nap_ns;
            (TIMER_SLACK_NS..200_000).contains(&due) && limit_ns > due
        }
        _ => machine::max_spinners() == 0,
    };
    assert!(napped(&mut waiter), "{waiter:?}");
    waiter.learn(20_000);
    for _ in 0..40 {
        waiter.learn(2_000_000);
    }
    assert!(napped(&mut waiter), "{waiter:?}");
}

#[test]
fn an_idle_hour_is_forgotten_within_thirty_short_waits() {
    let mut waiter = adaptive();
    for _ in 0..100 {
        waiter.learn(3_600_000_000_000);
    }
    assert!(waiter.average_ns <= LONGEST_SAMPLE * BUDGET);
    for _ in 0..30 {
        waiter.learn(BUDGET / 2);
    }
    plans(vec![(waiter, poll(2 * BUDGET))]);
}

#[test]
fn failed_polls_are_given_up_and_tried_again_later() {
    let mut waiter = adaptive();
    for _ in 0..MAX_FAILED_POLLS {
        waiter.polling_failed();
    }
    if machine::max_spinners() == 0 {
        return; // nobody polls on one CPU
    }
    for wait in 0..POLL_PAUSE {
        assert_eq!(waiter.plan(), Plan::Sleep, "wait {wait}");
    }
    assert_eq!(waiter.plan(), poll(2 * BUDGET));
    waiter.polling_failed();
    assert_eq!(waiter.plan(), Plan::Sleep, "one failure is enough the second time");
}

#[test]
fn a_nap_that_ends_late_is_followed_by_waits_without_naps_and_a_later_one_by_more() {
    if machine::max_spinners() == 0 {
        return; // nobody naps on one CPU
    }
    let mut waiter = learned(2_000_000, 0);
    let naps = |waiter: &mut Waiter| matches!(waiter.plan(), Plan::Nap { .. });
    let without_naps = |waiter: &mut Waiter| {
        waiter.napped(LATE_NS + 1);
        (0..).find(|_| naps(waiter)).unwrap()
    };
    let pauses: Vec<u32> =
        (0..=LATE_DOUBLINGS_MAX + 1).map(|_| without_naps(&mut waiter)).collect();
    let mut expected: Vec<u32> = (0..=LATE_DOUBLINGS_MAX).map(|n| LATE_PAUSE << n).collect();
    expected.push(LATE_PAUSE << LATE_DOUBLINGS_MAX);
    assert_eq!(pauses, expected);
    // A quiet machine is noticed, too.
    (0..NAPS_IN_TIME * LATE_DOUBLINGS_MAX).for_each(|_| waiter.napped(LATE_NS));
    assert_eq!(without_naps(&mut waiter), LATE_PAUSE);
}

/// Gives an answer from a certain poll on.
struct News {
    polls: u32,
    there_at: u32,
}

impl WaitCondition for News {
    fn has_moved(&self) -> bool {
        false
    }

    fn poll(&mut self) -> Result<Option<usize>, QueueError> {
        self.polls += 1;
        Ok((self.polls >= self.there_at).then_some(1))
    }
}

/// Counts the sleeps, each of which ends with an answer at once, and how often this end is asked whether it is closed.
#[derive(Default)]
struct Bed {
    sleeps: Cell<u32>,
    asked: Cell<u32>,
}

impl SleepOn for Bed {
    fn is_closed(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        false
    }

    fn look_for_close(&self, _: &mut impl WaitCondition) -> Result<Option<usize>, QueueError> {
        Ok(None)
    }

    fn deadline(&self) -> Deadline {
        Deadline::never()
    }

    fn sleep(&self, _: &mut impl WaitCondition, _: Deadline) -> Result<Option<usize>, QueueError> {
        self.sleeps.set(self.sleeps.get() + 1);
        Ok(Some(2))
    }
}

#[test]
fn a_yield_that_brings_the_answer_saves_the_sleep() {
    let (mut waiter, bed) = (Waiter::new(Wait::Sleep), Bed::default());
    let mut news = News { polls: 0, there_at: 2 };
    assert_eq!(waiter.wait(&mut news, &bed).unwrap(), 1);
    assert_eq!((news.polls, bed.sleeps.get()), (2, 0));
}

#[test]
fn for_a_peer_on_another_cpu_the_end_sleeps_and_yields_but_rarely() {
    let (mut waiter, bed) = (Waiter::new(Wait::Sleep), Bed::default());
    let mut polls = || {
        let mut news = News { polls: 0, there_at: u32::MAX };
        assert_eq!(waiter.wait(&mut news, &bed).unwrap(), 2);
        news.polls
    };
    assert_eq!(polls(), 2, "the first wait yields");
    for wait in 0..16 {
        assert_eq!(polls(), 1, "wait {wait}");
    }
    // A yield that took long, as on a busy machine, is followed by a longer pause.
    assert!((16..=1024).any(|_| polls() == 2), "never tried again");
    let waits = bed.sleeps.get();
    assert!((18..=1026).contains(&waits), "{waits} sleeps");
}

/// Its other end's counter moves with a certain look.
struct Soon {
    looks: Cell<u32>,
    there_at: u32,
}

impl Soon {
    fn after(looks: u32) -> Soon {
        Soon { looks: Cell::new(0), there_at: looks }
    }
}

impl WaitCondition for Soon {
    fn has_moved(&self) -> bool {
        self.looks.set(self.looks.get() + 1);
        self.looks.get() >= self.there_at
    }

    fn poll(&mut self) -> Result<Option<usize>, QueueError> {
        Ok((self.looks.get() >= self.there_at).then_some(1))
    }
}

#[test]
fn in_a_busy_conversation_an_end_looks_and_does_nothing_else() {
    if machine::max_spinners() == 0 {
        return; // nobody polls on one CPU
    }
    let (mut waiter, bed) = (Waiter::new(Wait::Spin), Bed::default());
    let mut wait = |looks| {
        let before = bed.asked.get();
        // It sleeps where other threads of this process poll, too.
        assert!(matches!(waiter.wait(&mut Soon::after(looks), &bed), Ok(1 | 2)));
        bed.asked.get() - before
    };
    // What looks take is measured at first.
    let begun = (0..1_000).map(|_| wait(3)).filter(|asked| *asked > 0).count();
    assert!(begun < 1_000, "it always asks");
    let quiet = (0..1_000).map(|_| wait(3)).filter(|asked| *asked == 0).count();
    assert!(quiet > 900, "{quiet} of 1,000");
    assert!(wait(1_000) > 0, "a wait that takes longer");
    assert!(wait(3) > 0, "after one that took longer");
    assert_eq!((wait(3), wait(3)), (0, 0));
}

/// 2^32 batches are half a minute of polling.
#[test]
fn batches_are_counted_beyond_32_bits() {
    let mut batches = Batches(u64::from(u32::MAX) - 100);
    let numbers: Vec<u64> = (0..200).map(|_| batches.next()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert!(!numbers.contains(&FREE_BATCHES), "a second spin slot would be taken");
    let asked = numbers.iter().filter(|batch| Batches::asks_for_close(**batch)).count();
    assert!((3..=4).contains(&asked), "{asked}");
}

/// A peer that changes the word whenever this end is about to sleep on it.
struct Flips<'a> {
    word: &'a EventWord,
    mask: u32,
    polls: u32,
}

impl WaitCondition for Flips<'_> {
    fn has_moved(&self) -> bool {
        false
    }

    fn poll(&mut self) -> Result<Option<usize>, QueueError> {
        self.word.fetch_xor(self.mask, Ordering::SeqCst);
        self.polls += 1;
        assert!(self.polls < 10_000, "it goes on for ever");
        Ok(None)
    }
}

/// How often the condition is polled in one sleep until this deadline; the peer flips `mask`, this end
/// sleeps on bit 0.
fn polls_of_a_sleep(mask: u32, deadline: Deadline) -> u32 {
    let (word, closed) = (EventWord::new(0), Closed::new());
    let sleeper = Sleeper { event: &word, bits: NonZeroU32::MIN, closed: &closed, deadline };
    let mut flips = Flips { word: &word, mask, polls: 0 };
    assert_eq!(sleeper.sleep(&mut flips, deadline), Ok(None));
    flips.polls
}

#[test]
fn a_peer_that_flips_bits_does_not_stretch_a_deadline() {
    for mask in [1, 2, 3, u32::MAX >> 1] {
        let polls = polls_of_a_sleep(mask, Deadline::at_ns(1));
        assert!(polls <= 3, "mask {mask:#x}: {polls} polls after the deadline");
    }
}

/// Whatever bits it flips, this end's own ones too.
#[test]
fn a_peer_that_flips_bits_is_answered_with_naps() {
    for mask in [1, 2, 3] {
        let most = 20;
        let polls = polls_of_a_sleep(mask, Deadline::after(std::time::Duration::from_millis(most)));
        // Two polls a round, a round for each millisecond once there were too many.
        let limit = 2 * (crate::rounds::IDLE_ROUNDS_MAX + u32::try_from(most).unwrap() + 3);
        assert!(polls <= limit, "mask {mask:#x}: {polls} polls");
    }
}
