//! A small model is run once while it is prepared, so that its first execution is as fast as the next.
//!
//! The first run of code takes a core several times as long: instructions, weights and tables come from memory, and
//! no branch has been seen. For a model of a few microseconds that is half of its time again, for one of a millisecond
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::{
    DataLocation, ErrorStatus, ExecutionResult, HeapMemory, OperationType, Request,
    RequestArgument, RequestPool, TimePoint,
};

use crate::OpError;
use crate::context::Context;
use crate::error::DriverError;
use crate::plan::{Plan, Step};
use crate::prepared::{CpuPreparedModel, no_memory};
use crate::profile::macs;
use crate::stop::Stop;
use crate::threads::Parallelism;

/// Most working memory and weights of a model that is rehearsed, in bytes: about what stays in a core's own cache until
/// the first execution.
const MOST_BYTES: usize = 512 << 10;

/// Most multiplications of one: some tens of microseconds.
const MOST_PRODUCTS: u64 = 2_000_000;

/// Most operations of one.
const MOST_STEPS: usize = 64;

/// How long it may take, whatever it was thought to take. Who prepares the model waits for it.
const LONGEST: Duration = Duration::from_millis(1);

impl CpuPreparedModel {
    /// Runs the model once, with zeros, in working memory that is gone afterwards. What comes of it, an error included,
    /// concerns nobody: it is not an execution. Says whether it ran to its end.
    pub(crate) fn rehearse(&self, stop: Stop<'_>) -> bool {
        self.plan().is_rehearsed() && self.run_with_zeros(stop).is_ok()
    }

    /// What an execution does with its request, but for what others see of one.
    fn run_with_zeros(&self, stop: Stop<'_>) -> Result<(), DriverError> {
        let (plan, threads) = (self.plan(), Parallelism::ALONE);
        let mut payer = self.payer();
        let refused = |failure| no_memory(plan, &OpError::refused(failure));
        let lengths = |operands: &[usize]| -> Result<Vec<usize>, DriverError> {
            let length = |operand: &usize| {
                let operand = &plan.main.operands[*operand];
                operand.info.byte_count(operand.known_dims())
            };
            let lengths = operands.iter().map(length).collect::<Result<_, _>>();
            lengths.map_err(|cause| no_memory(plan, &cause))
        };
        let (inputs, outputs) = (lengths(&plan.main.inputs)?, lengths(&plan.main.outputs)?);
        // All of them in one place: what outputs are written to nobody reads.
        let longest = inputs.iter().chain(&outputs).copied().max().unwrap_or(0);
        payer.grow(longest as u64).map_err(refused)?;
        let zeros = Arc::new(HeapMemory::new(vec![0; longest]));
        let argument = |length: usize| RequestArgument {
            location: DataLocation {
                pool_index: 0,
                offset: 0,
                length: u32::try_from(length).unwrap_or(u32::MAX),
            },
            ..RequestArgument::default()
        };
        let request = Request {
            inputs: inputs.into_iter().map(argument).collect(),
            outputs: outputs.into_iter().map(argument).collect(),
            pools: vec![RequestPool::Memory(zeros)],
        };
        let mut arguments = self.arguments(&request)?;
        let mut context =
            Context::new(plan, self.payer()).map_err(|cause| no_memory(plan, &cause))?;
        let soon = TimePoint::after(LONGEST);
        let deadline = Some(stop.deadline.map_or(soon, |deadline| deadline.min(soon)));
        let outcome = arguments.bring(&mut context, plan, threads).and_then(|()| {
            context.rehearse(plan, Stop { deadline, ..stop })?;
            let result = &mut ExecutionResult::of(ErrorStatus::None);
            arguments.take(&context, plan, threads, result)
        });
        arguments.end(&mut context, plan, false);
        outcome
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
