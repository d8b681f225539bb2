//! A client, as whatever works for it knows it.

pub(crate) mod questions;
