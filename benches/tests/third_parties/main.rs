//! Beside third parties: each does the same work as ours, or is said to be left out; and an honest
//! client beside attacks. One test after the other, so that none disturbs the other's rounds.

mod attacks;
#[cfg(not(feature = "peers"))]
mod left_out;
mod model;
#[cfg(feature = "peers")]
mod peers;

fn main() -> std::process::ExitCode {
    burst_testing::run_one_after_the_other(&[
        #[cfg(not(feature = "peers"))]
        left_out::TESTS,
        model::TESTS,
        attacks::TESTS,
        #[cfg(feature = "peers")]
        peers::TESTS,
    ])
}
