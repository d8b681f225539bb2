//! The CPU driver against what others say is right: reference outputs, Android's vectors, its fuzz
//! corpus and the list of operations. Most of that lies in `../shared`.

#[path = "../burst_support/mod.rs"]
mod burst_support;
#[path = "../burst_support/peer.rs"]
mod peer;

mod built_in;
mod conformance;
mod encoding;
mod fuzz_corpus;
mod judging;
mod killed;
mod launched;
mod models;
mod ndk;
mod operations;
mod random;
mod threads;
mod versions;

fn main() -> std::process::ExitCode {
    if let Some(code) = burst_tests::attacks::play_if_asked() {
        return code;
    }
    burst_testing::run(&[
        built_in::TESTS,
        conformance::TESTS,
        encoding::TESTS,
        fuzz_corpus::TESTS,
        judging::TESTS,
        killed::TESTS,
        launched::TESTS,
        models::TESTS,
        ndk::TESTS,
        operations::TESTS,
        random::TESTS,
        threads::TESTS,
        versions::TESTS,
    ])
}
