//! What needs the models and lists of `../shared`.

mod main_types;
mod shared_models;
#[path = "../support/mod.rs"]
mod support;

fn main() -> std::process::ExitCode {
    burst_testing::run(&[main_types::TESTS, shared_models::TESTS])
}
