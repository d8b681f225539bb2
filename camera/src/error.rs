/// Why no frame was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CameraError {
    /// The asked-for frame is too small to show a shape or needlessly large.
    #[error("frame of {width} x {height}: each side must have {min} to {max} pixels")]
    Size {
        /// Asked-for width in pixels.
        width: usize,
        /// Asked-for height in pixels.
        height: usize,
        /// Smallest side allowed.
        min: usize,
        /// Largest side allowed.
        max: usize,
    },
    /// The caller's buffer does not have the size of one frame.
    #[error("frame buffer holds {got} bytes, a frame has {want}")]
    Buffer {
        /// Bytes of one frame.
        want: usize,
        /// Bytes of the given buffer.
        got: usize,
    },
}
