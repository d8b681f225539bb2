//! What became of the frames that nobody got.

use crate::clock::Distrust;

/// Counts since the camera was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that were handed out.
    pub given: u64,
    /// Frames that the driver marked as damaged, or gave with less than their bytes.
    pub damaged: u64,
    /// Frames that were passed over as newer ones were there already.
    pub skipped: u64,
    /// Frames that the driver had no buffer for: gaps in its numbers.
    pub missed: u64,
    /// Frames whose time stamp could not be believed.
    pub untimed: u64,
    /// Why not, of the last such frame.
    pub distrust: Option<Distrust>,
}
