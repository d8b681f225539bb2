//! The suites that execute: GENERAL, DYNAMIC_SHAPE, QUANTIZATION_COUPLING, INFINITE_LOOP_TIMEOUT.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, ExecutionResult, PrepareOptions, PreparedModel, Timing,
};

use crate::judge::{check_draws, compare, elements};
use crate::model::{Built, OutputShapes, build, to_signed};
use crate::suite::Suite;
use crate::vectors::{Test, Vectors};

/// How an execution reaches the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// `execute_synchronously`.
    Sync,
    /// A burst.
    Burst,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 2] = [Mode::Sync, Mode::Burst];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Sync => "sync",
            Mode::Burst => "burst",
        }
    }
}

/// What an execution is expected to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// The right values; the shapes may be left out.
    Values,
    /// The right values and shapes.
    ValuesAndShapes,
    /// OUTPUT_INSUFFICIENT_SIZE for output 0.
    Insufficient,
    /// Any failure.
    Failure,
    /// A missed deadline.
    MissedDeadline,
}

/// A prepared test that executions run on.
struct Case<'a> {
    test: &'a Test,
    built: Built,
    prepared: Arc<dyn PreparedModel>,
}

/// How many executions were made, or the first thing that was wrong.
pub type Outcome = Result<u64, String>;

/// Runs one suite of one test in one mode.
///
/// # Errors
/// What was wrong, in words: operand, index, got, expected, tolerance.
pub fn run_suite(
    device: &dyn Device,
    vectors: &Vectors,
    test: &Test,
    suite: Suite,
    mode: Mode,
) -> Outcome {
    match suite {
        Suite::General if test.expect_failure => expect_failure(device, vectors, test, mode),
        Suite::General => {
            let case = prepare(device, vectors, test, OutputShapes::Declared)?;
            both_timings(&case, mode, Expect::Values, 0, None)
        }
        Suite::DynamicShape => dynamic_shape(device, vectors, test, mode),
        Suite::QuantizationCoupling => coupling(device, vectors, test, mode),
        Suite::InfiniteLoopTimeout => {
            // A burst cannot carry the time-out.
            if mode == Mode::Burst {
                return Ok(0);
            }
            let case = prepare(device, vectors, test, OutputShapes::Declared)?;
            let timeout = Some(Duration::from_millis(1));
            both_timings(&case, mode, Expect::MissedDeadline, 0, timeout)
        }
        Suite::Validation => Ok(0),
    }
}

fn dynamic_shape(device: &dyn Device, vectors: &Vectors, test: &Test, mode: Mode) -> Outcome {
    let case = prepare(device, vectors, test, OutputShapes::Unknown)?;
    let mut executions = both_timings(&case, mode, Expect::ValuesAndShapes, 0, None)
        .map_err(|what| format!("unspecified output: {what}"))?;
    if case.built.outputs.first().is_some_and(|want| want.len() > 1) {
        executions += both_timings(&case, mode, Expect::Insufficient, 1, None)
            .map_err(|what| format!("insufficient output: {what}"))?;
    }
    Ok(executions)
}

fn coupling(device: &dyn Device, vectors: &Vectors, test: &Test, mode: Mode) -> Outcome {
    let case = prepare(device, vectors, test, OutputShapes::Declared)?;
    let mut executions = both_timings(&case, mode, Expect::Values, 0, None)?;
    let (vectors, test) = to_signed(vectors, test).map_err(|error| error.to_string())?;
    let signed = prepare(device, &vectors, &test, OutputShapes::Declared)
        .map_err(|what| format!("signed: {what}"))?;
    executions += both_timings(&signed, mode, Expect::Values, 0, None)
        .map_err(|what| format!("signed: {what}"))?;
    Ok(executions)
}

/// A test that must fail: the model may be refused when some operation is not supported; otherwise
/// it has to be prepared, and the execution has to fail.
fn expect_failure(device: &dyn Device, vectors: &Vectors, test: &Test, mode: Mode) -> Outcome {
    let built = build(vectors, test, OutputShapes::Declared).map_err(|e| e.to_string())?;
    // Tests outside of the suites of the HAL only ask that any step fails.
    let any_step = test.vts.is_empty();
    let supported = match device.supported_operations(&built.model) {
        Ok(supported) => supported,
        Err(_) if any_step => return Ok(0),
        Err(failure) => return Err(format!("supported_operations: {failure}")),
    };
    match device.prepare_model(&built.model, &PrepareOptions::default()) {
        Err(_) if any_step || supported.contains(&false) => Ok(0),
        Err(failure) => Err(format!("reported as supported, but prepare_model: {failure}")),
        Ok(prepared) => {
            let case = Case { test, built, prepared };
            both_timings(&case, mode, Expect::Failure, 0, None)
        }
    }
}

fn prepare<'a>(
    device: &dyn Device,
    vectors: &Vectors,
    test: &'a Test,
    shapes: OutputShapes,
) -> Result<Case<'a>, String> {
    let built = build(vectors, test, shapes).map_err(|error| error.to_string())?;
    let supported = device
        .supported_operations(&built.model)
        .map_err(|failure| format!("supported_operations: {failure}"))?;
    if supported.len() != built.model.main.operations.len() {
        return Err(format!("supported_operations gave {} answers", supported.len()));
    }
    let prepared = device
        .prepare_model(&built.model, &PrepareOptions::default())
        .map_err(|failure| format!("prepare_model: {failure}"))?;
    if let Some(index) = supported.iter().position(|supported| !supported) {
        return Err(format!("operation {index} is not reported as supported, but prepared"));
    }
    Ok(Case { test, built, prepared })
}

fn both_timings(
    case: &Case<'_>,
    mode: Mode,
    expect: Expect,
    short: usize,
    loop_timeout: Option<Duration>,
) -> Outcome {
    for measure_timing in [false, true] {
        let options = ExecutionOptions { measure_timing, deadline: None, loop_timeout };
        let arguments = case.built.arguments(short);
        let result = match mode {
            Mode::Sync => case.prepared.execute_synchronously(&arguments.request, &options),
            Mode::Burst => {
                let mut burst = Arc::clone(&case.prepared)
                    .open_burst()
                    .map_err(|failure| format!("open_burst: {failure}"))?;
                let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
                burst.execute(&arguments.request, &options, &mut result);
                result
            }
        };
        check_timing(&result, measure_timing)?;
        case.check(expect, &result, &arguments)?;
    }
    Ok(2)
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

impl Case<'_> {
    fn check(
        &self,
        expect: Expect,
        result: &ExecutionResult,
        arguments: &crate::model::Arguments,
    ) -> Result<(), String> {
        let status = result.status;
        match expect {
            Expect::Values | Expect::ValuesAndShapes => {
                if status != ErrorStatus::None {
                    return Err(format!("status {status}"));
                }
                self.check_shapes(result, expect == Expect::ValuesAndShapes)?;
                self.check_values(arguments)
            }
            Expect::Insufficient => self.check_insufficient(result),
            Expect::Failure => {
                if status == ErrorStatus::None {
                    return Err("succeeded, but has to fail".into());
                }
                no_shapes(result)
            }
            Expect::MissedDeadline => match status {
                ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent => {
                    no_shapes(result)
                }
                _ => Err(format!("status {status}, expected a missed deadline")),
            },
        }
    }

    fn expected_dims(&self, output: usize) -> &[u32] {
        let graph = &self.test.main;
        &graph.operands[graph.outputs[output] as usize].dims
    }

    fn check_shapes(&self, result: &ExecutionResult, required: bool) -> Result<(), String> {
        let shapes = &result.output_shapes;
        if shapes.is_empty() && !required {
            return Ok(());
        }
        if shapes.len() != self.built.outputs.len() {
            return Err(format!(
                "{} shapes for {} outputs",
                shapes.len(),
                self.built.outputs.len()
            ));
        }
        for (index, shape) in shapes.iter().enumerate() {
            let want = self.expected_dims(index);
            if !shape.is_sufficient || shape.dimensions.as_slice() != want {
                return Err(format!("output {index}: shape {shape:?}, expected {want:?}"));
            }
        }
        Ok(())
    }

    fn check_insufficient(&self, result: &ExecutionResult) -> Result<(), String> {
        if result.status != ErrorStatus::OutputInsufficientSize {
            return Err(format!("status {}", result.status));
        }
        if result.output_shapes.len() != self.built.outputs.len() {
            return Err(format!("{} shapes", result.output_shapes.len()));
        }
        for (index, shape) in result.output_shapes.iter().enumerate() {
            let want = self.expected_dims(index);
            let agrees = shape.dimensions.len() == want.len()
                && shape.dimensions.iter().zip(want).all(|(got, want)| *got == 0 || got == want);
            if !agrees || shape.is_sufficient != (index != 0) {
                return Err(format!("output {index}: shape {shape:?}, expected {want:?}"));
            }
        }
        if result.timing != Timing::UNAVAILABLE {
            return Err("timing of an execution that did not succeed".into());
        }
        Ok(())
    }

    fn check_values(&self, arguments: &crate::model::Arguments) -> Result<(), String> {
        if self.test.multinomial_tolerance > 0.0 {
            return self.check_multinomial(arguments);
        }
        for (index, want) in self.built.outputs.iter().enumerate() {
            let operand = self.test.main.outputs[index] as usize;
            if self.test.main.operands[operand].ignored || want.is_empty() {
                continue;
            }
            let ty = self.built.model.main.operands[operand].ty;
            compare(self.test, index, ty, &arguments.output(index), want)?;
        }
        Ok(())
    }

    fn check_multinomial(&self, arguments: &crate::model::Arguments) -> Result<(), String> {
        let graph = &self.built.model.main;
        let input = &graph.operands[graph.input_indexes[0] as usize];
        let output = &graph.operands[graph.output_indexes[0] as usize];
        let [batches, classes] = input.dimensions.as_slice() else {
            return Err(format!("input of shape {:?}", input.dimensions));
        };
        let given = self.built.inputs[0].as_deref().unwrap_or_default();
        check_draws(
            self.test.multinomial_tolerance,
            *batches as usize,
            *classes as usize,
            &elements(input.ty, given),
            &elements(output.ty, &arguments.output(0)),
        )
    }
}

fn no_shapes(result: &ExecutionResult) -> Result<(), String> {
    if !result.output_shapes.is_empty() || result.timing != Timing::UNAVAILABLE {
        return Err("shapes or timing of an execution that did not succeed".into());
    }
    Ok(())
}
