//! What an execution came to, against what is expected of it.

use burst_hal::{ErrorStatus, ExecutionResult, Timing};

use crate::arguments::Arguments;
use crate::judge::{check_draws, compare, elements};
use crate::model::Built;
use crate::vectors::Test;

/// What an execution is expected to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The right values; the shapes may be left out.
    Values,
    /// The right values and shapes.
    ValuesAndShapes,
    /// The right values, or a missed deadline.
    ValuesOrMissedDeadline,
    /// OUTPUT_INSUFFICIENT_SIZE for output 0, which is one byte too short.
    Insufficient,
    /// Any failure.
    Failure,
    /// A missed deadline.
    MissedDeadline,
    /// INVALID_ARGUMENT.
    InvalidArgument,
}

pub(crate) fn is_missed_deadline(status: ErrorStatus) -> bool {
    use ErrorStatus::{MissedDeadlinePersistent, MissedDeadlineTransient};
    matches!(status, MissedDeadlinePersistent | MissedDeadlineTransient)
}

/// Fails where a result is not what is expected of it.
pub(crate) fn check(
    test: &Test,
    built: &Built,
    expect: Expect,
    result: &ExecutionResult,
    arguments: &Arguments,
) -> Result<(), String> {
    let status = result.status;
    match expect {
        Expect::ValuesOrMissedDeadline if is_missed_deadline(status) => no_shapes(result),
        Expect::ValuesOrMissedDeadline => check(test, built, Expect::Values, result, arguments),
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
        Expect::MissedDeadline if is_missed_deadline(status) => no_shapes(result),
        Expect::MissedDeadline => Err(format!("status {status}, expected a missed deadline")),
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

/// Fails where an output has other values.
pub(crate) fn check_values(
    test: &Test,
    built: &Built,
    arguments: &Arguments,
) -> Result<(), String> {
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
