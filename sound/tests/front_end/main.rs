//! Sound from files, and what is done to it before a model gets it.

#![allow(clippy::unwrap_used, reason = "a test panics")]

mod files;
mod log_mel;
mod resample;
mod spectrum;

fn main() -> std::process::ExitCode {
    burst_testing::run(&[files::TESTS, log_mel::TESTS, resample::TESTS, spectrum::TESTS])
}
