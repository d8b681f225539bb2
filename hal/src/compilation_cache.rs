//! Files that a compilation is kept in (HAL 1.2).

use std::fs::File;

use crate::CacheFiles;

/// Bytes of the token that an application chooses for a compilation.
pub const CACHE_TOKEN_BYTES: usize = 32;
/// Files of each kind that a device may need.
pub const CACHE_FILES_MAX: u32 = 32;

/// Where a compilation is kept: the files of an application, open for reading and writing, at any offset
/// and of any length.
#[derive(Debug, Default)]
pub struct CompilationCache {
    /// Of the application: another model, device, version, preference or priority has another one.
    pub token: [u8; CACHE_TOKEN_BYTES],
    /// Files whose tampering could do harm: the device finds it out.
    pub model: Vec<File>,
    /// Files whose tampering can at worst give wrong results.
    pub data: Vec<File>,
}

impl CompilationCache {
    /// How many files there are.
    #[must_use]
    pub fn files(&self) -> CacheFiles {
        let count = |files: &[File]| u32::try_from(files.len()).unwrap_or(u32::MAX);
        CacheFiles { model: count(&self.model), data: count(&self.data) }
    }
}
