//! A model in parts: what a device runs, and what is computed in this process in between.

use super::session::{OutputTensor, Session, SessionError, StatefulModel};
use crate::arguments::MemoryMaker;
use crate::case::{Mode, Target};

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

/// The parts of a model, prepared on a device.
pub struct Pipeline {
    sessions: Vec<Session>,
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
    /// Prepares every part.
    ///
    /// # Errors
    /// The device refuses one.
    pub fn open(
        target: Target<'_>,
        model: &ImportedModel,
        mode: Mode,
    ) -> Result<Self, SessionError> {
        let sessions = model.parts.iter().map(|part| Session::open(target, part, mode));
        Ok(Pipeline { sessions: sessions.collect::<Result<_, _>>()? })
    }

    /// Puts every state back to zero.
    ///
    /// # Errors
    /// Their memory cannot be written.
    pub fn reset(&mut self) -> Result<(), SessionError> {
        self.sessions.iter_mut().try_for_each(Session::reset)
    }

    /// Every state as it is now, those of the first part first.
    ///
    /// # Errors
    /// Their memory cannot be read.
    pub fn states(&self) -> Result<Vec<OutputTensor>, SessionError> {
        let mut states = Vec::new();
        for session in &self.sessions {
            states.extend(session.states()?);
        }
        Ok(states)
    }

    /// Gives the states other values than zero, in the order of [`Pipeline::states`].
    ///
    /// # Errors
    /// One has another size, or their memory cannot be written.
    pub fn set_states(&mut self, states: &[Vec<u8>]) -> Result<(), SessionError> {
        let mut states = states.iter();
        for session in &mut self.sessions {
            session.set_states(&mut states)?;
        }
        Ok(())
    }

    /// How long the parts took in the driver at the last execution, in microseconds; `None` where
    /// the driver did not say.
    #[must_use]
    pub fn driver_time_us(&self) -> Option<u64> {
        let times = self.sessions.iter().map(|session| session.timing().time_in_driver_us);
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
        memory: &dyn MemoryMaker,
    ) -> Result<Vec<OutputTensor>, PipelineError> {
        let Some((first, others)) = self.sessions.split_first_mut() else { return Ok(Vec::new()) };
        let mut outputs = first.run(inputs, memory)?;
        for (session, bridge) in others.iter_mut().zip(bridges) {
            let between = bridge.cross(&outputs).map_err(PipelineError::Bridge)?;
            outputs = session.run(&between, memory)?;
        }
        Ok(outputs)
    }
}
