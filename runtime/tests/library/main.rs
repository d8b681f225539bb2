//! The shared object, as a program in C meets it: what it exports, and what every function answers.

use std::process::ExitCode;

mod client;
mod symbols;
mod tflite;
mod valgrind;

fn main() -> ExitCode {
    burst_testing::run(&[client::TESTS, symbols::TESTS, tflite::TESTS, valgrind::TESTS])
}

/// The folder with the shared object, which is built together with these tests.
fn library_folder() -> std::path::PathBuf {
    let own = std::env::current_exe().expect("a path");
    let folder = own.parent().expect("a folder");
    assert!(folder.join("libneuralnetworks.so").is_file(), "no library in {}", folder.display());
    folder.to_path_buf()
}
