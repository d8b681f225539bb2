//! A prepared test: executed as often as a suite wants, each result checked.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::session::{Executor, PoolAllocator};
use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, ExecutionResult, PrepareOptions, PreparedModel, Request,
    Route, Timing,
};

use crate::arguments::Arguments;
use crate::judge::{check_draws, compare, elements};
use crate::model::{Built, OutputShapes, build};
use crate::outcome::Miss;
use crate::vectors::{Test, Vectors};

/// The driver under test.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// Where the memory of requests comes from.
    pub memory: &'a Arc<dyn PoolAllocator>,
}

/// What an execution is expected to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The right values; the shapes may be left out.
    Values,
    /// The right values and shapes.
    ValuesAndShapes,
    /// OUTPUT_INSUFFICIENT_SIZE for output 0, which is one byte too short.
    Insufficient,
    /// Any failure.
    Failure,
    /// A missed deadline.
    MissedDeadline,
    /// INVALID_ARGUMENT.
    InvalidArgument,
}

/// A test on a device, ready to execute.
pub(crate) struct Case<'a> {
    test: &'a Test,
    pub(crate) built: Built,
    arguments: Arguments,
    executor: Executor,
}

impl<'a> Case<'a> {
    /// Builds and prepares a test; fails where the device's answer about supported operations and its
    /// preparation contradict each other.
    pub(crate) fn prepare(
        target: Target<'_>,
        vectors: &Vectors,
        test: &'a Test,
        shapes: OutputShapes,
        route: Route,
    ) -> Result<Self, Miss> {
        let built = build(vectors, test, shapes)?;
        let supported = target
            .device
            .supported_operations(&built.model)
            .map_err(|failure| format!("supported_operations: {failure}"))?;
        if supported.len() != built.model.main.operations.len() {
            return Err(format!("supported_operations gave {} answers", supported.len()).into());
        }
        let lacking = supported.iter().position(|supported| !supported);
        let prepared = target.device.prepare_model(&built.model, &PrepareOptions::default());
        let prepared = match (prepared, lacking) {
            (Ok(prepared), None) => prepared,
            (Ok(_), Some(index)) => {
                let what = format!("operation {index} is reported as unsupported, but prepared");
                return Err(what.into());
            }
            (Err(failure), None) => return Err(format!("prepare_model: {failure}").into()),
            (Err(failure), Some(index)) => {
                let ty = built.model.main.operations[index].ty;
                return Err(Miss::Unsupported(format!(
                    "operation {index}, {}: {failure}",
                    ty.name()
                )));
            }
        };
        Ok(Case::new(target, test, built, &prepared, route)?)
    }

    /// A test whose model is prepared already.
    pub(crate) fn new(
        target: Target<'_>,
        test: &'a Test,
        built: Built,
        prepared: &Arc<dyn PreparedModel>,
        route: Route,
    ) -> Result<Self, String> {
        let executor = Executor::open(Arc::clone(prepared), route)
            .map_err(|failure| format!("open_burst: {failure}"))?;
        let arguments = Arguments::new(&built, &**target.memory)?;
        Ok(Case { test, built, arguments, executor })
    }

    /// Executes without and with measuring; returns how many executions that were.
    pub(crate) fn both_timings(
        &mut self,
        expect: Expect,
        loop_timeout: Option<Duration>,
    ) -> Result<u64, String> {
        for measure_timing in [false, true] {
            self.once(expect, measure_timing, loop_timeout)?;
        }
        Ok(2)
    }

    /// Executes once.
    pub(crate) fn once(
        &mut self,
        expect: Expect,
        measure_timing: bool,
        loop_timeout: Option<Duration>,
    ) -> Result<(), String> {
        let short = u32::from(expect == Expect::Insufficient);
        let request = self.arguments.request(short)?;
        let options = ExecutionOptions { measure_timing, deadline: None, loop_timeout };
        let result = self.execute(&request, &options);
        check_timing(&result, measure_timing)?;
        check(self.test, &self.built, expect, &result, &self.arguments)?;
        self.arguments.check_untouched(&self.built, short)
    }

    /// Executes an invalid request; the device must refuse it and write nothing.
    pub(crate) fn wrong_request(
        &mut self,
        break_it: impl FnOnce(&mut Request),
    ) -> Result<(), String> {
        let mut request = self.arguments.request(0)?;
        break_it(&mut request);
        let options = ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() };
        let result = self.execute(&request, &options);
        check(self.test, &self.built, Expect::InvalidArgument, &result, &self.arguments)
    }

    fn execute(&mut self, request: &Request, options: &ExecutionOptions) -> ExecutionResult {
        // A driver that does not write its result has failed.
        let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
        self.executor.execute(request, options, &mut result);
        result
    }
}

fn check_timing(result: &ExecutionResult, measured: bool) -> Result<(), String> {
    let timing = result.timing;
    if !measured && timing != Timing::UNAVAILABLE {
        return Err(format!("timing {timing:?} although it was not asked for"));
    }
    let known = timing.time_on_device_us != u64::MAX && timing.time_in_driver_us != u64::MAX;
    if known && timing.time_on_device_us > timing.time_in_driver_us {
        return Err(format!("more time on the device than in the driver: {timing:?}"));
    }
    Ok(())
}

fn check(
    test: &Test,
    built: &Built,
    expect: Expect,
    result: &ExecutionResult,
    arguments: &Arguments,
) -> Result<(), String> {
    let status = result.status;
    match expect {
        Expect::Values | Expect::ValuesAndShapes => {
            if status != ErrorStatus::None {
                return Err(format!("status {status}"));
            }
            check_shapes(test, result, expect == Expect::ValuesAndShapes)?;
            check_values(test, built, arguments)
        }
        Expect::Insufficient => check_insufficient(test, result),
        Expect::Failure if status == ErrorStatus::None => {
            Err("succeeded, but has to fail".to_owned())
        }
        Expect::Failure => no_shapes(result),
        Expect::MissedDeadline => match status {
            ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent => {
                no_shapes(result)
            }
            _ => Err(format!("status {status}, expected a missed deadline")),
        },
        Expect::InvalidArgument if status == ErrorStatus::InvalidArgument => no_shapes(result),
        Expect::InvalidArgument => Err(format!("status {status}, expected INVALID_ARGUMENT")),
    }
}

fn expected_dims(test: &Test, output: usize) -> &[u32] {
    &test.main.operands[test.main.outputs[output] as usize].dims
}

fn check_shapes(test: &Test, result: &ExecutionResult, required: bool) -> Result<(), String> {
    let shapes = &result.output_shapes;
    if shapes.is_empty() && !required {
        return Ok(());
    }
    check_count(test, result)?;
    for (index, shape) in shapes.iter().enumerate() {
        let want = expected_dims(test, index);
        if !shape.is_sufficient || shape.dimensions.as_slice() != want {
            return Err(format!("output {index}: shape {shape:?}, expected {want:?}"));
        }
    }
    Ok(())
}

fn check_count(test: &Test, result: &ExecutionResult) -> Result<(), String> {
    let (shapes, outputs) = (result.output_shapes.len(), test.main.outputs.len());
    match shapes == outputs {
        true => Ok(()),
        false => Err(format!("{shapes} shapes for {outputs} outputs")),
    }
}

fn check_insufficient(test: &Test, result: &ExecutionResult) -> Result<(), String> {
    if result.status != ErrorStatus::OutputInsufficientSize {
        let status = result.status;
        return Err(format!("status {status}, expected OUTPUT_INSUFFICIENT_SIZE"));
    }
    check_count(test, result)?;
    for (index, shape) in result.output_shapes.iter().enumerate() {
        let want = expected_dims(test, index);
        let agrees = shape.dimensions.len() == want.len()
            && shape.dimensions.iter().zip(want).all(|(got, want)| *got == 0 || got == want);
        if !agrees || shape.is_sufficient != (index != 0) {
            return Err(format!("output {index}: shape {shape:?}, expected {want:?}"));
        }
    }
    if result.timing != Timing::UNAVAILABLE {
        return Err("timing of an execution that did not succeed".to_owned());
    }
    Ok(())
}

fn no_shapes(result: &ExecutionResult) -> Result<(), String> {
    if !result.output_shapes.is_empty() || result.timing != Timing::UNAVAILABLE {
        return Err("shapes or timing of an execution that did not succeed".to_owned());
    }
    Ok(())
}

fn check_values(test: &Test, built: &Built, arguments: &Arguments) -> Result<(), String> {
    if test.multinomial_tolerance > 0.0 {
        return check_multinomial(test, built, arguments);
    }
    for (index, want) in built.outputs.iter().enumerate() {
        let operand = test.main.outputs[index] as usize;
        if test.main.operands[operand].ignored || want.is_empty() {
            continue;
        }
        let ty = built.model.main.operands[operand].ty;
        compare(test, index, ty, &arguments.output(index)?, want)?;
    }
    Ok(())
}

fn check_multinomial(test: &Test, built: &Built, arguments: &Arguments) -> Result<(), String> {
    let graph = &built.model.main;
    let input = &graph.operands[graph.input_indexes[0] as usize];
    let output = &graph.operands[graph.output_indexes[0] as usize];
    let [batches, classes] = input.dimensions.as_slice() else {
        return Err(format!("input of shape {:?}", input.dimensions));
    };
    let given = built.inputs[0].as_deref().unwrap_or_default();
    check_draws(
        test.multinomial_tolerance,
        *batches as usize,
        *classes as usize,
        &elements(input.ty, given),
        &elements(output.ty, &arguments.output(0)?),
    )
}
