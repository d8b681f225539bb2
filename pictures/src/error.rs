//! What can go wrong with a picture.

use crate::limits::{MAX_DECODED_BYTES, MAX_FILE_BYTES, MAX_SIDE};

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The file has no bytes at all.
    #[error("the file is empty")]
    Empty,
    /// The file is longer than what is read.
    #[error("the file has {bytes} bytes, at most {MAX_FILE_BYTES} are read")]
    FileTooLong {
        /// Bytes of the file.
        bytes: u64,
    },
    /// The bytes are no picture that this crate reads.
    #[error(transparent)]
    Format(#[from] image::ImageError),
    /// The picture is larger than what is read.
    #[error(
        "the picture has {width} x {height} pixels; at most {MAX_SIDE} a side and {} MiB decoded are read",
        MAX_DECODED_BYTES >> 20
    )]
    TooLarge {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// A JPEG file that does not go on to its end: what is missing would be filled up with grey.
    #[error("the file is cut off: a JPEG without its end, after {bytes} bytes")]
    CutOff {
        /// Bytes of the file.
        bytes: usize,
    },
    /// A frame of a camera that does not begin as a JPEG picture does.
    #[error("the {bytes} bytes of the frame do not begin as a JPEG picture does")]
    NoJpeg {
        /// How many there are.
        bytes: usize,
    },
    /// The bytes given are not those of a picture of this size.
    #[error("a picture of {width} x {height} pixels has {wanted} bytes, {found} were given")]
    Bytes {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Bytes that such a picture has.
        wanted: u64,
        /// Bytes that there are.
        found: usize,
    },
    /// A picture without pixels.
    #[error("a picture of {width} x {height} pixels has none")]
    NoPixels {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// The part to show reaches beyond the picture, or is empty.
    #[error("the area {area:?} is not inside a picture of {width} x {height} pixels")]
    Area {
        /// The part asked for.
        area: crate::Area,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// The scaler refuses the sizes.
    #[error("cannot scale the picture: {0}")]
    Scale(String),
}
