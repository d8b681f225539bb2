//! A model in parts: what a device runs, and what is computed in this process in between.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::session::{LayoutOptions, ModelSession, SessionError, SessionOptions, StateBinding};
use burst_hal::{Caller, ExecutionOptions, Route, TimePoint};

use super::model::{OutputTensor, StatefulModel};
use crate::interface::Interface;
use crate::subject::Target;

/// Room for an output of which the model does not know the size, at first.
const UNKNOWN_OUTPUT_BYTES: u32 = 4096;
/// Most room for all inputs, or for all outputs: sizes can come from a file.
const MAX_POOL_BYTES: u64 = 1 << 30;
/// Far above any execution; only turns a hang into an error.
const DEADLINE: Duration = Duration::from_secs(300);

/// Turns model files into models.
pub trait Importer: Sync {
    /// The model of a file, or the part between the named tensors: none named, from the file's
    /// inputs, to its outputs.
    ///
    /// # Errors
    /// What stands in the way, in words.
    fn import(&self, file: &[u8], from: &[&str], to: &[&str]) -> Result<ImportedModel, String>;
}

/// A model as one part, or as several with a bridge between each and the next.
pub struct ImportedModel {
    /// What a device runs; at least one.
    pub parts: Vec<StatefulModel>,
    /// One fewer than parts.
    pub bridges: Vec<Box<dyn Bridge>>,
}

impl ImportedModel {
    /// A model that a device runs as a whole.
    #[must_use]
    pub fn whole(model: StatefulModel) -> Self {
        ImportedModel { parts: vec![model], bridges: Vec::new() }
    }
}

/// What no device computes, between two parts of a model.
pub trait Bridge: Send {
    /// The inputs of the next part, without its states, from the outputs of the part before.
    ///
    /// # Errors
    /// What is wrong with the outputs, in words.
    fn cross(&mut self, outputs: &[OutputTensor]) -> Result<Vec<Vec<u8>>, String>;
}

/// The parts of a model, prepared on a device. States go from one execution to the next.
pub struct Pipeline {
    sessions: Vec<ModelSession>,
    interface: Interface,
}

/// Why a pipeline gives no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// A part does not run.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The way from one part to the next.
    #[error("between two parts of the model: {0}")]
    Bridge(String),
}

impl Pipeline {
    /// Prepares every part. States are zero.
    ///
    /// # Errors
    /// The device refuses one, or there is no memory.
    pub fn open(
        target: Target<'_>,
        model: &ImportedModel,
        route: Route,
    ) -> Result<Self, SessionError> {
        Pipeline::open_for(target, model, route, &Caller::default())
    }

    /// The same for this caller.
    ///
    /// # Errors
    /// As [`Pipeline::open`].
    pub fn open_for(
        target: Target<'_>,
        model: &ImportedModel,
        route: Route,
        caller: &Caller,
    ) -> Result<Self, SessionError> {
        let open = |part: &StatefulModel| {
            let layout = LayoutOptions {
                states: part.states.clone(),
                unknown_output_bytes: Some(UNKNOWN_OUTPUT_BYTES),
                max_pool_bytes: MAX_POOL_BYTES,
                ..LayoutOptions::default()
            };
            let caller = caller.clone();
            let options = SessionOptions { route, layout, caller, ..SessionOptions::default() };
            ModelSession::open(target.device, &part.model, &options, Arc::clone(target.memory))
        };
        let sessions = model.parts.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Pipeline { sessions, interface: Interface::Hal })
    }

    /// The same through another interface: what cannot be asked for there is not.
    #[must_use]
    pub fn through(self, interface: Interface) -> Self {
        Pipeline { interface, ..self }
    }

    /// Puts every state back to what it began with: zero, or what [`Pipeline::set_states`] gave it.
    pub fn reset(&mut self) {
        self.sessions.iter_mut().for_each(ModelSession::reset_states);
    }

    /// Every state as it is now, those of the first part first.
    ///
    /// # Errors
    /// Their memory cannot be read.
    pub fn states(&self) -> Result<Vec<OutputTensor>, SessionError> {
        let mut states = Vec::new();
        for session in &self.sessions {
            let layout = session.tensors().layout();
            for (index, state) in layout.states().iter().enumerate() {
                let operand = &layout.inputs()[state.input];
                let mut bytes = Vec::new();
                session.read_state(index, &mut bytes)?;
                let (ty, dimensions) = (operand.ty, operand.dimensions.clone());
                states.push(OutputTensor { ty, dimensions, bytes });
            }
        }
        Ok(states)
    }

    /// Lets the next execution begin with other states than zero, in the order of
    /// [`Pipeline::states`].
    ///
    /// # Errors
    /// One has another size, or their memory cannot be written.
    pub fn set_states(&mut self, states: &[Vec<u8>]) -> Result<(), SessionError> {
        let mut values = states.iter();
        for session in &mut self.sessions {
            let states: Vec<StateBinding> = session.tensors().layout().states().to_vec();
            for (state, value) in states.iter().zip(&mut values) {
                session.write_input(state.input, value)?;
            }
            session.reset_states();
        }
        Ok(())
    }

    /// How long the parts took in the driver at the last execution, in microseconds; `None` where
    /// the driver did not say.
    #[must_use]
    pub fn driver_time_us(&self) -> Option<u64> {
        let times = self.sessions.iter().map(|session| session.result().timing.time_in_driver_us);
        times
            .into_iter()
            .try_fold(0u64, |sum, one| sum.checked_add((one != u64::MAX).then_some(one)?))
    }

    /// Executes every part: the outputs of the last one, those of its states behind the others.
    ///
    /// # Errors
    /// A part or the way to it failed.
    pub fn execute(
        &mut self,
        inputs: &[Vec<u8>],
        bridges: &mut [Box<dyn Bridge>],
    ) -> Result<Vec<OutputTensor>, PipelineError> {
        let Some((first, others)) = self.sessions.split_first_mut() else { return Ok(Vec::new()) };
        let interface = self.interface;
        let mut outputs = run(first, inputs, interface)?;
        for (session, bridge) in others.iter_mut().zip(bridges) {
            let between = bridge.cross(&outputs).map_err(PipelineError::Bridge)?;
            outputs = run(session, &between, interface)?;
        }
        Ok(outputs)
    }
}

/// Writes the inputs that are no states, executes, and copies every output out.
fn run(
    session: &mut ModelSession,
    inputs: &[Vec<u8>],
    interface: Interface,
) -> Result<Vec<OutputTensor>, SessionError> {
    for (index, input) in inputs.iter().enumerate() {
        session.write_input(index, input)?;
    }
    session.run(&ExecutionOptions {
        measure_timing: interface.has_deadlines(),
        deadline: interface.has_deadlines().then(|| TimePoint::after(DEADLINE)),
        loop_timeout: None,
    })?;
    let operands = session.tensors().layout().outputs().iter().enumerate();
    let output = |(index, operand): (usize, &burst_hal::Operand)| {
        let mut bytes = Vec::new();
        session.read_output(index, &mut bytes)?;
        let dimensions = session.output_dimensions(index).clone();
        Ok(OutputTensor { ty: operand.ty, dimensions, bytes })
    };
    operands.map(output).collect()
}
