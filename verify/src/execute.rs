//! The suites that execute, over one route at a time.

use std::time::Duration;

use burst_hal::{PrepareOptions, Route};

use crate::case::{Case, Expect, Target};
use crate::model::{OutputShapes, build, to_signed};
use crate::outcome::{Miss, Outcome};
use crate::suite::Suite;
use crate::validation::wrong_requests;
use crate::vectors::{Test, Vectors};

/// The time-out of a loop that never ends, as the original suite gives it.
const LOOP_TIMEOUT: Duration = Duration::from_millis(1);

/// Runs one suite of one test over one route.
///
/// Of [`Suite::Validation`], this runs the part that executes: requests that must be refused, and
/// tests that have to fail. [`crate::wrong_models`] is the part that fails before any execution.
///
/// # Errors
/// What was wrong, or that the device does not support the model.
pub fn run_suite(
    target: Target<'_>,
    vectors: &Vectors,
    test: &Test,
    suite: Suite,
    route: Route,
) -> Outcome {
    match suite {
        Suite::General | Suite::Validation if test.expect_failure => {
            expect_failure(target, vectors, test, route)
        }
        Suite::General => {
            let mut case = Case::prepare(target, vectors, test, OutputShapes::Declared, route)?;
            Ok(case.both_timings(Expect::Values, None)?)
        }
        Suite::DynamicShape => dynamic_shape(target, vectors, test, route),
        Suite::QuantizationCoupling => coupling(target, vectors, test, route),
        // A burst of HAL 1.2 cannot carry the time-out.
        Suite::InfiniteLoopTimeout if route == Route::Burst => Ok(0),
        Suite::InfiniteLoopTimeout => {
            let mut case = Case::prepare(target, vectors, test, OutputShapes::Declared, route)?;
            Ok(case.both_timings(Expect::MissedDeadline, Some(LOOP_TIMEOUT))?)
        }
        Suite::Validation => {
            let mut case = Case::prepare(target, vectors, test, OutputShapes::Declared, route)?;
            Ok(wrong_requests(&mut case)?)
        }
    }
}

fn dynamic_shape(target: Target<'_>, vectors: &Vectors, test: &Test, route: Route) -> Outcome {
    let mut case = Case::prepare(target, vectors, test, OutputShapes::Unknown, route)?;
    let mut executions = case
        .both_timings(Expect::ValuesAndShapes, None)
        .map_err(|what| format!("unspecified output: {what}"))?;
    if case.built.outputs.first().is_some_and(|want| want.len() > 1) {
        executions += case
            .both_timings(Expect::Insufficient, None)
            .map_err(|what| format!("insufficient output: {what}"))?;
    }
    Ok(executions)
}

/// The unsigned and the signed form: both run and give the same, or neither is supported.
fn coupling(target: Target<'_>, vectors: &Vectors, test: &Test, route: Route) -> Outcome {
    let (signed_vectors, signed_test) = to_signed(vectors, test)?;
    let unsigned = Case::prepare(target, vectors, test, OutputShapes::Declared, route);
    let signed =
        Case::prepare(target, &signed_vectors, &signed_test, OutputShapes::Declared, route)
            .map_err(|miss| miss.within("signed"));
    let (mut unsigned, mut signed) = match (unsigned, signed) {
        (Ok(unsigned), Ok(signed)) => (unsigned, signed),
        (Err(Miss::Unsupported(what)), Err(Miss::Unsupported(_))) => {
            return Err(Miss::Unsupported(what));
        }
        (Err(Miss::Wrong(what)), _) | (_, Err(Miss::Wrong(what))) => {
            return Err(Miss::Wrong(what));
        }
        (Err(Miss::Unsupported(what)), Ok(_)) => {
            return Err(Miss::Wrong(format!("only the signed form is supported: {what}")));
        }
        (Ok(_), Err(Miss::Unsupported(what))) => {
            return Err(Miss::Wrong(format!("only the unsigned form is supported: {what}")));
        }
    };
    let executions = unsigned.both_timings(Expect::Values, None)?;
    let more =
        signed.both_timings(Expect::Values, None).map_err(|what| format!("signed: {what}"))?;
    Ok(executions + more)
}

/// A test that must fail: the model may be refused when some operation is not supported; otherwise
/// it has to be prepared, and the execution has to fail.
fn expect_failure(target: Target<'_>, vectors: &Vectors, test: &Test, route: Route) -> Outcome {
    let built = build(vectors, test, OutputShapes::Declared)?;
    // Tests outside of the suites of the HAL only ask that any step fails.
    let any_step = test.vts.is_empty();
    let supported = match target.device.supported_operations(&built.model) {
        Ok(supported) => supported,
        Err(_) if any_step => return Ok(0),
        Err(failure) => return Err(format!("supported_operations: {failure}").into()),
    };
    if supported.is_empty() {
        return Err("supported_operations gave no answer".to_owned().into());
    }
    match target.device.prepare_model(&built.model, &PrepareOptions::default()) {
        Err(_) if any_step || supported.contains(&false) => Ok(0),
        Err(failure) => Err(format!("reported as supported, but prepare_model: {failure}").into()),
        Ok(prepared) => {
            let mut case = Case::new(target, test, built, &prepared, route)?;
            case.once(Expect::Failure, false, None)?;
            Ok(1)
        }
    }
}
