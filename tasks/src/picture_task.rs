//! What all tasks of pictures have in common: a picture goes in, the outputs are read.

use std::time::Duration;

use burst_hal::Device;
use burst_pictures::PictureView;

use crate::decode::{Decoder, PictureTask, TaskDecoder, picture_task};
use crate::error::TaskError;
use crate::model::TaskModel;
use crate::options::TaskOptions;
use crate::picture_input::{Fit, Normalisation, PictureFitter, PictureShape, Placement};
use crate::runner::{Runner, SessionRunner};

/// What fits pictures into a model's input, as the options say, or else as the model's file does, or else as is usual
/// for its task.
///
/// # Errors
/// [`TaskError::Inputs`], [`TaskError::InputType`], [`TaskError::InputShape`]: the model takes no pictures.
pub fn picture_fitter(
    model: &TaskModel,
    options: &TaskOptions,
) -> Result<PictureFitter, TaskError> {
    let input = model.own_input()?;
    let task = picture_task(model, PictureShape::of(input)?);
    let fit = options.fit.unwrap_or(match task {
        PictureTask::Locate => Fit::Stretch,
        PictureTask::Picture | PictureTask::Other => Fit::Crop,
    });
    let normalisation = options.normalisation.or(model.normalisation).unwrap_or(match task {
        PictureTask::Picture => Normalisation::BYTE,
        PictureTask::Locate | PictureTask::Other => Normalisation::SIGNED,
    });
    PictureFitter::new(input, fit, normalisation)
}

/// A model of pictures that runs, with outputs of one kind.
#[derive(Debug)]
pub(crate) struct PictureRun<R, D> {
    runner: R,
    fitter: PictureFitter,
    pub(crate) decoder: D,
    timeout: Duration,
}

impl<D: TaskDecoder> PictureRun<SessionRunner, D> {
    /// On a device.
    pub(crate) fn new(
        device: &dyn Device,
        model: &TaskModel,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        // What is wrong with the options is told before anything is prepared.
        let parts = parts(model, options)?;
        Ok(PictureRun::of(SessionRunner::open(device, &model.imported)?, parts, options))
    }
}

impl<R: Runner, D: TaskDecoder> PictureRun<R, D> {
    /// Over what runs this model already.
    pub(crate) fn over(
        runner: R,
        model: &TaskModel,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        Ok(PictureRun::of(runner, parts(model, options)?, options))
    }

    fn of(runner: R, (fitter, decoder): (PictureFitter, D), options: &TaskOptions) -> Self {
        PictureRun { runner, fitter, decoder, timeout: options.time() }
    }

    /// Lets the model look at a picture. States begin anew: pictures have nothing to do with each other.
    pub(crate) fn look(&mut self, picture: PictureView<'_>) -> Result<Placement, TaskError> {
        self.fitter.write(picture, self.runner.input(0))?;
        self.runner.reset_states();
        self.runner.run(self.timeout)?;
        self.decoder.take(&mut self.runner)?;
        Ok(self.fitter.placement(picture.width(), picture.height()))
    }

    /// What runs the model.
    pub(crate) fn runner(&self) -> &R {
        &self.runner
    }
}

fn parts<D: TaskDecoder>(
    model: &TaskModel,
    options: &TaskOptions,
) -> Result<(PictureFitter, D), TaskError> {
    let fitter = picture_fitter(model, options)?;
    let decoder = D::of_task(Decoder::new(model, Some(&fitter), options)?, model)?;
    Ok((fitter, decoder))
}
