//! The suites that execute: prepared once, then over one route at a time.

use std::borrow::Cow;
use std::time::Duration;

use burst_hal::{ExecutionOptions, PrepareOptions, Route};

use crate::case::Case;
use crate::checks::Expect;
use crate::deadlines;
use crate::domains;
use crate::interface::Interface;
use crate::model::{OutputShapes, build, to_signed};
use crate::outcome::{Done, LeftOut, Miss, Outcome};
use crate::subject::{Subject, Target};
use crate::suite::Suite;
use crate::validation::wrong_requests;
use crate::vectors::{Test, Vectors};

/// The time-out of a loop that never ends, as the original suite gives it.
const LOOP_TIMEOUT: Duration = Duration::from_millis(1);

/// A suite of a test, prepared for every route.
pub(crate) struct Ready<'a> {
    suite: Suite,
    /// The test; in coupling also its signed form; none where a test that has to fail was refused as it
    /// may be.
    subjects: Vec<Subject<'a>>,
}

impl<'a> Ready<'a> {
    /// Prepares what a suite of a test executes.
    pub(crate) fn prepare(
        target: Target<'_>,
        vectors: &Vectors,
        test: &'a Test,
        suite: Suite,
        interface: Interface,
    ) -> Result<Self, Miss> {
        let declared = OutputShapes::Declared;
        let one =
            |shapes| Subject::prepare(target, vectors, Cow::Borrowed(test), shapes, interface);
        let subjects = match suite {
            Suite::CtsOnly | Suite::Validation if test.expect_failure => {
                may_fail(target, vectors, test, interface)?.into_iter().collect()
            }
            Suite::DynamicShape => vec![one(OutputShapes::Unknown)?],
            Suite::QuantizationCoupling => couple(target, vectors, test, interface)?,
            _ => vec![one(declared)?],
        };
        Ok(Ready { suite, subjects })
    }

    /// Executes over a route that the suite has.
    ///
    /// Of [`Suite::Validation`], this is the part that executes: requests that must be refused, and
    /// tests that have to fail.
    pub(crate) fn run(&self, target: Target<'_>, route: Route) -> Outcome {
        let [subject, signed @ ..] = self.subjects.as_slice() else { return Ok(Done::default()) };
        let case = || Case::new(target, subject, route);
        Ok(match self.suite {
            Suite::CtsOnly | Suite::Validation if subject.test.expect_failure => {
                case()?.once(Expect::Failure, &ExecutionOptions::default())?
            }
            Suite::General | Suite::CtsOnly => case()?.both_timings(Expect::Values, None)?,
            Suite::FencedCompute => {
                let mut case = case()?;
                case.both_timings(Expect::Values, None)?.and(case.chain()?)
            }
            Suite::MemoryDomain => domains::run(target, subject, route)?,
            Suite::Deadline => deadlines::execute(&mut case()?)?,
            Suite::DynamicShape => dynamic_shape(&mut case()?, subject)?,
            Suite::QuantizationCoupling => coupling(target, subject, signed, route)?,
            Suite::InfiniteLoopTimeout => {
                case()?.both_timings(Expect::MissedDeadline, Some(LOOP_TIMEOUT))?
            }
            Suite::Validation => {
                let mut case = case()?;
                let refused = wrong_requests(&mut case, &subject.built)?;
                match route {
                    Route::Fenced => refused.and(case.wrong_fences()?),
                    _ => refused,
                }
            }
        })
    }
}

fn dynamic_shape(case: &mut Case<'_>, subject: &Subject<'_>) -> Result<Done, String> {
    let done = case
        .both_timings(Expect::ValuesAndShapes, None)
        .map_err(|what| format!("unspecified output: {what}"))?;
    if subject.built.outputs.first().is_none_or(|want| want.len() <= 1) {
        return Ok(done.and(Done { count: 0, left_out: vec![LeftOut::NothingToShorten; 2] }));
    }
    let insufficient = case
        .both_timings(Expect::Insufficient, None)
        .map_err(|what| format!("insufficient output: {what}"))?;
    Ok(done.and(insufficient))
}

/// The unsigned and the signed form: both are prepared, or neither is supported.
fn couple<'a>(
    target: Target<'_>,
    vectors: &Vectors,
    test: &'a Test,
    interface: Interface,
) -> Result<Vec<Subject<'a>>, Miss> {
    let (signed_vectors, signed_test) = to_signed(vectors, test)?;
    let declared = OutputShapes::Declared;
    let unsigned = Subject::prepare(target, vectors, Cow::Borrowed(test), declared, interface);
    let signed_test = Cow::Owned(signed_test);
    let signed = Subject::prepare(target, &signed_vectors, signed_test, declared, interface)
        .map_err(|miss| miss.within("signed"));
    match (unsigned, signed) {
        (Ok(unsigned), Ok(signed)) => Ok(vec![unsigned, signed]),
        (Err(Miss::Unsupported(what)), Err(Miss::Unsupported(_))) => Err(Miss::Unsupported(what)),
        (Err(Miss::Wrong(what)), _) | (_, Err(Miss::Wrong(what))) => Err(Miss::Wrong(what)),
        (Err(Miss::LeftOut(rule)), _) | (_, Err(Miss::LeftOut(rule))) => Err(Miss::LeftOut(rule)),
        (Err(Miss::Unsupported(what)), Ok(_)) => {
            Err(Miss::Wrong(format!("only the signed form is supported: {what}")))
        }
        (Ok(_), Err(Miss::Unsupported(what))) => {
            Err(Miss::Wrong(format!("only the unsigned form is supported: {what}")))
        }
    }
}

/// Both forms give the same.
fn coupling(
    target: Target<'_>,
    unsigned: &Subject<'_>,
    signed: &[Subject<'_>],
    route: Route,
) -> Result<Done, String> {
    let mut done = Case::new(target, unsigned, route)?.both_timings(Expect::Values, None)?;
    for signed in signed {
        let mut case = Case::new(target, signed, route)?;
        let more = case.both_timings(Expect::Values, None);
        done = done.and(more.map_err(|what| format!("signed: {what}"))?);
    }
    Ok(done)
}

/// A test that must fail: the model may be refused when some operation is not supported; otherwise
/// it has to be prepared, and the execution has to fail.
fn may_fail<'a>(
    target: Target<'_>,
    vectors: &Vectors,
    test: &'a Test,
    interface: Interface,
) -> Result<Option<Subject<'a>>, Miss> {
    let built = build(vectors, test, OutputShapes::Declared)?;
    // Tests outside of the suites of the HAL, and all of them through calls, only ask that any step fails.
    let any_step = test.vts.is_empty() || interface.may_fail_anywhere();
    let supported = match target.device.supported_operations(&built.model) {
        Ok(supported) => supported,
        Err(_) if any_step => return Ok(None),
        Err(failure) => return Err(format!("supported_operations: {failure}").into()),
    };
    if supported.is_empty() {
        return Err("supported_operations gave no answer".to_owned().into());
    }
    match target.device.prepare_model(&built.model, &PrepareOptions::default()) {
        Err(_) if any_step || supported.contains(&false) => Ok(None),
        Err(failure) => Err(format!("reported as supported, but prepare_model: {failure}").into()),
        Ok(prepared) => {
            let test = Cow::Borrowed(test);
            Ok(Some(Subject { test, built, prepared, interface }))
        }
    }
}
