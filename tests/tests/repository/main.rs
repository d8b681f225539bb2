//! The sources and documents of the repository itself.

mod binaries;
mod documents;
mod structure;
