//! What things are in a picture, and where.

use burst_hal::Device;
use burst_pictures::PictureView;

use crate::decode::{BoxDecoder, Detection};
use crate::error::TaskError;
use crate::model::TaskModel;
use crate::options::TaskOptions;
use crate::picture_task::PictureRun;
use crate::runner::{Runner, SessionRunner};

/// Finds things in a picture.
#[derive(Debug)]
pub struct ObjectDetector<R = SessionRunner> {
    run: PictureRun<R, BoxDecoder>,
}

impl ObjectDetector {
    /// Prepares a model on a device, of this process or of a service.
    ///
    /// # Errors
    /// [`TaskError`]: the model takes no pictures or is no detector, the options contradict it, or the device
    /// does not run it.
    pub fn new(
        device: &dyn Device,
        model: &TaskModel,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        Ok(ObjectDetector { run: PictureRun::new(device, model, options)? })
    }
}

impl<R: Runner> ObjectDetector<R> {
    /// Over what runs this model already, such as a client's stream.
    ///
    /// # Errors
    /// As [`ObjectDetector::new`].
    pub fn over(runner: R, model: &TaskModel, options: &TaskOptions) -> Result<Self, TaskError> {
        Ok(ObjectDetector { run: PictureRun::over(runner, model, options)? })
    }

    /// What is in a picture, best first, as far as the options allow it.
    ///
    /// # Errors
    /// The execution failed, took too long, or nobody answers any more.
    pub fn detect(&mut self, picture: PictureView<'_>) -> Result<Vec<Detection>, TaskError> {
        let placement = self.run.look(picture)?;
        Ok(self.run.decoder.detections(Some(&placement)))
    }

    /// What runs the model.
    pub fn runner(&self) -> &R {
        self.run.runner()
    }
}
