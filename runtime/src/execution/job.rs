//! One execution as it was when it started, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::{Dimensions, OutputShape, ResultCode, TimePoint, Timing};

use super::arguments::Bound;
use crate::compiled::Compiled;
use crate::switches::Switches;

/// How an execution is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunOptions {
    pub(super) measure: bool,
    pub(super) deadline: Option<TimePoint>,
    pub(super) loop_timeout: Option<Duration>,
    /// Whether steps of this process use bursts, too.
    pub(super) all_bursts: bool,
    pub(super) switches: Switches,
}

/// An execution that has started. Dropped without having run, what it would have written has no value.
pub(super) struct Job {
    pub(super) compiled: Arc<Compiled>,
    pub(super) inputs: Vec<Bound>,
    pub(super) outputs: Vec<Bound>,
    pub(super) options: RunOptions,
    pub(super) has_run: bool,
}

/// How an execution ended.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) code: ResultCode,
    /// One per output where the code is NO_ERROR or OUTPUT_INSUFFICIENT_SIZE.
    pub(super) outputs: Vec<OutputShape>,
    pub(super) timing_launched: Timing,
    pub(super) timing_fenced: Timing,
}

impl Outcome {
    /// One without shapes and times.
    pub(super) fn of(code: ResultCode) -> Self {
        let (timing_launched, timing_fenced) = (Timing::UNAVAILABLE, Timing::UNAVAILABLE);
        Outcome { code, outputs: Vec::new(), timing_launched, timing_fenced }
    }

    /// One that went well.
    pub(super) fn done(dimensions: Vec<Dimensions>, timing: Timing) -> Self {
        let shape = |dimensions| OutputShape { dimensions, is_sufficient: true };
        let outputs = dimensions.into_iter().map(shape).collect();
        let code = ResultCode::NoError;
        Outcome { code, outputs, timing_launched: timing, timing_fenced: timing }
    }
}

impl Job {
    /// Outputs in memories that were made for roles: they have values of these dimensions now, or none.
    pub(super) fn settle(&self, dimensions: Option<&[Dimensions]>) {
        for (position, output) in self.outputs.iter().enumerate() {
            let Some(roled) = output.roled() else { continue };
            match dimensions.and_then(|all| all.get(position)) {
                Some(dimensions) => roled.is_written(dimensions.clone()),
                None => roled.is_lost(),
            }
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.has_run {
            self.settle(None);
        }
    }
}
