//! What a driver may answer an execution with.

use crate::{ErrorStatus, ExecutionResult, Timing};

/// What is wrong with a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultFault {
    /// Not one shape per output.
    #[error("{found} shapes for {outputs} outputs")]
    ShapeCount {
        /// Outputs of the model.
        outputs: usize,
        /// Shapes of the result.
        found: usize,
    },
    /// Shapes with a status that has none.
    #[error("shapes with status {status}")]
    Shapes {
        /// The status.
        status: ErrorStatus,
    },
    /// An output without enough memory, and yet status NONE.
    #[error("output {output} is insufficient in a result of status NONE")]
    Insufficient {
        /// Which output.
        output: usize,
    },
    /// OUTPUT_INSUFFICIENT_SIZE, and yet all outputs have enough.
    #[error("every output is sufficient in a result of status OUTPUT_INSUFFICIENT_SIZE")]
    Sufficient,
    /// Times that were not asked for, or of an execution that failed.
    #[error("times that were not asked for, or of an execution that failed")]
    Timing,
    /// More time in the hardware than in the driver.
    #[error("more time on the device than in the driver")]
    DeviceTime,
}

/// Checks a result of an execution: shapes that go with its status, and times that were asked for
/// (`measured`).
///
/// ```
/// use burst_hal::validate::{ResultFault, validate_result};
/// use burst_hal::{ErrorStatus, ExecutionResult, OutputShape};
///
/// let mut result = ExecutionResult::of(ErrorStatus::None);
/// assert_eq!(validate_result(&result, 2, false), Ok(()));
/// result.output_shapes.push(OutputShape::default());
/// assert_eq!(
///     validate_result(&result, 2, false),
///     Err(ResultFault::ShapeCount { outputs: 2, found: 1 })
/// );
/// assert_eq!(
///     validate_result(&result, 1, false),
///     Err(ResultFault::Insufficient { output: 0 })
/// );
/// ```
///
/// # Errors
/// The first thing that is wrong.
pub fn validate_result(
    result: &ExecutionResult,
    outputs: usize,
    measured: bool,
) -> Result<(), ResultFault> {
    let ExecutionResult { status, output_shapes: shapes, timing } = result;
    let insufficient = shapes.iter().position(|shape| !shape.is_sufficient);
    let found = shapes.len();
    let count = Err(ResultFault::ShapeCount { outputs, found });
    match (*status, insufficient) {
        (ErrorStatus::None, _) if found != 0 && found != outputs => count?,
        (ErrorStatus::None, Some(output)) => return Err(ResultFault::Insufficient { output }),
        (ErrorStatus::OutputInsufficientSize, _) if found != outputs => count?,
        (ErrorStatus::OutputInsufficientSize, None) => return Err(ResultFault::Sufficient),
        (ErrorStatus::None | ErrorStatus::OutputInsufficientSize, _) => {}
        (status, _) if found > 0 => return Err(ResultFault::Shapes { status }),
        _ => {}
    }
    let may_have_times = measured && *status == ErrorStatus::None;
    if *timing != Timing::UNAVAILABLE && !may_have_times {
        return Err(ResultFault::Timing);
    }
    let Timing { time_on_device_us: device, time_in_driver_us: driver } = *timing;
    match device != u64::MAX && driver != u64::MAX && device > driver {
        true => Err(ResultFault::DeviceTime),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutputShape;

    #[test]
    fn shapes_go_with_the_status() {
        let none = ErrorStatus::None;
        let short = ErrorStatus::OutputInsufficientSize;
        let failed = ErrorStatus::GeneralFailure;
        let count = |found| Err(ResultFault::ShapeCount { outputs: 2, found });
        for (status, sufficient, want) in [
            (none, &[][..], Ok(())),
            (none, &[true, true], Ok(())),
            (none, &[true], count(1)),
            (none, &[true, false], Err(ResultFault::Insufficient { output: 1 })),
            (short, &[true, false], Ok(())),
            (short, &[], count(0)),
            (short, &[true, true], Err(ResultFault::Sufficient)),
            (failed, &[], Ok(())),
            (failed, &[true, true], Err(ResultFault::Shapes { status: failed })),
        ] {
            let mut result = ExecutionResult::of(status);
            let shape = |is_sufficient: &bool| OutputShape {
                is_sufficient: *is_sufficient,
                ..OutputShape::default()
            };
            result.output_shapes = sufficient.iter().map(shape).collect();
            assert_eq!(validate_result(&result, 2, false), want, "{status} {sufficient:?}");
        }
    }

    #[test]
    fn times_are_those_that_were_asked_for() {
        let timing =
            |device, driver| Timing { time_on_device_us: device, time_in_driver_us: driver };
        let (none, failed) = (ErrorStatus::None, ErrorStatus::GeneralFailure);
        for (status, measured, timing, want) in [
            (none, true, timing(3, 4), Ok(())),
            (none, true, timing(u64::MAX, 4), Ok(())),
            (none, true, Timing::UNAVAILABLE, Ok(())),
            (none, true, timing(5, 4), Err(ResultFault::DeviceTime)),
            (none, false, timing(3, 4), Err(ResultFault::Timing)),
            (failed, true, timing(3, 4), Err(ResultFault::Timing)),
        ] {
            let result = ExecutionResult { timing, ..ExecutionResult::of(status) };
            assert_eq!(validate_result(&result, 1, measured), want, "{status} {timing:?}");
        }
    }
}
