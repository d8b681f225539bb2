//! A session with any device, of this process or of a service.

use std::sync::Arc;
use std::time::Duration;

use burst_client::SharedAllocator;
use burst_hal::session::{LayoutOptions, ModelSession, SessionError, SessionOptions};
use burst_hal::{Caller, Device, ExecutionOptions, PrepareOptions, Route, TimePoint};
use burst_tflite::Imported;

use super::{Outputs, Runner};
use crate::error::TaskError;

/// A model on any device.
pub struct SessionRunner {
    session: ModelSession,
    /// What was written to each input.
    inputs: Vec<Vec<u8>>,
    /// The bytes of an output, as last asked for.
    output: Vec<u8>,
    /// Which inputs are states: the session carries them.
    states: Vec<usize>,
}

impl std::fmt::Debug for SessionRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionRunner").finish_non_exhaustive()
    }
}

impl SessionRunner {
    /// Prepares a model on a device.
    ///
    /// # Errors
    /// [`TaskError::Operation`] names the first operation that the device does not run; [`TaskError::Session`] for
    /// whatever else stands in the way.
    pub fn open(device: &dyn Device, imported: &Imported) -> Result<Self, TaskError> {
        SessionRunner::open_with(device, imported, PrepareOptions::default(), Caller::default())
    }

    /// The same, prepared like this, for this caller.
    ///
    /// # Errors
    /// As [`SessionRunner::open`].
    pub fn open_with(
        device: &dyn Device,
        imported: &Imported,
        prepare: PrepareOptions,
        caller: Caller,
    ) -> Result<Self, TaskError> {
        let layout =
            LayoutOptions { states: imported.state_bindings(), ..LayoutOptions::default() };
        let options = SessionOptions { route: Route::Burst, layout, prepare, caller };
        let session =
            ModelSession::open(device, &imported.model, &options, Arc::new(SharedAllocator))
                .map_err(|cause| refused(device, imported, cause))?;
        let layout = session.tensors().layout();
        let length = |index| layout.input_slot(0, index).range().len();
        let inputs = (0..layout.inputs().len()).map(|index| vec![0; length(index)]).collect();
        let states = imported.states.iter().map(|state| state.input_index).collect();
        Ok(SessionRunner { session, inputs, output: Vec::new(), states })
    }

    /// The session below.
    #[must_use]
    pub fn session(&self) -> &ModelSession {
        &self.session
    }
}

/// Why the device does not take the model: the first operation that it does not run, where that is it.
fn refused(device: &dyn Device, imported: &Imported, cause: SessionError) -> TaskError {
    let SessionError::Prepare(_) = cause else { return cause.into() };
    let graph = &imported.model.main;
    let supported = device.supported_operations(&imported.model).unwrap_or_default();
    let Some(index) = supported.iter().position(|is_supported| !is_supported) else {
        return cause.into();
    };
    let Some(operation) = graph.operations.get(index) else { return cause.into() };
    let outputs = graph.output_indexes.iter().zip(&imported.outputs);
    let made = outputs.filter(|(operand, _)| operation.outputs.contains(operand));
    let result = made.map(|(_, info)| info.name.clone()).collect();
    let device = device.name().to_owned();
    TaskError::Operation { device, index, operation: operation.ty, result, cause: Box::new(cause) }
}

impl Outputs for SessionRunner {
    fn output(&mut self, index: usize) -> Result<&[u8], TaskError> {
        if index >= self.session.tensors().layout().outputs().len() {
            return Err(TaskError::OutputLength { index, wanted: 1, found: 0 });
        }
        self.session.read_output(index, &mut self.output)?;
        Ok(&self.output)
    }
}

impl Runner for SessionRunner {
    fn input(&mut self, index: usize) -> &mut [u8] {
        self.inputs.get_mut(index).map_or(&mut [], Vec::as_mut_slice)
    }

    fn run(&mut self, timeout: Duration) -> Result<(), TaskError> {
        let own = self.inputs.iter().enumerate().filter(|(index, _)| !self.states.contains(index));
        for (index, bytes) in own {
            self.session.write_input(index, bytes)?;
        }
        let options = ExecutionOptions {
            measure_timing: true,
            deadline: Some(TimePoint::after(timeout)),
            loop_timeout: None,
        };
        self.session.run(&options)?;
        Ok(())
    }

    fn reset_states(&mut self) {
        self.session.reset_states();
    }
}
