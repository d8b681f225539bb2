//! A small model is run a few times while it is prepared, so that its first execution is as fast as the next.
//!
//! The first run of code takes a core several times as long: instructions, weights and tables come from memory, and
//! no branch has been seen. For a model of a few microseconds that is half of its time again, for one of a millisecond
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::{
    Caller, DataLocation, ErrorStatus, ExecutionOptions, ExecutionPreference, ExecutionResult,
    HeapMemory, MemoryCharge, OperationType, Request, RequestArgument, RequestPool, TimePoint,
};

use crate::context::Context;
use crate::log;
use crate::plan::{Plan, Planned, Step};
use crate::prepared::{CpuPreparedModel, Wanted};
use crate::profile::macs;
use crate::stop::Stop;

/// Most working memory and weights of a model that is rehearsed, in bytes: about what stays in a core's own cache until
/// the first execution.
const MOST_BYTES: usize = 512 << 10;

/// Most multiplications of one: some tens of microseconds.
const MOST_PRODUCTS: u64 = 2_000_000;

/// Most operations of one.
const MOST_STEPS: usize = 64;

/// How often it is run: the second time the code is there, but its branches are hardly known yet.
const RUNS: usize = 3;

/// When it is given up, whatever it was thought to take: at the next look at the deadline, as executions are. Who prepares
/// the model waits for it.
const LONGEST: Duration = Duration::from_millis(1);

impl CpuPreparedModel {
    /// Runs the model [`RUNS`] times, with zeros, in working memory that is gone afterwards. What comes of it, an error included,
    /// concerns nobody: no span tells of it, and what it took says nothing of executions. Says whether it ran to its end.
    pub(crate) fn rehearse(&self, stop: Stop<'_>) -> bool {
        let is_wanted = self.preference != ExecutionPreference::LowPower;
        let ended = is_wanted && self.plan().is_rehearsed() && self.run_with_zeros(stop).is_some();
        self.pace.forget();
        ended
    }

    /// By the code that executes: another copy of it would leave that one as cold as it was. `None` where it came to no end.
    fn run_with_zeros(&self, stop: Stop<'_>) -> Option<()> {
        let (request, _charge) = self.request_of_zeros()?;
        let mut context = Some(Context::new(self.plan(), self.payer()).ok()?);
        let soon = TimePoint::after(LONGEST);
        let deadline = Some(stop.deadline.map_or(soon, |deadline| deadline.min(soon)));
        let options =
            ExecutionOptions { measure_timing: true, deadline, ..ExecutionOptions::default() };
        let caller = stop.caller.map(Caller::untraced);
        let wanted = Wanted { options: &options, caller: caller.as_ref(), makes_room: false };
        log::rehearsing(RUNS);
        (0..RUNS).try_for_each(|_| {
            let result = &mut ExecutionResult::of(ErrorStatus::None);
            self.execute(&mut context, &request, wanted, result);
            // As an execution does: without it the first one takes some 0.3 us longer, where nobody listens either.
            log::executed(result.status);
            (result.status == ErrorStatus::None).then_some(())
        })
    }

    /// A request whose inputs lie in one place and whose outputs behind it, and what that takes; `None` where there is
    /// no room for it.
    fn request_of_zeros(&self) -> Option<(Request, MemoryCharge)> {
        let graph = &self.plan().main;
        let length = |operand: &usize| {
            let Planned { info, dims, .. } = &graph.operands[*operand];
            u32::try_from(info.byte_count(dims.as_deref()?).ok()?).ok()
        };
        let argument = |offset, length| {
            let location = DataLocation { pool_index: 0, offset, length };
            RequestArgument { location, ..RequestArgument::default() }
        };
        let inputs: Vec<u32> = graph.inputs.iter().map(length).collect::<Option<_>>()?;
        let mut end = inputs.iter().copied().max().unwrap_or(0);
        let inputs = inputs.into_iter().map(|length| argument(0, length)).collect();
        let outputs = graph.outputs.iter().map(|output| {
            let (begin, length) = (end, length(output)?);
            end = begin.checked_add(length)?;
            Some(argument(begin, length))
        });
        let outputs = outputs.collect::<Option<_>>()?;
        let bytes = usize::try_from(end).ok()?;
        if bytes > MOST_BYTES {
            return None;
        }
        let mut charge = self.payer();
        charge.grow(end.into()).ok()?;
        let zeros = HeapMemory::new(vec![0; bytes]);
        let pools = vec![RequestPool::Memory(Arc::new(zeros))];
        Some((Request { inputs, outputs, pools }, charge))
    }
}

impl Plan {
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
