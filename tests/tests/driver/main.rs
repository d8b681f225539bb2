//! The CPU driver against what others say is right: reference outputs, Android's vectors, its fuzz
//! corpus and the list of operations. Most of that lies in `../shared`.

mod built_in;
mod conformance;
mod fuzz_corpus;
mod models;
mod operations;
mod threads;
mod versions;

fn main() -> std::process::ExitCode {
    burst_testing::run(&[
        built_in::TESTS,
        conformance::TESTS,
        fuzz_corpus::TESTS,
        models::TESTS,
        operations::TESTS,
        threads::TESTS,
        versions::TESTS,
    ])
}
