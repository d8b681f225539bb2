//! The kept seeds of every fuzz target leave nothing behind: no descriptor, and no memory.

use std::fs;

use burst_tests::repository;
use fuzz::{TARGETS, Target};

burst_testing::tests![the_seeds_of_every_target_leave_no_descriptor_and_no_memory()];

/// Rounds of all seeds: the first ones fill what is kept for the next inputs.
const ROUNDS: usize = 6;
/// What the rounds behind the second may add: caches of allocators, and far less than a leak of every input.
const GROWTH_MAX: u64 = 8 << 20;

fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let folder = repository().join("fuzz/seeds").join(target.name);
    let entries = fs::read_dir(folder).expect("every target has a folder of seeds");
    entries.map(|entry| fs::read(entry.expect("an entry").path()).expect("a seed")).collect()
}

/// Bytes of memory that this process holds.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the system's");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}

fn the_seeds_of_every_target_leave_no_descriptor_and_no_memory() {
    // The tests here run one after the other: nobody else opens any.
    fuzz::look_for_leaks();
    for target in TARGETS {
        let seeds = seeds(target);
        let mut settled = 0;
        for round in 0..ROUNDS {
            for seed in &seeds {
                (target.run)(seed);
            }
            if round == 1 {
                settled = resident();
            }
        }
        let grown = resident().saturating_sub(settled);
        println!("{}: {} seeds, {} KiB more", target.name, seeds.len(), grown >> 10);
        assert!(grown < GROWTH_MAX, "{}: {grown} bytes more", target.name);
    }
}
