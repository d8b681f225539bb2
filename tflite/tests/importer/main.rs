//! The importer on models of the tests' own.

mod integer_lstm;
mod malformed;
mod operators;
#[path = "../support/mod.rs"]
mod support;
