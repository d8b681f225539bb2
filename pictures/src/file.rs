//! Pictures in files.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use image::codecs::jpeg::JpegEncoder;
use image::error::LimitErrorKind;
use image::{
    DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, ImageFormat,
    ImageReader, Limits,
};

use crate::limits::{MAX_DECODED_BYTES, MAX_FILE_BYTES, MAX_SIDE};
use crate::{Picture, PictureError, jpeg};

/// Reads a JPEG or PNG file; which of the two it is, its first bytes say. Other colours become RGB, and
/// a picture that says that it lies on its side (Exif's orientation) is turned upright.
///
/// # Errors
/// [`PictureError::File`] where the file cannot be read, [`PictureError::Empty`] where it has no bytes;
/// [`PictureError::Format`] where it is neither, or is damaged; [`PictureError::CutOff`] where the end of
/// a JPEG is missing; [`PictureError::TooLarge`] beyond [`MAX_SIDE`] or [`MAX_DECODED_BYTES`].
pub fn read(path: &Path) -> Result<Picture, PictureError> {
    let bytes = read_bytes(path)?;
    if jpeg::is_jpeg(&bytes) && !jpeg::is_whole(&bytes) {
        return Err(PictureError::CutOff { bytes: bytes.len() });
    }
    let picture = decode(&bytes).map_err(|error| too_large(&bytes, &error).unwrap_or(error))?;
    Ok(Picture { width: picture.width(), height: picture.height(), rgb: picture.into_raw() })
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, PictureError> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if meta.len() > MAX_FILE_BYTES {
        return Err(PictureError::FileTooLong { bytes: meta.len() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Err(PictureError::Empty);
    }
    Ok(bytes)
}

pub(crate) fn decode(bytes: &[u8]) -> Result<image::RgbImage, PictureError> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture.apply_orientation(orientation);
    Ok(picture.into_rgb8())
}

/// The same refusal in numbers, where the picture is too large.
fn too_large(bytes: &[u8], error: &PictureError) -> Option<PictureError> {
    let PictureError::Format(ImageError::Limits(limit)) = error else { return None };
    match limit.kind() {
        LimitErrorKind::DimensionError | LimitErrorKind::InsufficientMemory => {}
        _ => return None,
    }
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
    reader.no_limits();
    let (width, height) = reader.into_dimensions().ok()?;
    Some(PictureError::TooLarge { width, height })
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

/// The JPEG form of `width * height * 3` bytes; `quality` from 1 to 100.
///
/// # Errors
/// [`PictureError::Bytes`] for another number of bytes; [`PictureError::Format`] where a side is longer than the
/// 65,535 pixels of a JPEG picture.
pub fn encode_jpeg(
    width: u32,
    height: u32,
    rgb: &[u8],
    quality: u8,
) -> Result<Vec<u8>, PictureError> {
    crate::scale::check_bytes(width, height, rgb.len())?;
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, quality.clamp(1, 100));
    encoder.write_image(rgb, width, height, ExtendedColorType::Rgb8)?;
    Ok(bytes)
}
