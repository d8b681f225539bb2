//! Super-resolution: a larger picture of a picture.

use burst_hal::Device;
use burst_pictures::{Picture, PictureView};

use crate::decode::PictureDecoder;
use crate::error::TaskError;
use crate::model::TaskModel;
use crate::options::TaskOptions;
use crate::picture_task::PictureRun;
use crate::runner::{Runner, SessionRunner};

/// Makes a picture larger.
#[derive(Debug)]
pub struct ImageUpscaler<R = SessionRunner> {
    run: PictureRun<R, PictureDecoder>,
}

impl ImageUpscaler {
    /// Prepares a model on a device, of this process or of a service.
    ///
    /// # Errors
    /// [`TaskError`]: the model takes no pictures or is no super-resolution, the options contradict it, or the device
    /// does not run it.
    pub fn new(
        device: &dyn Device,
        model: &TaskModel,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        Ok(ImageUpscaler { run: PictureRun::new(device, model, options)? })
    }
}

impl<R: Runner> ImageUpscaler<R> {
    /// Over what runs this model already, such as a client's stream.
    ///
    /// # Errors
    /// As [`ImageUpscaler::new`].
    pub fn over(runner: R, model: &TaskModel, options: &TaskOptions) -> Result<Self, TaskError> {
        Ok(ImageUpscaler { run: PictureRun::over(runner, model, options)? })
    }

    /// The larger picture. Of another aspect than the model's it shows as much as the fit leaves.
    ///
    /// # Errors
    /// The execution failed, took too long, or nobody answers any more.
    pub fn upscale(&mut self, picture: PictureView<'_>) -> Result<Picture, TaskError> {
        self.run.look(picture)?;
        let (width, height) = self.run.decoder.size();
        Ok(Picture { width, height, rgb: self.run.decoder.rgb().to_vec() })
    }

    /// What runs the model.
    pub fn runner(&self) -> &R {
        self.run.runner()
    }
}
