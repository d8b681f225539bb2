//! Why sound cannot be read or turned into what a model takes.

use std::path::PathBuf;

/// What was wrong, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SoundError {
    /// The file cannot be opened, is no WAV file, or ends too early.
    #[error("cannot read the sound {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: hound::Error,
    },
    /// The file has no bytes at all.
    #[error("cannot read the sound {}: the file is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file holds more than is read.
    #[error("{}: more than {limit} samples, that is too long", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// How many there may be.
        limit: usize,
    },
    /// Samples of a kind that is not read.
    #[error("{}: {bits}-bit {kind} samples in {channels} channels are not read", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
        /// Bits of a sample.
        bits: u16,
        /// "integer" or "float".
        kind: &'static str,
        /// Channels.
        channels: u16,
    },
    /// A sample that is no number.
    #[error("{}: sample {at} is not a finite number", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// Which frame.
        at: usize,
    },
    /// A rate beyond what is resampled.
    #[error("{rate} samples per second; {least} to {most} are accepted")]
    Rate {
        /// The rate.
        rate: u32,
        /// The lowest.
        least: u32,
        /// The highest.
        most: u32,
    },
    /// A front end that cannot be.
    #[error("no log-mel front end with {what} = {value}")]
    Shape {
        /// Which of its numbers.
        what: &'static str,
        /// The number.
        value: usize,
    },
}
