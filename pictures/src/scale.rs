//! Pictures of another size: an antialiased bicubic filter (Catmull-Rom).

use fast_image_resize::images::{TypedCroppedImageMut, TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};

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
        let whole = ((0, 0), out_size);
        let options = options().crop(area.left, area.top, area.width, area.height);
        self.resize(&from, whole, (out, out_size), &options)
    }

    /// Scales a whole picture of `size` into the rectangle of `inner_size` (width, height) whose
    /// upper left corner is `corner` (left, top) in a picture of `out_size`. The rest of `out` is left as it is.
    ///
    /// # Errors
    /// Bytes that are not those of the stated sizes, or a rectangle that is not inside `out`.
    pub fn inset(
        &mut self,
        (rgb, size): (&[u8], (u32, u32)),
        inner: ((u32, u32), (u32, u32)),
        out: (&mut [u8], (u32, u32)),
    ) -> Result<(), PictureError> {
        self.resize(&source(rgb, size)?, inner, out, &options())
    }

    /// Both ways to scale end here, with pixels of one type: the library is generic over the kind of
    /// picture, and takes two minutes to compile for every kind that it knows.
    fn resize(
        &mut self,
        from: &TypedImageRef<'_, U8x3>,
        ((left, top), (width, height)): ((u32, u32), (u32, u32)),
        (out, out_size): (&mut [u8], (u32, u32)),
        options: &ResizeOptions,
    ) -> Result<(), PictureError> {
        let whole = target(out, out_size)?;
        let mut to = TypedCroppedImageMut::new(whole, left, top, width, height)
            .map_err(|error| PictureError::Scale(error.to_string()))?;
        self.resizer.resize_typed(from, &mut to, options).map_err(scale_error)
    }
}

fn options() -> ResizeOptions {
    let filter = ResizeAlg::Convolution(FilterType::CatmullRom);
    ResizeOptions::new().use_alpha(false).resize_alg(filter)
}

fn source(
    rgb: &[u8],
    (width, height): (u32, u32),
) -> Result<TypedImageRef<'_, U8x3>, PictureError> {
    check_bytes(width, height, rgb.len())?;
    TypedImageRef::from_buffer(width, height, rgb).map_err(buffer_error)
}

fn target(
    out: &mut [u8],
    (width, height): (u32, u32),
) -> Result<TypedImage<'_, U8x3>, PictureError> {
    check_bytes(width, height, out.len())?;
    TypedImage::from_buffer(width, height, out).map_err(buffer_error)
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
