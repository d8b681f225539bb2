//! A model on a device with its memory, for any number of runs.

use std::sync::Arc;

use super::allocator::PoolAllocator;
use super::error::SessionError;
use super::executor::Executor;
use super::layout::{LayoutOptions, SessionLayout};
use super::tensors::SessionTensors;
use crate::{
    Caller, Device, Dimensions, ErrorStatus, ExecutionOptions, ExecutionResult, MemoryError, Model,
    PrepareOptions, Route,
};

/// How often a run is repeated with more room for its outputs before it fails. An execution reports
/// the sizes of the outputs that it reached; the sizes of the others come with the next attempt.
const MAX_ATTEMPTS: usize = 8;

/// How a session is set up.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// How requests travel.
    pub route: Route,
    /// How inputs, outputs and states are laid out.
    pub layout: LayoutOptions,
    /// How the model is prepared.
    pub prepare: PrepareOptions,
    /// For whom the model is prepared and executed.
    pub caller: Caller,
}

/// A model on a device with memory for its inputs, outputs and states, which go from one run into
/// the next.
///
/// Write the inputs, run, read the outputs: [`write_input`](ModelSession::write_input),
/// [`run`](ModelSession::run), [`read_output`](ModelSession::read_output).
pub struct ModelSession {
    executor: Executor,
    tensors: SessionTensors,
    allocator: Arc<dyn PoolAllocator>,
    result: ExecutionResult,
}

impl ModelSession {
    /// Lays a model out, makes its memory and prepares it. States are real 0. Types of the device's extensions are
    /// known, besides those of the options.
    ///
    /// # Errors
    /// The model cannot be laid out, there is no memory, or the device refuses it.
    pub fn open(
        device: &dyn Device,
        model: &Model,
        options: &SessionOptions,
        allocator: Arc<dyn PoolAllocator>,
    ) -> Result<Self, SessionError> {
        let mut layout = options.layout.clone();
        layout.extensions.extend(device.supported_extensions());
        let layout = SessionLayout::new(model, &layout)?;
        let tensors = SessionTensors::allocate(layout, &*allocator)?;
        let caller = &options.caller;
        let prepared = device
            .prepare_model_for(model, &options.prepare, caller)
            .map_err(SessionError::Prepare)?;
        let executor =
            Executor::open_for(prepared, options.route, caller).map_err(SessionError::Burst)?;
        Ok(ModelSession::new(executor, tensors, allocator))
    }

    /// A session of parts that are there already; a burst is handed the pools now. `allocator` makes more room where outputs turn
    /// out to need it.
    #[must_use]
    pub fn new(
        mut executor: Executor,
        tensors: SessionTensors,
        allocator: Arc<dyn PoolAllocator>,
    ) -> Self {
        tensors.pools().for_each(|pool| executor.cache_memory(pool));
        let result = ExecutionResult::of(ErrorStatus::None);
        ModelSession { executor, tensors, allocator, result }
    }

    /// Writes an input, which stays until it is written again; of a state the value that the first
    /// run and every one after a reset begins with.
    ///
    /// # Errors
    /// The model has no such input, or one of another size; the memory cannot be written.
    pub fn write_input(&mut self, index: usize, bytes: &[u8]) -> Result<(), SessionError> {
        self.tensors.write_input(0, index, bytes)
    }

    /// Runs once. Where outputs need more room than was set aside, makes that room and runs again. A run that fails leaves the states as they were.
    ///
    /// # Errors
    /// [`SessionError::Status`] with the execution's status;
    /// [`SessionError::Layout`] or [`SessionError::Memory`] where outputs cannot have the room that
    /// they need.
    pub fn run(&mut self, options: &ExecutionOptions) -> Result<&ExecutionResult, SessionError> {
        for _ in 0..MAX_ATTEMPTS {
            self.executor.execute(self.tensors.request(0), options, &mut self.result);
            let status = self.result.status;
            if status == ErrorStatus::None {
                self.tensors.advance_states();
                return Ok(&self.result);
            }
            let shapes = &self.result.output_shapes;
            let is_short = status == ErrorStatus::OutputInsufficientSize;
            if !is_short || !self.tensors.grow_outputs(shapes, &*self.allocator)? {
                return Err(SessionError::Status(status));
            }
        }
        Err(SessionError::Status(ErrorStatus::OutputInsufficientSize))
    }

    /// The result of the last run.
    #[must_use]
    pub fn result(&self) -> &ExecutionResult {
        &self.result
    }

    /// Sizes of an output of the last run along each axis: those that the driver reported, else those
    /// of the model.
    ///
    /// # Panics
    /// There is no such output.
    #[must_use]
    pub fn output_dimensions(&self, index: usize) -> &Dimensions {
        let reported = self.result.output_shapes.get(index);
        reported
            .map_or(&self.tensors.layout().outputs()[index].dimensions, |shape| &shape.dimensions)
    }

    /// Copies an output of the last run into `bytes`, which gets its length.
    ///
    /// # Errors
    /// The memory cannot be read.
    ///
    /// # Panics
    /// There is no such output.
    pub fn read_output(&self, index: usize, bytes: &mut Vec<u8>) -> Result<(), MemoryError> {
        self.tensors.read_output(index, &self.result, bytes)
    }

    /// Copies a state, as it is now, into `bytes`, which gets its length.
    ///
    /// # Errors
    /// The memory cannot be read.
    ///
    /// # Panics
    /// There is no such state.
    pub fn read_state(&self, index: usize, bytes: &mut Vec<u8>) -> Result<(), MemoryError> {
        self.tensors.read_state(index, bytes)
    }

    /// Lets the next run begin with the states that the first one began with.
    pub fn reset_states(&mut self) {
        self.tensors.reset_states();
    }

    /// Where everything lies, and the requests.
    #[must_use]
    pub fn tensors(&self) -> &SessionTensors {
        &self.tensors
    }
}
