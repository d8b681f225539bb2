//! Tasks over real models: what the reference kernels answered, from pictures and sound.

use std::process::ExitCode;

mod files;
mod pictures;
mod sound;

fn main() -> ExitCode {
    burst_testing::run(&[pictures::TESTS, sound::TESTS])
}
