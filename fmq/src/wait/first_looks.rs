//! The beginning of a wait in a busy conversation: nothing but looks and reads of the clock.
//!
//! While the counter is on its way, a CPU goes on with what it expects to come after the look. Where that is reading the message, message
//! and counter come together; where it is another look, one after the other. What it expects it has learned from the waits before, from
//! the branches that they took. So what stands between a look that finds news and the message is inlined into the caller, as few instructions as
//! can be (`docs/decisions/0058-looks-at-far-lines-in-place.md`).

use std::num::NonZeroU32;

use super::{FAR_POLLS, FREE_BATCHES, WaitCondition, Waiter};
use crate::clock;
use crate::line::Line;

/// Polls in one batch where the other end is on the other half of this core. A read of the clock takes as long as several of them
/// (measured: with 6 a message comes later, and with 10 to 64 alike).
const BESIDE_POLLS: u32 = 16;

impl Waiter {
    /// In a busy conversation, looks for the answer as long as it takes there, with nothing between two batches of looks but a
    /// read of the clock. Whatever else was done there would make the answer late. `None` elsewhere, and where there is no answer
    /// or an error, which [`wait`](Self::wait) finds again.
    ///
    /// Always inlined: see [`Consumer::wait`](crate::Consumer::wait).
    #[inline(always)]
    pub fn first_looks(&mut self, condition: &mut impl WaitCondition) -> Option<usize> {
        let (far, singly) = (self.line.is_far(), condition.looks_singly());
        if !self.is_busy || (far && !singly) {
            return None;
        }
        let beside = singly && self.line.is_beside();
        if !self.line.counts_untimed() {
            return None;
        }
        let looks = condition.looks_between_clocks();
        let (mut start, mut now) = (0, 0);
        for batch in 0..FREE_BATCHES {
            let answer = if far {
                found_singly(condition, FAR_POLLS, |condition| rest_afar(condition, &self.line))
            } else if beside {
                // What this half of the core begins in vain, the other half waits for: so it begins nothing before it knows what it
                // has looked at. Nothing has to be fetched: the caches are the same.
                found_singly(condition, BESIDE_POLLS, |_| burst_shm::finish_loads())
            } else {
                found_nearby(condition, looks)
            };
            if answer.is_some() {
                self.learn(now - start);
                return answer;
            }
            now = clock::now_ns();
            if batch == 0 {
                start = now;
            }
        }
        self.is_busy = false;
        None
    }
}

#[inline(always)]
fn found_nearby(condition: &mut impl WaitCondition, looks: NonZeroU32) -> Option<usize> {
    if condition.moves_within(looks) { condition.poll().ok().flatten() } else { None }
}

/// By single looks, with a rest after each one in vain.
#[inline(always)]
fn found_singly<C: WaitCondition>(
    condition: &mut C,
    looks: u32,
    rest: impl Fn(&C),
) -> Option<usize> {
    for _ in 0..looks {
        if condition.has_moved()
            && let Ok(Some(answer)) = condition.poll()
        {
            return Some(answer);
        }
        rest(condition);
    }
    None
}

/// Between far CPUs the line is left alone after a look in vain. Not inlined: nobody waits for it, and it would stand between the looks.
#[inline(never)]
fn rest_afar(condition: &impl WaitCondition, line: &Line) {
    condition.prefetch();
    line.leave_alone();
}
