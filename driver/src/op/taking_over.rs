//! What a kernel may compute beside its own operation: the one behind it.

use std::ops::Range;

use burst_hal::MemoryCharge;

use super::Kernel;
use crate::OpError;

/// A sum of two tensors of 32-bit floats of one shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FloatSum {
    /// Smallest and largest result; NaN stays NaN.
    pub range: (f32, f32),
}

/// A kernel of which each channel of the output depends on the same channel of the first input alone.
///
/// Bytes are those of images, pixel by pixel.
pub trait ByChannels: Send + Sync {
    /// Pixels of the input, and of the output.
    fn pixels(&self) -> (usize, usize);

    /// Multiplications, each with an addition.
    fn products(&self) -> usize;

    /// Computes some channels of images that have these channels only. They begin at a multiple of [`CHANNEL_STEP`], and end
    /// at one or with the last of all.
    ///
    /// # Errors
    /// [`OpError::Internal`] for other numbers of bytes.
    fn run_channels(
        &self,
        channels: Range<usize>,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<(), OpError>;
}

/// Where blocks of channels for [`ByChannels::run_channels`] begin: at a multiple of so many.
pub const CHANNEL_STEP: usize = 32;

/// A kernel that another one is to run behind itself.
#[derive(Debug)]
pub struct Behind {
    /// The kernel, which is [by channels](Kernel::by_channels).
    pub kernel: Box<dyn Kernel>,
    /// What it holds is paid for as long as this is there.
    pub charge: MemoryCharge,
}
