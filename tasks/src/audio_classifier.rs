//! What is heard in sound.

use std::time::Duration;

use burst_hal::Device;
use burst_sound::Sound;

use crate::decode::{Class, ClassDecoder, Decoder, Stretch, TaskDecoder};
use crate::error::TaskError;
use crate::model::TaskModel;
use crate::options::TaskOptions;
use crate::runner::{Runner, SessionRunner};
use crate::sound_input::SoundFitter;

/// What was heard in a window of sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// When the window begins.
    pub at: Duration,
    /// How long it is.
    pub span: Duration,
    /// The best classes, of a model of steps those of its last step, best first, as far as the options allow them.
    pub classes: Vec<Class>,
    /// Of a model of steps, such as one of letters: the best class of each, equal neighbours as one; of any other
    /// its one step.
    pub stretches: Vec<Stretch>,
}

/// Says what is heard in sound. Models with a magnitude spectrum inside, for which the HAL has no operation, run in two
/// parts with the spectrum between them.
#[derive(Debug)]
pub struct AudioClassifier<R = SessionRunner> {
    runner: R,
    fitter: SoundFitter,
    decoder: ClassDecoder,
    timeout: Duration,
}

impl AudioClassifier {
    /// Prepares a model on a device, of this process or of a service.
    ///
    /// # Errors
    /// [`TaskError`]: the model takes no sound or is no classifier, the options contradict it, or the device
    /// does not run it.
    pub fn new(
        device: &dyn Device,
        model: &TaskModel,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        let decoder = decoder(model, options)?;
        let runner = SessionRunner::open(device, &model.imported)?;
        AudioClassifier::of(runner, device, model, decoder, options)
    }
}

impl<R: Runner> AudioClassifier<R> {
    /// Over what runs this model already, such as a client's stream. `device` computes what lies before the spectrum
    /// of a model that has one inside; it is not used for any other.
    ///
    /// # Errors
    /// As [`AudioClassifier::new`].
    pub fn over(
        runner: R,
        device: &dyn Device,
        model: &TaskModel,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        AudioClassifier::of(runner, device, model, decoder(model, options)?, options)
    }

    fn of(
        runner: R,
        device: &dyn Device,
        model: &TaskModel,
        decoder: ClassDecoder,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        let (fitter, timeout) = (SoundFitter::new(model, device)?, options.time());
        fitter.shape()?;
        Ok(AudioClassifier { runner, fitter, decoder, timeout })
    }

    /// What is heard in each window of sound, which is as long as the model takes; the last one is filled up with
    /// silence. States, where the model has some, go from each window into the next.
    ///
    /// # Errors
    /// The sound is too short, or cannot be resampled; an execution failed, took too long, or nobody answers any more.
    pub fn classify(&mut self, sound: &Sound) -> Result<Vec<Heard>, TaskError> {
        let windows = self.fitter.windows(sound.clone(), None, None)?;
        self.runner.reset_states();
        let mut heard = Vec::new();
        for begin in (0..windows.values.len()).step_by(windows.hop.max(1)) {
            let end = windows.values.len().min(begin + windows.window);
            let classes = self.classify_values(&windows.values[begin..end])?;
            let (at, span) = (windows.at(begin), windows.span());
            heard.push(Heard { at, span, classes, stretches: self.decoder.stretches() });
        }
        Ok(heard)
    }

    /// The best classes of one window of values as the model takes them: samples, or features. States go on from the
    /// window before.
    ///
    /// # Errors
    /// More values than the model takes; an execution failed, took too long, or nobody answers any more.
    pub fn classify_values(&mut self, values: &[f32]) -> Result<Vec<Class>, TaskError> {
        self.fitter.write(values, self.runner.input(0))?;
        self.runner.run(self.timeout)?;
        self.decoder.read(&mut self.runner)?;
        Ok(self.decoder.top(usize::MAX))
    }

    /// What runs the model.
    pub fn runner(&self) -> &R {
        &self.runner
    }
}

fn decoder(model: &TaskModel, options: &TaskOptions) -> Result<ClassDecoder, TaskError> {
    ClassDecoder::of_task(Decoder::new(model, None, options)?, model)
}
