//! The sources and documents of the repository itself.

mod binaries;
mod circles;
mod documents;
mod mutations;
mod ndk;
mod structure;
mod wrappers;
