//! Models with states: each step begins where the one before ended.

use std::time::Duration;

use burst_hal::Device;

use crate::decode::{Answer, Decoder};
use crate::error::TaskError;
use crate::model::TaskModel;
use crate::options::TaskOptions;
use crate::runner::{Runner, SessionRunner};
use crate::sound_input::SoundFitter;

/// Steps of a model whose states go from each into the next: what it hears, or predicts, as it goes on. States stay in
/// the memory of the device.
#[derive(Debug)]
pub struct RecurrentStream<R = SessionRunner> {
    runner: R,
    fitter: SoundFitter,
    decoder: Decoder,
    timeout: Duration,
}

impl RecurrentStream {
    /// Prepares a model on a device, of this process or of a service. States begin as zeros.
    ///
    /// # Errors
    /// [`TaskError`]: the model takes no numbers, the options contradict it, or the device does not run it.
    pub fn new(
        device: &dyn Device,
        model: &TaskModel,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        RecurrentStream::over(SessionRunner::open(device, &model.imported)?, device, model, options)
    }
}

impl<R: Runner> RecurrentStream<R> {
    /// Over what runs this model already, such as a client's stream. `device` computes what lies before the spectrum
    /// of a model that has one inside; it is not used for any other.
    ///
    /// # Errors
    /// As [`RecurrentStream::new`].
    pub fn over(
        runner: R,
        device: &dyn Device,
        model: &TaskModel,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        let (fitter, decoder) =
            (SoundFitter::new(model, device)?, Decoder::new(model, None, options)?);
        Ok(RecurrentStream { runner, fitter, decoder, timeout: options.time() })
    }

    /// How many values a step takes.
    #[must_use]
    pub fn window(&self) -> usize {
        self.fitter.window()
    }

    /// One step: the numbers of the model's first output. Missing values at the end are zeros.
    ///
    /// # Errors
    /// More values than a step takes; the execution failed, took too long, or nobody answers any more. A step that
    /// failed leaves the states as they were.
    pub fn step(&mut self, values: &[f32]) -> Result<&[f32], TaskError> {
        self.fitter.write(values, self.runner.input(0))?;
        self.runner.run(self.timeout)?;
        self.decoder.read(&mut self.runner)?;
        Ok(match &self.decoder {
            Decoder::Classes(classes) => classes.scores(),
            Decoder::Values(values) => values.values(),
            _ => &[],
        })
    }

    /// What the last step came to, with labels where its outputs are scores of classes.
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        self.decoder.answer(usize::MAX, None)
    }

    /// Lets the next step begin as the first one did.
    pub fn reset(&mut self) {
        self.runner.reset_states();
    }

    /// What runs the model.
    pub fn runner(&self) -> &R {
        &self.runner
    }
}
