//! The beginning of a wait in a busy conversation: nothing but looks and reads of the clock.
//!
//! While the counter is on its way, a CPU goes on with what it expects to come after the look. Where that is reading the message, message
//! and counter come together; where it is another look, one after the other. What it expects it has learned from the waits before, from
//! the branches that they took. So all of it is inlined into the caller, as few instructions as can be, up to the message
//! (`docs/decisions/0058-looks-at-far-lines-in-place.md`).

use std::num::NonZeroU32;

use super::{FAR_POLLS, FREE_BATCHES, WaitCondition, Waiter};
use crate::clock;
use crate::line::Line;

impl Waiter {
    /// In a busy conversation, looks for the answer as long as it takes there, with nothing between two batches of looks but a
    /// read of the clock. Whatever else was done there would make the answer late. `None` elsewhere, and where there is no answer
    /// or an error, which [`wait`](Self::wait) finds again.
    ///
    /// Always inlined: see [`Consumer::wait`](crate::Consumer::wait).
    #[inline(always)]
    pub fn first_looks(&mut self, condition: &mut impl WaitCondition) -> Option<usize> {
        let far = self.line.is_far();
        if !self.is_busy || (far && !condition.looks_first_at_far_lines()) {
            return None;
        }
        if !self.line.counts_untimed() {
            return None;
        }
        let looks = condition.looks_between_clocks();
        let (mut start, mut now) = (0, 0);
        for batch in 0..FREE_BATCHES {
            let answer = match far {
                true => found_afar(condition, &self.line),
                false => found_nearby(condition, looks),
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

/// The line is left alone after each look, and the clock is read seldom.
#[inline(always)]
fn found_afar(condition: &mut impl WaitCondition, line: &Line) -> Option<usize> {
    for _ in 0..FAR_POLLS {
        if condition.has_moved()
            && let Ok(Some(answer)) = condition.poll()
        {
            return Some(answer);
        }
        rest_afar(condition, line);
    }
    None
}

/// What comes after a look in vain. Not inlined: nobody waits for it, and it would stand between the looks.
#[inline(never)]
fn rest_afar(condition: &impl WaitCondition, line: &Line) {
    condition.prefetch();
    line.leave_alone();
}
