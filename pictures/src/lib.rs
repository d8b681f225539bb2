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

/// A picture that somebody else holds, in the same form: a frame of a camera, a [`Picture`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureView<'a> {
    width: u32,
    height: u32,
    rgb: &'a [u8],
}

impl<'a> PictureView<'a> {
    /// The picture of this size in these bytes: `height` rows from top to bottom, each of `width` pixels, a pixel
    /// being the bytes red, green, blue.
    ///
    /// # Errors
    /// [`PictureError::Bytes`] for another number of bytes than such a picture has; [`PictureError::NoPixels`] where
    /// it has none.
    pub fn new(width: u32, height: u32, rgb: &'a [u8]) -> Result<Self, PictureError> {
        if width == 0 || height == 0 {
            return Err(PictureError::NoPixels { width, height });
        }
        scale::check_bytes(width, height, rgb.len())?;
        Ok(PictureView { width, height, rgb })
    }

    /// Pixels in a row.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// `width * height * 3` bytes.
    #[must_use]
    pub fn rgb(&self) -> &'a [u8] {
        self.rgb
    }
}

impl Picture {
    /// The picture as others take it.
    ///
    /// # Errors
    /// As [`PictureView::new`], where the fields do not belong together.
    pub fn view(&self) -> Result<PictureView<'_>, PictureError> {
        PictureView::new(self.width, self.height, &self.rgb)
    }
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
