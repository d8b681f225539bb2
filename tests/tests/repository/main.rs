//! The sources and documents of the repository itself.

mod documents;
mod structure;
