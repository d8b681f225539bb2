//! What can go wrong with a picture.

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The bytes are no picture that this crate reads, or one over its limits.
    #[error(transparent)]
    Format(#[from] image::ImageError),
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
