//! Compilations in files of an application (HAL 1.2): what [`CpuDevice`](crate::CpuDevice) writes into
//! them, and how it finds out that it has written it itself.
//!
//! | file | what lies in it |
//! |---|---|
//! | model | the structure of the model (`cache/structure.rs`) and those of its constants that a plan still reads |
//! | data | what the plan had computed of constants alone (`kept.rs`) |
//!
//! Both begin with a header (`cache/seal.rs`): a digest of what follows, and a message authentication code
//! (MAC) of all that the files are bound to. That of the data file also covers that of the model file, so
//! that two files of different compilations do not fit together. Whoever has no key of this device and
//! user can make no files that are accepted, and files that are not accepted are not decoded.
//!
//! Another process can change a file at any instant. So a file is read once, into memory that the caller
//! pays for, and this copy is what is checked and used. Why it is so:
//! `docs/decisions/0022-compilations-in-files.md`.

mod bytes;
mod file;
mod kept_list;
mod key;
mod load;
mod save;
mod seal;
mod structure;
mod values;

pub use crate::cache_error::{CacheError, Kind};
pub use bytes::Malformed;
pub use key::CacheKey;
pub(crate) use load::{Restored, load};
pub(crate) use save::Files;
pub(crate) use seal::{BUILD, Bound, Seal};
pub use structure::{decode, encode_again};

use burst_hal::CacheFiles;

/// Files that a compilation is kept in.
pub(crate) const FILES: CacheFiles = CacheFiles { model: 1, data: 1 };
