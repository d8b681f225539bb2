//! What the whole process holds, and what its machine has: each test has the process to itself.

#[path = "../burst_support/mod.rs"]
mod burst_support;
#[path = "../burst_support/peer.rs"]
mod peer;

mod async_fd;
mod burst_death;
mod kill_matrix;
mod killed_at_the_queue;
mod many_clients;

fn main() -> std::process::ExitCode {
    burst_testing::run_one_after_the_other(&[
        async_fd::TESTS,
        burst_death::TESTS,
        kill_matrix::TESTS,
        killed_at_the_queue::TESTS,
        many_clients::TESTS,
    ])
}
