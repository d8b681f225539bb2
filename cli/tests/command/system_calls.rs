//! No system call per request on either side while both poll.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use burst_testing::{TwoCpus, program, two_cpus};

burst_testing::tests![
    five_thousand_more_frames_cost_no_more_system_calls(&program("strace")?, two_cpus()?),
    for_a_model_of_low_power_both_ends_sleep_at_every_frame(&program("strace")?, two_cpus()?),
];

/// System calls per process of a run with this many frames, and descriptors sent after set-up.
fn count(strace: &Path, folder: &Path, frames: u32, preference: &str) -> HashMap<String, usize> {
    let log = folder.join(format!("log-{frames}"));
    let status = Command::new(strace)
        .args(["-f", "-ff", "-qq", "-o", log.to_str().unwrap()])
        .arg(env!("CARGO_BIN_EXE_burst"))
        .args(["stream", "--wait", "spin", "--threads", "1", "--json"])
        .args(["--frames", &frames.to_string(), "--preference", preference])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    // One file per thread; calls are added up over client and driver together.
    let mut calls = HashMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if !name.starts_with(&format!("log-{frames}.")) {
            continue;
        }
        for line in std::fs::read_to_string(entry.path()).unwrap().lines() {
            if let Some((call, _)) = line.split_once('(') {
                *calls.entry(call.to_owned()).or_default() += 1;
            }
        }
    }
    calls
}

/// Two CPUs: nobody spins on one.
fn five_thousand_more_frames_cost_no_more_system_calls(strace: &Path, _: TwoCpus) {
    let folder = tempfile::tempdir().unwrap();
    let count = |frames| count(strace, folder.path(), frames, "fast");
    let (few, many) = (count(500), count(5_500));
    let total = |calls: &HashMap<String, usize>| calls.values().sum::<usize>();
    println!("{} calls for 500 frames, {} for 5,500", total(&few), total(&many));
    // One a frame, at one end, would be 5,000. On a machine with more to do than CPUs an end yields now and then.
    assert!(total(&many) < total(&few) + 500, "few {few:?}\nmany {many:?}");
    assert_eq!(few.get("sendmsg"), many.get("sendmsg"), "descriptors cross at set-up only");
}

/// Although polling is asked for.
fn for_a_model_of_low_power_both_ends_sleep_at_every_frame(strace: &Path, _: TwoCpus) {
    const MORE: u32 = 200;
    let folder = tempfile::tempdir().unwrap();
    let sleeps = |frames| {
        let calls = count(strace, folder.path(), frames, "low-power");
        calls.iter().filter(|(call, _)| call.starts_with("futex")).map(|(_, count)| count).sum()
    };
    let (few, many): (usize, usize) = (sleeps(10), sleeps(10 + MORE));
    // Whoever is woken in time to see what it waits for does not sleep: not each of the two at each frame.
    assert!(many >= few + MORE as usize, "{few} for 10 frames, {many} for {MORE} more");
}
