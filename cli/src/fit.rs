//! How frames become a model's input, as the command line calls it.

use burst_tasks::Normalisation;

/// How a frame of another aspect than the model's is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Fit {
    /// Cut the longer side, keep the centre.
    Crop,
    /// Squeeze the whole frame.
    Stretch,
    /// Keep the whole frame, with black bars.
    Pad,
}

impl From<Fit> for burst_tasks::Fit {
    fn from(fit: Fit) -> Self {
        match fit {
            Fit::Crop => burst_tasks::Fit::Crop,
            Fit::Stretch => burst_tasks::Fit::Stretch,
            Fit::Pad => burst_tasks::Fit::Pad,
        }
    }
}

/// What real number a byte of 0 and a byte of 255 stand for in a float input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FloatRange {
    /// −1 to 1: `(byte − 127.5) / 127.5`.
    Signed,
    /// 0 to 1.
    Unit,
    /// 0 to 255.
    Byte,
}

impl From<FloatRange> for Normalisation {
    fn from(range: FloatRange) -> Self {
        match range {
            FloatRange::Signed => Normalisation::SIGNED,
            FloatRange::Unit => Normalisation::UNIT,
            FloatRange::Byte => Normalisation::BYTE,
        }
    }
}
