//! Attacks on a real service, within limits, beside an honest client that must notice next to nothing.
//!
//! Each attack is a process of its own, and so are the service and the honest client; how they are made
//! is in `src/attacks/`. One after the other: each has the machine to itself.

mod address_space;
mod beside;
mod bombs;
mod computing;
mod endings;
mod floods;
mod memory;
mod preparing;
mod strangers;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = burst_tests::attacks::play_if_asked() {
        return code;
    }
    burst_testing::run_one_after_the_other(&[
        preparing::TESTS,
        memory::TESTS,
        address_space::TESTS,
        strangers::TESTS,
        endings::TESTS,
        computing::TESTS,
        floods::TESTS,
        bombs::TESTS,
    ])
}
