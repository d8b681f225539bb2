//! What a picture shows.

use burst_hal::Device;
use burst_pictures::PictureView;

use crate::decode::{Class, ClassDecoder};
use crate::error::TaskError;
use crate::model::TaskModel;
use crate::options::TaskOptions;
use crate::picture_task::PictureRun;
use crate::runner::{Runner, SessionRunner};

/// Says what a picture shows.
#[derive(Debug)]
pub struct ImageClassifier<R = SessionRunner> {
    run: PictureRun<R, ClassDecoder>,
}

impl ImageClassifier {
    /// Prepares a model on a device, of this process or of a service.
    ///
    /// # Errors
    /// [`TaskError`]: the model takes no pictures or is no classifier, the options contradict it, or the device
    /// does not run it.
    pub fn new(
        device: &dyn Device,
        model: &TaskModel,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        Ok(ImageClassifier { run: PictureRun::new(device, model, options)? })
    }
}

impl<R: Runner> ImageClassifier<R> {
    /// Over what runs this model already, such as a client's stream.
    ///
    /// # Errors
    /// As [`ImageClassifier::new`].
    pub fn over(runner: R, model: &TaskModel, options: &TaskOptions) -> Result<Self, TaskError> {
        Ok(ImageClassifier { run: PictureRun::over(runner, model, options)? })
    }

    /// The best classes of a picture, best first, as far as the options allow them.
    ///
    /// # Errors
    /// The execution failed, took too long, or nobody answers any more.
    pub fn classify(&mut self, picture: PictureView<'_>) -> Result<Vec<Class>, TaskError> {
        self.run.look(picture)?;
        Ok(self.run.decoder.top(usize::MAX))
    }

    /// What runs the model.
    pub fn runner(&self) -> &R {
        self.run.runner()
    }
}
