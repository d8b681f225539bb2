//! Why a compilation was not kept, or not taken from files.

use burst_hal::{CacheFiles, ErrorStatus};
use rustix::io::Errno;

/// Why a compilation was not kept, or not taken from files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The device was made without a key.
    #[error("this device keeps no compilations: it was made without a key for them")]
    NoKey,
    /// Another number of files than the device needs.
    #[error(
        "a compilation is kept in {} model and {} data files, not in {} and {}",
        wanted.model, wanted.data, got.model, got.data
    )]
    FileCount {
        /// What the device needs.
        wanted: CacheFiles,
        /// What came.
        got: CacheFiles,
    },
    /// Neither a file of a disk nor of memory: such as a pipe or a folder.
    #[error("the {kind} file is no regular file")]
    NotAFile {
        /// Which.
        kind: Kind,
    },
    /// It was not opened for what is to be done with it.
    #[error("the {kind} file was not opened for {}", if *writing { "writing anywhere" } else { "reading" })]
    Access {
        /// Which.
        kind: Kind,
        /// Whether it is to be written.
        writing: bool,
    },
    /// A system call on it failed.
    #[error("the {kind} file: {call}: {errno}")]
    System {
        /// Which.
        kind: Kind,
        /// What failed.
        call: &'static str,
        /// The system's reason.
        errno: Errno,
    },
    /// Its length is not that of a compilation, or not the one that it says.
    #[error("the {kind} file has {found} bytes, and should have {expected}")]
    Length {
        /// Which.
        kind: Kind,
        /// What it has.
        found: u64,
        /// What its beginning says; the length of that beginning where there is less.
        expected: u64,
    },
    /// More than a device keeps.
    #[error("a {kind} file of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// Which.
        kind: Kind,
        /// How much it would be.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Its beginning was not written by this build of this device for this user, token, and pair of files.
    #[error(
        "the {kind} file was changed, or is of another token, device, version, user or compilation"
    )]
    Foreign {
        /// Which.
        kind: Kind,
    },
    /// What follows its beginning is not what was written.
    #[error("the {kind} file was changed")]
    Changed {
        /// Which.
        kind: Kind,
    },
    /// It is no model, or no values, although it was written so: a defect of the driver.
    #[error("the {kind} file: {what}")]
    Malformed {
        /// Which.
        kind: Kind,
        /// What is wrong.
        what: &'static str,
    },
}

/// Which of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What decides what is computed.
    Model,
    /// Values that were computed when the model was prepared.
    Data,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Model => "model",
            Kind::Data => "data",
        })
    }
}

impl CacheError {
    /// The status that a HAL client receives.
    #[must_use]
    pub fn status(&self) -> ErrorStatus {
        match self {
            CacheError::FileCount { .. } => ErrorStatus::InvalidArgument,
            _ => ErrorStatus::GeneralFailure,
        }
    }
}
