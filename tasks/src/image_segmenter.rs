//! Which part of a picture shows what.

use burst_hal::Device;
use burst_pictures::PictureView;

use crate::decode::{SegmentDecoder, Share};
use crate::error::TaskError;
use crate::model::TaskModel;
use crate::options::TaskOptions;
use crate::picture_input::Placement;
use crate::picture_task::PictureRun;
use crate::runner::{Runner, SessionRunner};

/// Says of each pixel what it shows.
#[derive(Debug)]
pub struct ImageSegmenter<R = SessionRunner> {
    run: PictureRun<R, SegmentDecoder>,
}

/// The class of each pixel of a picture.
#[derive(Debug, Clone, Copy)]
pub struct Segmentation<'a> {
    segments: &'a SegmentDecoder,
    placement: Placement,
}

impl Segmentation<'_> {
    /// The classes there are, as far as the options allow them, largest first.
    #[must_use]
    pub fn shares(&self) -> Vec<Share> {
        self.segments.shares()
    }

    /// The class of a pixel of the picture; `None` where the model did not see it.
    #[must_use]
    pub fn class_at(&self, x: u32, y: u32) -> Option<u16> {
        self.segments.class_at(&self.placement, x, y)
    }

    /// Width and height of the mask as the model gives it, in pixels.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        self.segments.size()
    }

    /// The class of each pixel of that mask, row by row.
    #[must_use]
    pub fn mask(&self) -> &[u16] {
        self.segments.mask()
    }
}

impl ImageSegmenter {
    /// Prepares a model on a device, of this process or of a service.
    ///
    /// # Errors
    /// [`TaskError`]: the model takes no pictures or is no segmenter, the options contradict it, or the device
    /// does not run it.
    pub fn new(
        device: &dyn Device,
        model: &TaskModel,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        Ok(ImageSegmenter { run: PictureRun::new(device, model, options)? })
    }
}

impl<R: Runner> ImageSegmenter<R> {
    /// Over what runs this model already, such as a client's stream.
    ///
    /// # Errors
    /// As [`ImageSegmenter::new`].
    pub fn over(runner: R, model: &TaskModel, options: &TaskOptions) -> Result<Self, TaskError> {
        Ok(ImageSegmenter { run: PictureRun::over(runner, model, options)? })
    }

    /// The class of each pixel of a picture.
    ///
    /// # Errors
    /// The execution failed, took too long, or nobody answers any more.
    pub fn segment(&mut self, picture: PictureView<'_>) -> Result<Segmentation<'_>, TaskError> {
        let placement = self.run.look(picture)?;
        Ok(Segmentation { segments: &self.run.decoder, placement })
    }

    /// What runs the model.
    pub fn runner(&self) -> &R {
        self.run.runner()
    }
}
