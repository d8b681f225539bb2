//! What is done to sound before a model gets it.

#![allow(clippy::unwrap_used, reason = "a test panics")]

mod log_mel;
mod resample;
mod spectrum;
