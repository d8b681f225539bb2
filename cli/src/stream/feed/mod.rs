//! What goes into a model, one frame after the other: pictures, sound, or values as they are.

use std::time::Duration;

use anyhow::Result;
use burst_tasks::Placement;

use crate::source::{CameraFacts, Frame, Live};

mod pictures;
mod values;

pub(crate) use pictures::Pictures;
pub(crate) use values::{Feeding, Values};

/// What a frame is called, and what is known of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label<'a> {
    /// Its name in results, such as its file.
    pub(crate) name: &'a str,
    /// The class that it is known to show.
    pub(crate) truth: Option<usize>,
    /// When it begins, in sound.
    pub(crate) at: Option<Duration>,
}

/// A picture, and where it lies in the model's input.
pub(crate) struct Placed<'a> {
    pub(crate) frame: Frame<'a>,
    pub(crate) placement: Placement,
}

/// The inputs for a model, one after the other.
pub(crate) trait Feed {
    /// Moves on to the next frame; false when there are no more. After an error the next call goes on behind what
    /// is damaged, or ends.
    fn advance(&mut self) -> Result<bool>;

    /// Writes the current frame into the model's input.
    fn write(&mut self, input: &mut [u8]) -> Result<()>;

    /// What the current frame is.
    fn label(&self) -> Label<'_>;

    /// The current frame, where it is a picture.
    fn picture(&self) -> Option<Placed<'_>> {
        None
    }

    /// Whether it would go on for ever.
    fn is_endless(&self) -> bool {
        false
    }

    /// Whether its frames come when they come, and not when they are asked for.
    fn comes_by_itself(&self) -> bool {
        false
    }

    /// Of a camera: when the current frame was taken, and what became of others.
    fn live(&self) -> Option<Live> {
        None
    }

    /// Of a camera: what it said of itself.
    fn camera(&self) -> Option<CameraFacts> {
        None
    }

    /// How much sound one frame is.
    fn span(&self) -> Option<Duration> {
        None
    }

    /// How long the sound is that it streams.
    fn sound(&self) -> Option<Duration> {
        None
    }
}
