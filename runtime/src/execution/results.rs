//! What is known of an execution that has ended: times, and dimensions of its outputs.

use burst_hal::validate::Direction;
use burst_hal::{OutputShape, ResultCode, Timing};

use super::{Execution, State};
use crate::error::{Error, Result};
use crate::process::check_process;

impl Execution {
    /// How long it took, in nanoseconds; `u64::MAX` where nobody knows, and with every other code than NO_ERROR.
    ///
    /// Codes 0 and 1 are the times on the hardware and in the driver, 2 and 3 the same from the moment on at which
    /// all dependencies had ended.
    pub fn duration(&self, code: i32) -> (ResultCode, u64) {
        let unknown = |code| (code, u64::MAX);
        if let Err(error) = check_process() {
            return unknown(error.code);
        }
        let inner = self.resolved();
        let outcome = match &inner.state {
            _ if !(0..=3).contains(&code) => return unknown(ResultCode::BadData),
            State::Completed(outcome) if inner.settings.measure => outcome,
            _ => return unknown(ResultCode::BadState),
        };
        if outcome.code != ResultCode::NoError {
            return unknown(ResultCode::BadState);
        }
        let Timing { time_on_device_us, time_in_driver_us } = match code {
            0 | 1 => outcome.timing_launched,
            _ => outcome.timing_fenced,
        };
        let micros = if code % 2 == 0 { time_on_device_us } else { time_in_driver_us };
        (ResultCode::NoError, micros.saturating_mul(1000))
    }

    /// How many dimensions an output turned out to have. OUTPUT_INSUFFICIENT_SIZE, with the number, for one that
    /// had too little room.
    pub fn output_operand_rank(&self, index: i32) -> (ResultCode, Option<u32>) {
        match self.output_shape(index) {
            Err(error) => (error.code, None),
            Ok((code, shape)) => (code, u32::try_from(shape.dimensions.len()).ok()),
        }
    }

    /// Which dimensions an output turned out to have; as [`Execution::output_operand_rank`]. BAD_DATA for a
    /// scalar.
    pub fn output_operand_dimensions(&self, index: i32) -> (ResultCode, Option<Vec<u32>>) {
        match self.output_shape(index) {
            Err(error) => (error.code, None),
            Ok((_, shape)) if shape.dimensions.is_empty() => (ResultCode::BadData, None),
            Ok((code, shape)) => (code, Some(shape.dimensions.to_vec())),
        }
    }

    fn output_shape(&self, index: i32) -> Result<(ResultCode, OutputShape)> {
        check_process()?;
        let inner = self.resolved();
        let State::Completed(outcome) = &inner.state else {
            return Err(Error::bad_state("the execution has not ended"));
        };
        if !matches!(outcome.code, ResultCode::NoError | ResultCode::OutputInsufficientSize) {
            return Err(Error::bad_state(format!("the execution has failed: {}", outcome.code)));
        }
        let (position, _) = self.compiled.port(Direction::Output, index)?;
        let shape = outcome.outputs.get(position).cloned();
        let shape = shape.ok_or_else(|| Error::bad_state("the shapes are not known"))?;
        match shape.is_sufficient {
            true => Ok((ResultCode::NoError, shape)),
            false => Ok((ResultCode::OutputInsufficientSize, shape)),
        }
    }
}
