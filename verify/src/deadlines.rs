//! Priorities and deadlines: what is prepared and executed with them is right, or missed its deadline.

use std::time::Duration;

use burst_hal::{PrepareOptions, Priority, TimePoint};

use crate::case::Case;
use crate::checks::{Expect, is_missed_deadline};
use crate::interface::Interface;
use crate::model::{OutputShapes, build};
use crate::outcome::{Done, LeftOut, Miss, Outcome};
use crate::subject::Target;
use crate::vectors::{Test, Vectors};

/// A deadline that some meet and some miss.
const SHORT: Duration = Duration::from_millis(5);

/// The deadlines of the original suite, and whether they may be missed.
fn deadlines() -> [(&'static str, TimePoint, bool); 3] {
    [
        ("NOW", TimePoint::now(), true),
        ("SHORT", TimePoint::after(SHORT), true),
        ("UNLIMITED", TimePoint { nanos: u64::MAX }, false),
    ]
}

/// Prepares with each priority that is not the default, and with each deadline.
///
/// # Errors
/// A preparation that fails by another status than a deadline that may be missed.
pub(crate) fn prepare(
    target: Target<'_>,
    vectors: &Vectors,
    test: &Test,
    interface: Interface,
) -> Outcome {
    let model = build(vectors, test, OutputShapes::Declared)?.model;
    let supported = target
        .device
        .supported_operations(&model)
        .map_err(|failure| format!("supported_operations: {failure}"))?;
    if supported.contains(&false) {
        return Ok(Done::default()); // what the suite executes says so
    }
    let mut done = Done::default();
    for priority in [Priority::Low, Priority::High] {
        let options = PrepareOptions { priority, ..PrepareOptions::default() };
        match target.device.prepare_model(&model, &options) {
            Ok(_) => done.count += 1,
            Err(failure) => match interface.may_refuse(&model, &failure) {
                Some(rule) => return Err(Miss::LeftOut(rule)),
                None => {
                    let what = format!("prepare_model with priority {priority}: {failure}");
                    return Err(what.into());
                }
            },
        }
    }
    for number in 0..deadlines().len() {
        // Each counts from just before its preparation.
        let (name, deadline, may_miss) = deadlines()[number];
        if may_miss && !interface.has_deadlines() {
            done.left_out.push(LeftOut::DeadlinesOfAnyDevice);
            continue;
        }
        let options = PrepareOptions { deadline: Some(deadline), ..PrepareOptions::default() };
        match target.device.prepare_model(&model, &options) {
            Err(failure) if !may_miss || !is_missed_deadline(failure.status) => {
                return Err(format!("prepare_model with deadline {name}: {failure}").into());
            }
            _ => done.count += 1,
        }
    }
    Ok(done)
}

/// Executes with each deadline.
pub(crate) fn execute(case: &mut Case<'_>) -> Result<Done, String> {
    let mut done = Done::default();
    for number in 0..deadlines().len() {
        let (name, deadline, may_miss) = deadlines()[number];
        if may_miss && !case.interface().has_deadlines() {
            done.left_out.push(LeftOut::DeadlinesOfAnyDevice);
            continue;
        }
        let expect = if may_miss { Expect::ValuesOrMissedDeadline } else { Expect::Values };
        let ran = case.until(deadline, expect);
        done = done.and(ran.map_err(|what| format!("deadline {name}: {what}"))?);
    }
    Ok(done)
}
