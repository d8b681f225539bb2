//! Pictures of another size: an antialiased bicubic filter (Catmull-Rom).

use fast_image_resize::images::{CroppedImageMut, Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use crate::{Area, PictureError};

/// Scales pictures; keeps the filter's tables and buffers from one to the next.
#[derive(Default)]
pub struct Scaler {
    resizer: Resizer,
}

impl std::fmt::Debug for Scaler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scaler").finish_non_exhaustive()
    }
}

impl Scaler {
    /// A scaler with empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Scales `area` of a picture of `size` (width, height) to fill one of `out_size`.
    ///
    /// # Errors
    /// Bytes that are not those of the stated sizes, or an area outside of the picture.
    pub fn fill(
        &mut self,
        (rgb, size): (&[u8], (u32, u32)),
        area: Area,
        (out, out_size): (&mut [u8], (u32, u32)),
    ) -> Result<(), PictureError> {
        let from = source(rgb, size)?;
        let (width, height) = size;
        let inside = |start: f64, length: f64, side: u32| {
            start >= 0.0 && length > 0.0 && start + length <= f64::from(side)
        };
        if !inside(area.left, area.width, width) || !inside(area.top, area.height, height) {
            return Err(PictureError::Area { area, width, height });
        }
        let mut to = target(out, out_size)?;
        let options = options().crop(area.left, area.top, area.width, area.height);
        self.resizer.resize(&from, &mut to, &options).map_err(scale_error)
    }

    /// Scales a whole picture of `size` into the rectangle of `inner_size` (width, height) whose
    /// upper left corner is `corner` (left, top) in a picture of `out_size`. The rest of `out` is left as it is.
    ///
    /// # Errors
    /// Bytes that are not those of the stated sizes, or a rectangle that is not inside `out`.
    pub fn inset(
        &mut self,
        (rgb, size): (&[u8], (u32, u32)),
        (corner, inner_size): ((u32, u32), (u32, u32)),
        (out, out_size): (&mut [u8], (u32, u32)),
    ) -> Result<(), PictureError> {
        let from = source(rgb, size)?;
        let mut whole = target(out, out_size)?;
        let ((left, top), (width, height)) = (corner, inner_size);
        let mut to = CroppedImageMut::new(&mut whole, left, top, width, height)
            .map_err(|error| PictureError::Scale(error.to_string()))?;
        self.resizer.resize(&from, &mut to, &options()).map_err(scale_error)
    }
}

fn options() -> ResizeOptions {
    let filter = ResizeAlg::Convolution(FilterType::CatmullRom);
    ResizeOptions::new().use_alpha(false).resize_alg(filter)
}

fn source(rgb: &[u8], (width, height): (u32, u32)) -> Result<ImageRef<'_>, PictureError> {
    check_bytes(width, height, rgb.len())?;
    ImageRef::new(width, height, rgb, PixelType::U8x3).map_err(buffer_error)
}

fn target(out: &mut [u8], (width, height): (u32, u32)) -> Result<Image<'_>, PictureError> {
    check_bytes(width, height, out.len())?;
    Image::from_slice_u8(width, height, out, PixelType::U8x3).map_err(buffer_error)
}

/// Whether there are as many bytes as a picture of this size has.
pub(crate) fn check_bytes(width: u32, height: u32, found: usize) -> Result<(), PictureError> {
    if crate::rgb_bytes(width, height) == Some(found) {
        return Ok(());
    }
    let wanted = u64::from(width).saturating_mul(u64::from(height)).saturating_mul(3);
    Err(PictureError::Bytes { width, height, wanted, found })
}

fn buffer_error(error: fast_image_resize::ImageBufferError) -> PictureError {
    PictureError::Scale(error.to_string())
}

fn scale_error(error: fast_image_resize::ResizeError) -> PictureError {
    PictureError::Scale(error.to_string())
}
