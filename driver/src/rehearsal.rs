//! A small model is run once while it is prepared, so that its first execution is as fast as the next.
//!
//! The first run of code takes a core several times as long: instructions, weights and tables come from memory, and
//! no branch has been seen. For a model of a few microseconds that is half of its time again, for one of a millisecond
//! nothing.

use std::time::Duration;

use burst_hal::{MemoryCharge, OperationType, TimePoint};

use crate::context::Context;
use crate::plan::{Plan, Step};
use crate::profile::macs;
use crate::stop::Stop;

/// Most working memory and weights of a model that is rehearsed, in bytes: about what stays in a core's own cache until
/// the first execution.
const MOST_BYTES: usize = 512 << 10;

/// Most multiplications of one: some tens of microseconds.
const MOST_PRODUCTS: u64 = 2_000_000;

/// Most operations of one.
const MOST_STEPS: usize = 64;

/// How long it may take, whatever it was thought to take. Who prepares the model waits for it.
const LONGEST: Duration = Duration::from_millis(1);

impl Plan {
    /// Runs the model once, with zeros, in working memory that is gone afterwards. What comes of it, an error included,
    /// concerns nobody: it is not an execution. Says whether it ran to its end.
    pub(crate) fn rehearse(&self, stop: Stop<'_>, payer: MemoryCharge) -> bool {
        if !self.is_rehearsed() {
            return false;
        }
        let soon = TimePoint::after(LONGEST);
        let deadline = Some(stop.deadline.map_or(soon, |deadline| deadline.min(soon)));
        let stop = Stop { deadline, ..stop };
        Context::new(self, payer).is_ok_and(|mut context| context.rehearse(self, stop).is_ok())
    }

    /// Whether it is worth it, and what it does is known: the same work with zeros as with any other values, by
    /// operations of our own that change nothing else.
    fn is_rehearsed(&self) -> bool {
        let is_plain = |step: &Step| {
            let is_ours = !matches!(step.op, OperationType::Extension(_));
            is_ours && step.control.is_none() && step.fixed_shapes && step.rules.traits.pure
        };
        let steps = &self.main.steps;
        // Cheap questions first: a large model is asked no other.
        steps.len() <= MOST_STEPS
            && self.arena_bytes() <= MOST_BYTES
            && steps.iter().all(is_plain)
            && self.held_bytes() + self.arena_bytes() <= MOST_BYTES
            && steps
                .iter()
                .filter_map(|step| macs(&self.main, step))
                .try_fold(0_u64, |sum, products| sum.checked_add(products))
                .is_some_and(|products| products <= MOST_PRODUCTS)
    }
}

#[cfg(test)]
#[path = "rehearsal_tests.rs"]
mod tests;
