//! `--vlog` and `BURST_VLOG`: each tag switches its own lines on, in the process of the driver and in the client's.

use std::collections::BTreeSet;

use burst_hal::log_tags::LogTag;

use crate::support::{Service, burst, run};

burst_testing::tests![
    each_tag_switches_its_own_lines_on_and_no_others(),
    without_tags_none_of_their_lines_appears(),
    all_of_them_at_once_and_in_the_originals_syntax(),
    an_unknown_tag_ends_the_command_and_is_only_told_of_in_the_environment(),
    a_service_logs_with_tags_too(),
];

const STREAM: [&str; 3] = ["stream", "--frames", "3"];

/// The tags of these lines.
fn tags_of(stderr: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(stderr);
    let targets = text.lines().filter_map(|line| line.split_once(" nn::"));
    targets.filter_map(|(_, rest)| Some(rest.split_once(':')?.0.to_owned())).collect()
}

/// The tags that a stream logs with these arguments behind it.
fn logged(arguments: &[&str]) -> BTreeSet<String> {
    let output = run(&[&STREAM[..], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    tags_of(&output.stderr)
}

fn all() -> BTreeSet<String> {
    LogTag::ALL.iter().map(|tag| tag.name().to_owned()).collect()
}

fn each_tag_switches_its_own_lines_on_and_no_others() {
    for tag in LogTag::ALL {
        let own: BTreeSet<String> = [tag.name().to_owned()].into();
        assert_eq!(logged(&["--vlog", tag.name()]), own, "in a driver process");
        // One process, with the CPU device in it.
        assert_eq!(logged(&["--path", "in-process", "--vlog", tag.name()]), own, "in this process");
    }
}

fn without_tags_none_of_their_lines_appears() {
    assert!(logged(&[]).is_empty());
    assert!(logged(&["--path", "in-process", "--vlog", ""]).is_empty());
    let service = Service::start();
    assert!(logged(&["--socket", service.path()]).is_empty());
}

fn all_of_them_at_once_and_in_the_originals_syntax() {
    for tags in ["all", "1", "model,compilation:execution cpuexe , manager::driver memory"] {
        assert_eq!(logged(&["--vlog", tags]), all(), "{tags}");
    }
    let output = burst(&STREAM).env("BURST_VLOG", "driver memory").output().expect("burst runs");
    let wanted: BTreeSet<String> = ["driver".to_owned(), "memory".to_owned()].into();
    assert_eq!(tags_of(&output.stderr), wanted, "{output:?}");
    // What is on the command line counts, in the driver's process too.
    let mut command = burst(&[&STREAM[..], &["--vlog", "model"]].concat());
    let output = command.env("BURST_VLOG", "driver").output().expect("burst runs");
    assert_eq!(tags_of(&output.stderr), ["model".to_owned()].into(), "{output:?}");
}

fn an_unknown_tag_ends_the_command_and_is_only_told_of_in_the_environment() {
    let output = run(&[&STREAM[..], &["--vlog", "model,colour"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = "no log tag colour; there are: model, compilation, execution, cpuexe, manager";
    assert!(said.contains(text), "{said}");
    let output = burst(&STREAM).env("BURST_VLOG", "model,colour").output().expect("burst runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_warning = |line: &&str| line.contains("WARN") && line.contains(text);
    assert!(said.lines().any(|line| is_warning(&line)), "{said}");
    assert_eq!(tags_of(&output.stderr), ["model".to_owned()].into(), "the others hold");
}

fn a_service_logs_with_tags_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let log = std::fs::File::create(&path).expect("a file");
    let arguments = ["--log", "json", "--vlog", "manager,memory"];
    let service = Service::start_logging(&arguments, log);
    let output = run(&["stream", "--frames", "2", "--socket", service.path()]);
    assert!(output.status.success(), "{output:?}");
    drop(service);
    let log = std::fs::read_to_string(&path).expect("the log");
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("one object a line"));
    let targets = lines.filter_map(|line| line["target"].as_str().map(str::to_owned));
    let tags: BTreeSet<String> = targets.filter(|target| target.starts_with("nn::")).collect();
    assert_eq!(tags, ["nn::manager".to_owned(), "nn::memory".to_owned()].into(), "{log}");
}
