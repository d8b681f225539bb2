//! What the whole process holds, and what its machine has: one test after the other, so that each has
//! the process to itself.

#[path = "../burst_support/mod.rs"]
mod burst_support;
#[path = "../burst_support/peer.rs"]
mod peer;
#[path = "../service_support/mod.rs"]
mod service_support;

mod async_fd;
mod at_the_door;
mod burst_death;
mod copies;
mod dma_heap;
mod fair_shares;
mod freed_memory;
mod fuzz_leaks;
mod handed_over;
mod kill_matrix;
mod killed_at_the_queue;
mod many_clients;
mod service_metrics;
mod service_readers;
mod two_users;

fn main() -> std::process::ExitCode {
    burst_testing::run_one_after_the_other(&[
        async_fd::TESTS,
        at_the_door::TESTS,
        burst_death::TESTS,
        copies::TESTS,
        dma_heap::TESTS,
        fair_shares::TESTS,
        freed_memory::TESTS,
        fuzz_leaks::TESTS,
        handed_over::TESTS,
        kill_matrix::TESTS,
        killed_at_the_queue::TESTS,
        many_clients::TESTS,
        service_metrics::TESTS,
        service_readers::TESTS,
        two_users::TESTS,
    ])
}
