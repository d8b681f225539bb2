//! No system call per request on either side while both poll.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use burst_testing::{TwoCpus, program, two_cpus};

burst_testing::tests![five_thousand_more_frames_cost_no_more_system_calls(
    &program("strace")?,
    two_cpus()?
),];

/// System calls per process of a run with this many frames, and descriptors sent after set-up.
fn count(strace: &Path, folder: &Path, frames: u32) -> HashMap<String, usize> {
    let log = folder.join(format!("log-{frames}"));
    let status = Command::new(strace)
        .args(["-f", "-ff", "-qq", "-o", log.to_str().unwrap()])
        .arg(env!("CARGO_BIN_EXE_burst"))
        .args(["stream", "--wait", "spin", "--threads", "1", "--json"])
        .args(["--frames", &frames.to_string()])
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
    let count = |frames| count(strace, folder.path(), frames);
    let (few, many) = (count(500), count(5_500));
    let total = |calls: &HashMap<String, usize>| calls.values().sum::<usize>();
    println!("{} calls for 500 frames, {} for 5,500", total(&few), total(&many));
    assert!(total(&many) < total(&few) + 100, "few {few:?}\nmany {many:?}");
    assert_eq!(few.get("sendmsg"), many.get("sendmsg"), "descriptors cross at set-up only");
}
