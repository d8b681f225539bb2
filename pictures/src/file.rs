//! Pictures in files.

use std::path::Path;

use image::{ExtendedColorType, ImageFormat, ImageReader, Limits};

use crate::{Picture, PictureError};

/// Largest side of a picture in pixels: a bound on what a file can make us allocate.
pub const MAX_SIDE: u32 = 16_384;
/// Most bytes a picture may take while it is decoded: a small file can claim a huge picture.
pub const MAX_DECODED_BYTES: u64 = 1 << 30;

/// Reads a JPEG or PNG file; which of the two it is, its first bytes say. Other colours become RGB.
///
/// # Errors
/// [`PictureError::File`] where the file cannot be read; [`PictureError::Format`] where it is
/// neither, is damaged, or is larger than [`MAX_SIDE`] or [`MAX_DECODED_BYTES`].
pub fn read(path: &Path) -> Result<Picture, PictureError> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let mut reader = ImageReader::open(path)?;
    reader.limits(limits);
    let picture = reader.with_guessed_format()?.decode()?.into_rgb8();
    Ok(Picture { width: picture.width(), height: picture.height(), rgb: picture.into_raw() })
}

/// Writes a PNG file of `width * height * 3` bytes.
///
/// # Errors
/// [`PictureError::Bytes`] for another number of bytes; [`PictureError::Format`] where the file
/// cannot be written.
pub fn write_png(path: &Path, width: u32, height: u32, rgb: &[u8]) -> Result<(), PictureError> {
    crate::scale::check_bytes(width, height, rgb.len())?;
    let (colour, format) = (ExtendedColorType::Rgb8, ImageFormat::Png);
    Ok(image::save_buffer_with_format(path, rgb, width, height, colour, format)?)
}
