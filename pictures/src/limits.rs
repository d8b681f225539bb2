//! What is read of a file at most.

/// Largest side of a picture in pixels: a bound on what a file can make us allocate.
pub const MAX_SIDE: u32 = 16_384;
/// Most bytes a picture may take while it is decoded: a small file can claim a huge picture.
pub const MAX_DECODED_BYTES: u64 = 1 << 30;
/// Longest file that is read, in bytes: more than any picture within the other limits takes.
pub const MAX_FILE_BYTES: u64 = 1 << 30;
