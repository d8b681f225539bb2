//! Measuring with real processes: one test after the other, so that none disturbs the other's rounds.

mod peers;
mod pinned;
mod report;

fn main() -> std::process::ExitCode {
    burst_testing::run_one_after_the_other(&[peers::TESTS, pinned::TESTS, report::TESTS])
}
