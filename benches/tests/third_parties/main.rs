//! Beside third parties: each does the same work as ours, or is said to be left out; an honest
//! client beside attacks; what features cost; files of compilations and priorities. One test after the other, so that none disturbs the other's rounds.

mod attacks;
mod costs;
#[cfg(not(feature = "peers"))]
mod left_out;
mod model;
mod ndk;
mod own;
#[cfg(feature = "peers")]
mod peers;
mod seeded;
mod top;

fn main() -> std::process::ExitCode {
    burst_testing::run_one_after_the_other(&[
        #[cfg(not(feature = "peers"))]
        left_out::TESTS,
        model::TESTS,
        seeded::TESTS,
        attacks::TESTS,
        costs::TESTS,
        ndk::TESTS,
        own::TESTS,
        top::TESTS,
        #[cfg(feature = "peers")]
        peers::TESTS,
    ])
}
