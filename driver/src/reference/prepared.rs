//! A model of the reference device, and requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::validate::{Direction, RequestRules, UnspecifiedOutputs};
use burst_hal::{
    Caller, ErrorStatus, ExecutionOptions, ExecutionResult, MemoryCharge, Model, OutputShape, Pace,
    PrepareOptions, PreparedModel, Request,
};

use super::graphs::{Graphs, Held};
use super::interpreter::{Interpreter, Shared};
use crate::arguments::{check_output, copy_out, memory};
use crate::entry::{Entry, loop_timeout};
use crate::error::DriverError;
use crate::op::{Budget, Stop};
use crate::plan::check_declared;
use crate::threads::Parallelism;

/// A model that the reference device can execute.
#[derive(Debug)]
pub(super) struct ReferenceModel {
    graphs: Graphs,
    rules: RequestRules,
    options: PrepareOptions,
    pace: Pace,
    /// What the rules take.
    _charge: MemoryCharge,
}

impl ReferenceModel {
    pub(super) fn new(
        model: &Model,
        graphs: Graphs,
        options: PrepareOptions,
        budget: &Budget<'_>,
    ) -> Result<Self, DriverError> {
        let mut rules = RequestRules::new(model)?;
        for position in graphs.main.required_inputs() {
            rules.require(Direction::Input, position);
        }
        // No operation has a form in which it does without a result that the model lists.
        for position in 0..graphs.main.outputs.len() {
            rules.require(Direction::Output, position);
        }
        let sides =
            [(Direction::Input, &graphs.main.inputs), (Direction::Output, &graphs.main.outputs)];
        for (direction, operands) in sides {
            for (position, operand) in operands.iter().enumerate() {
                if let Some(ty) = &graphs.main.operands[*operand].info.extension {
                    rules.describe(direction, position, &ty.def.information());
                }
            }
        }
        budget.charge(size_of::<Self>() + rules.held_bytes()).map_err(|cause| {
            DriverError::given_up(&cause).unwrap_or(DriverError::Internal { what: "rules" })
        })?;
        let charge = budget.take_charge();
        let options = PrepareOptions { deadline: None, ..options };
        Ok(ReferenceModel { graphs, rules, options, pace: Pace::of(model), _charge: charge })
    }

    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        caller: Option<&Caller>,
    ) -> ExecutionResult {
        let entry = Entry::now(options);
        let mut result = ExecutionResult::of(ErrorStatus::None);
        // A request that is not legal is told so, however little time it has.
        if let Err(error) = self.check(request) {
            entry.settle(Err(error), &self.pace, &mut result);
            return result;
        }
        if let Some(status) = entry.refusal(&self.pace) {
            return ExecutionResult::of(status);
        }
        let stop = Stop { caller, deadline: options.deadline, loop_deadline: None };
        let outcome = self.try_execute(request, options, stop, &mut result);
        entry.settle(outcome, &self.pace, &mut result);
        result
    }

    /// Whether a request is legal. It has no buffers of a driver: this device makes none.
    fn check(&self, request: &Request) -> Result<(), DriverError> {
        self.rules.check(request, UnspecifiedOutputs::Allowed)?;
        let arguments = request.inputs.iter().chain(&request.outputs);
        arguments
            .filter(|argument| !argument.has_no_value)
            .try_for_each(|argument| memory(request, argument).map(drop))
    }

    /// Returns the time the operations took; the status is NONE or OUTPUT_INSUFFICIENT_SIZE.
    fn try_execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        stop: Stop<'_>,
        result: &mut ExecutionResult,
    ) -> Result<Duration, DriverError> {
        let mut interpreter = Interpreter::new(&self.graphs, loop_timeout(options));
        let mut inputs = Vec::with_capacity(request.inputs.len());
        for index in 0..request.inputs.len() {
            inputs.push(self.input(&interpreter, request, index)?);
        }
        let started = Instant::now();
        let outputs = interpreter.graph(&self.graphs.main, &inputs, stop)?;
        let computed = started.elapsed();
        for (index, value) in outputs.iter().enumerate() {
            check_output(&request.outputs[index], index, &value.dims)?;
        }
        for (index, value) in outputs.iter().enumerate() {
            let is_sufficient =
                copy_out(request, index, value.bytes.as_slice(), Parallelism::ALONE)?;
            if !is_sufficient {
                result.status = ErrorStatus::OutputInsufficientSize;
            }
            let dimensions = value.dims.clone();
            result.output_shapes.push(OutputShape { dimensions, is_sufficient });
        }
        self.pace.note(computed);
        Ok(computed)
    }

    /// A copy of an input; `None` where it is left out.
    fn input(
        &self,
        interpreter: &Interpreter<'_>,
        request: &Request,
        index: usize,
    ) -> Result<Shared, DriverError> {
        let argument = &request.inputs[index];
        if argument.has_no_value {
            return Ok(None);
        }
        let known = &self.graphs.main.operands[self.graphs.main.inputs[index]];
        let given = &argument.dimensions;
        let dims = if given.is_empty() { known.declared.clone() } else { given.clone() };
        let wrong = |cause| {
            DriverError::given_up(&cause).unwrap_or(DriverError::Argument {
                what: "input",
                index,
                cause,
            })
        };
        check_declared(&known.declared, &dims).map_err(wrong)?;
        let pool = memory(request, argument)?;
        let mut held: Held = interpreter.room(&known.info, dims).map_err(wrong)?;
        pool.read(u64::from(argument.location.offset), held.bytes.as_mut_slice())
            .map_err(|cause| DriverError::Memory { what: "input", index, cause })?;
        Ok(Some(Arc::new(held)))
    }
}

impl PreparedModel for ReferenceModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.execute(request, options, None)
    }

    fn execute_for(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        self.execute(request, options, Some(caller))
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.rules)
    }

    fn pace(&self) -> Option<&Pace> {
        Some(&self.pace)
    }

    fn prepare_options(&self) -> Option<PrepareOptions> {
        Some(self.options)
    }
}
