//! The CPU device in this process: what the same work costs without any transport.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use burst_hal::session::{
    HeapAllocator, LayoutOptions, ModelSession, SessionError, SessionOptions,
};
use burst_hal::{Caller, Device, ErrorStatus, ExecutionOptions, PrepareOptions, Route, TimePoint};
use burst_tasks::{Outputs, TaskError};
use burst_tflite::Imported;

use super::Options;
use crate::route::RouteArg;
use crate::trace::Tracing;

/// A model in this process.
pub(crate) struct InProcess {
    session: ModelSession,
    /// The bytes of the first input, for the caller to fill.
    input: Vec<u8>,
    /// The bytes of an output, as last asked for.
    output: Vec<u8>,
}

impl InProcess {
    /// Prepares a model on the device that is wanted; its first input is the caller's, the others are states.
    pub(crate) fn new(imported: &Imported, wanted: &Options<'_>) -> Result<Self> {
        let caller = wanted.tracing.map_or_else(Caller::default, Tracing::caller);
        InProcess::on(&wanted.threads.device(wanted.device)?, imported, wanted.prepare(), caller)
    }

    /// Prepares a model on this device, for this caller.
    pub(crate) fn on(
        device: &dyn Device,
        imported: &Imported,
        prepare: PrepareOptions,
        caller: Caller,
    ) -> Result<Self> {
        let layout =
            LayoutOptions { states: imported.state_bindings(), ..LayoutOptions::default() };
        let options = SessionOptions { route: Route::Burst, layout, prepare, caller };
        let session =
            ModelSession::open(device, &imported.model, &options, Arc::new(HeapAllocator))
                .context("the model cannot be prepared")?;
        let layout = session.tensors().layout();
        let input = if layout.inputs().is_empty() {
            Vec::new()
        } else {
            vec![0; layout.input_slot(0, 0).range().len()]
        };
        Ok(InProcess { session, input, output: Vec::new() })
    }
}

impl Outputs for InProcess {
    fn output(&mut self, index: usize) -> Result<&[u8], TaskError> {
        self.session.read_output(index, &mut self.output)?;
        Ok(&self.output)
    }
}

impl super::Path for InProcess {
    fn input(&mut self) -> &mut [u8] {
        &mut self.input
    }

    fn execute(&mut self, deadline: Duration) -> Result<(ErrorStatus, Option<Duration>)> {
        if !self.input.is_empty() {
            self.session.write_input(0, &self.input)?;
        }
        let options = ExecutionOptions {
            measure_timing: true,
            deadline: Some(TimePoint::after(deadline)),
            loop_timeout: None,
        };
        match self.session.run(&options) {
            Ok(result) => {
                let micros = result.timing.time_in_driver_us;
                let driver = (micros != u64::MAX).then(|| Duration::from_micros(micros));
                Ok((ErrorStatus::None, driver))
            }
            Err(SessionError::Status(status)) => Ok((status, None)),
            Err(error) => Err(error.into()),
        }
    }

    fn reset_states(&mut self) {
        self.session.reset_states();
    }

    fn driver_pid(&self) -> u32 {
        std::process::id()
    }

    fn route(&self) -> RouteArg {
        RouteArg::InProcess
    }
}

#[cfg(test)]
mod tests;
