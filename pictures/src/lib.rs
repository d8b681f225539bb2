//! Pictures as rows of RGB bytes: read from JPEG and PNG files within limits, scaled, written as
//! PNG.
//!
//! The decoders, the scaler and the encoder are generic libraries. Each crate that names them
//! directly compiles them once more, and so does its test build. So this crate is the only one that names
//! them, and nothing in its interface is generic.

mod error;
mod file;
mod jpeg;
mod limits;
mod motion_jpeg;
mod scale;

pub use error::PictureError;
pub use file::{encode_jpeg, read, write_png};
pub use limits::{MAX_DECODED_BYTES, MAX_FILE_BYTES, MAX_SIDE};
pub use motion_jpeg::decode_motion_jpeg;
pub use scale::Scaler;

/// A picture: `height` rows from top to bottom, each of `width` pixels, a pixel being the bytes
/// red, green, blue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// `width * height * 3` bytes.
    pub rgb: Vec<u8>,
}

/// A part of a picture, in its pixels; edges may lie between pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    /// Distance from the picture's left edge.
    pub left: f64,
    /// Distance from the picture's upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// Bytes that a picture of this size takes; `None` where memory cannot have that many.
#[must_use]
pub fn rgb_bytes(width: u32, height: u32) -> Option<usize> {
    let pixels = u64::from(width).checked_mul(u64::from(height))?;
    usize::try_from(pixels.checked_mul(3)?).ok()
}
