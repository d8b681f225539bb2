//! A whole run, as short as can be: its rows, and the fields of its JSON.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::time::Duration;

use burst_harness::machine::{KeepAwake, Machine};
use burst_harness::transport::PeerInCase;
use burst_harness::transport::mode::InMode;
use burst_harness::transport::plan::LIMIT;
use burst_harness::transport::process::Runner;
use burst_harness::{Options, Placement, Report, WaitKind, own_peers};
use burst_testing::{TwoCpus, two_cpus};
use serde_json::Value;

burst_testing::tests![
    the_json_has_the_fields_that_programs_read(),
    halting_cpus_are_measured_asleep_and_where_permitted_kept_awake(two_cpus()?),
    the_table_names_each_row_and_each_check(),
    a_run_that_fails_once_is_repeated_and_named_and_one_that_always_fails_ends_the_whole(),
    an_end_that_hangs_is_stopped_within_the_limit_of_the_run(),
    a_run_that_comes_to_its_limit_says_so(),
    who_polls_has_its_rounds_by_mode_and_cold_ones(two_cpus()?),
];

const PROGRAM: &str = env!("CARGO_BIN_EXE_burst-bench-peer");

fn short_run(waits: &[WaitKind], peers: &[&str]) -> Report {
    short_run_at(Placement::Unpinned, waits, peers).0
}

/// Also the names of what was measured; a row is there only where the floors of a round agree.
fn short_run_at(placement: Placement, waits: &[WaitKind], peers: &[&str]) -> (Report, Vec<String>) {
    let options = Options {
        rounds: 1,
        sizes: vec![64],
        waits: waits.to_vec(),
        placements: vec![placement],
        peers: peers.iter().map(|name| (*name).to_owned()).collect(),
        frames: false,
        count_calls: false,
        quick: true,
        ..Options::default()
    };
    let runner = Runner::new(PROGRAM).expect("the CPUs of this process");
    let mut measured = Vec::new();
    let mut watch = |_: u32, subject: &PeerInCase<'_>| {
        measured.push(subject.case.label(subject.peer.name()));
    };
    let report =
        burst_harness::run(&runner, &own_peers(), &options, &mut watch).expect("a short run");
    for peer in peers {
        assert!(measured.iter().any(|name| name == peer), "{peer} was not measured");
    }
    (report, measured)
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn the_json_has_the_fields_that_programs_read() {
    let report = short_run(&[WaitKind::Sleep], &["ours", "pipe"]);
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(sorted(keys(&json)), ["checks", "ended_early", "machine", "rounds", "rows"]);
    assert_eq!(json["rounds"], 1);
    let row = &json["rows"][0];
    let expected = [
        "client_memory_kib",
        "cpu_ns_per_round_trip",
        "max_ns",
        "modes",
        "name",
        "p50_ns",
        "p90_ns",
        "p999_ns",
        "p99_ns",
        "placement",
        "ratio_to_floor",
        "request_bytes",
        "round_trips_per_s",
        "rounds_dropped",
        "rounds_kept",
        "rounds_ratio_to_floor",
        "server_memory_kib",
        "syscalls_per_message",
        "wait",
    ];
    assert_eq!(sorted(keys(row)), expected);
    assert_eq!(sorted(keys(&row["ratio_to_floor"])), ["max", "median", "min"]);
    assert_eq!((&row["wait"], &row["placement"]), (&"sleep".into(), &"unpinned".into()));
    assert_eq!(row["syscalls_per_message"], Value::Null, "not counted in this run");
    let check = &json["checks"][0];
    assert_eq!(sorted(keys(check)), ["must", "ok", "reach", "value", "what"]);
    assert_eq!(check["ok"], Value::Null, "nothing spun in this run");
}

/// What keeping the CPUs awake is worth, or that it is not permitted.
fn halting_cpus_are_measured_asleep_and_where_permitted_kept_awake(_: TwoCpus) {
    let (report, names) = short_run_at(Placement::PinnedApart, &[WaitKind::Sleep], &["ours"]);
    let was_measured = |name: &str| names.iter().any(|measured| measured == name);
    assert!(was_measured("ours, 1000 per second"), "{names:?}");
    let kept_awake = was_measured("ours, 1000 per second, CPUs kept awake");
    assert_eq!(kept_awake, KeepAwake::is_permitted());
    let Machine { keep_awake, .. } = &report.machine;
    assert_eq!(keep_awake == "permitted", kept_awake, "{keep_awake}");
    assert!(kept_awake || keep_awake.starts_with("not "), "{keep_awake}");
    let mut text = Vec::new();
    report.write_text(&mut text).unwrap();
    let line = format!("keeping CPUs awake while a burst lives: {keep_awake}\n");
    assert!(String::from_utf8(text).unwrap().contains(&line));
}

fn the_table_names_each_row_and_each_check() {
    let report = short_run(&[WaitKind::Sleep], &["unix-seqpacket"]);
    let mut text = Vec::new();
    report.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for row in &report.found.rows {
        assert!(text.contains(&row.name), "{}", row.name);
    }
    for check in report.found.checks.iter().filter(|check| check.value.is_some()) {
        assert!(text.contains(check.what.split(' ').next().unwrap()), "{}", check.what);
    }
    assert!(text.contains("rounds are in the figures"), "{text}");
}

fn sorted(mut keys: Vec<&str>) -> Vec<&str> {
    keys.sort_unstable();
    keys
}

/// A program that fails once when the file is there, and is the usual one otherwise.
fn failing_once(folder: &std::path::Path) -> (std::path::PathBuf, std::path::PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let (program, marker) = (folder.join("program"), folder.join("fail"));
    let script = format!(
        "#!/bin/sh\nrm '{}' 2>/dev/null && exit 1\nexec '{PROGRAM}' \"$@\"\n",
        marker.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    (program, marker)
}

/// A pipe in one short round, within a limit.
fn pipe_within(limit: Duration) -> Options {
    Options {
        rounds: 1,
        sizes: vec![64],
        waits: vec![WaitKind::Sleep],
        placements: vec![Placement::Unpinned],
        peers: vec!["pipe".to_owned()],
        frames: false,
        count_calls: false,
        quick: true,
        limit,
        ..Options::default()
    }
}

fn an_end_that_hangs_is_stopped_within_the_limit_of_the_run() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hangs");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 3600\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let runner = Runner::new(&program).unwrap();
    let error = burst_harness::run(
        &runner,
        &own_peers(),
        &pipe_within(Duration::from_secs(8)),
        &mut |_, _| {},
    )
    .unwrap_err();
    // A quarter of the limit; by itself it might have taken half a minute.
    assert!(error.to_string().contains("no outcome after 2 s"), "{error}");
}

fn a_run_that_comes_to_its_limit_says_so() {
    let runner = Runner::new(PROGRAM).unwrap();
    let report =
        burst_harness::run(&runner, &own_peers(), &pipe_within(Duration::ZERO), &mut |_, _| {})
            .unwrap();
    assert!(report.found.ended_early && report.found.rows.is_empty(), "{report:?}");
    let mut text = Vec::new();
    report.write_text(&mut text).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("ended at its limit"));
}

fn who_polls_has_its_rounds_by_mode_and_cold_ones(_: TwoCpus) {
    let (report, names) = short_run_at(Placement::PinnedApart, &[WaitKind::Spin], &["ours"]);
    for name in ["ours, cold", "floor-line"] {
        assert!(names.iter().any(|measured| measured == name), "{name}: {names:?}");
    }
    for row in &report.found.rows {
        let modes = row.modes.as_ref().unwrap_or_else(|| panic!("{}", row.name));
        let rounds = |mode: &Option<_>| mode.as_ref().map_or(0, |mode: &InMode| mode.rounds);
        let all = rounds(&modes.near) + rounds(&modes.far) + modes.between;
        assert_eq!(all, row.rounds_kept + row.rounds_dropped, "{}: none is left out", row.name);
    }
    let floor = report.found.rows.iter().find(|row| row.name == "floor-two-lines");
    assert!(floor.is_some(), "what all are compared with");
}

fn a_run_that_fails_once_is_repeated_and_named_and_one_that_always_fails_ends_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (program, marker) = failing_once(folder.path());
    let options = pipe_within(LIMIT);
    let runner = Runner::new(&program).unwrap();
    let mut trials = 0;
    let mut fail_first = |_: u32, _: &PeerInCase<'_>| {
        trials += 1;
        if trials == 1 {
            std::fs::write(&marker, "").unwrap();
        }
    };
    let report = burst_harness::run(&runner, &own_peers(), &options, &mut fail_first).unwrap();
    assert!(trials > 1, "not repeated");
    let [failure] = &report.found.failures[..] else { panic!("{:?}", report.found.failures) };
    assert!(failure.starts_with("sleep, unpinned: "), "{failure}");
    let mut text = Vec::new();
    report.write_text(&mut text).unwrap();
    assert!(String::from_utf8(text).unwrap().contains(failure));

    let mut fail_always = |_: u32, _: &PeerInCase<'_>| std::fs::write(&marker, "").unwrap();
    burst_harness::run(&runner, &own_peers(), &options, &mut fail_always).unwrap_err();
}
