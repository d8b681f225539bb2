//! `--threads`: the same outputs on every number, refused numbers.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use crate::support::{json, run};

burst_testing::tests![
    a_stream_on_several_threads_computes_what_it_does_on_one(),
    a_number_of_threads_that_cannot_be_is_refused_in_words(),
    a_running_service_keeps_its_own_number(),
    no_more_threads_compute_than_there_are_cpus(),
];

fn a_stream_on_several_threads_computes_what_it_does_on_one() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["burst", "in-process"] {
        let output = |threads: &str| {
            let file = folder.path().join(format!("{path}-{threads}"));
            let (name, frames) = (file.to_str().unwrap(), "25");
            let args = ["stream", "--path", path, "--threads", threads, "--frames", frames];
            let done = run(&[&args[..], &["--save-output", name]].concat());
            assert!(done.status.success(), "{done:?}");
            std::fs::read(file).unwrap()
        };
        let one = output("1");
        assert!(!one.is_empty());
        for threads in ["2", "3"] {
            assert!(output(threads) == one, "{path}, {threads} threads");
        }
    }
}

fn a_number_of_threads_that_cannot_be_is_refused_in_words() {
    let folder = "/nonexistent";
    for command in [&["stream"][..], &["serve"], &["verify", folder], &["bench", "model"]] {
        for number in ["0", "65", "many"] {
            let output = run(&[command, &["--threads", number]].concat());
            assert_eq!(output.status.code(), Some(2), "{command:?} {number}: {output:?}");
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains("--threads") && said.contains(number), "{command:?}: {said}");
        }
    }
}

fn a_running_service_keeps_its_own_number() {
    for command in [&["stream"][..], &["verify", "/nonexistent"]] {
        let output = run(&[command, &["--threads", "2", "--socket", "/nonexistent/s"]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("burst serve --threads 2"), "{said}");
    }
}

fn no_more_threads_compute_than_there_are_cpus() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus >= 64 {
        return; // as many as may be asked for
    }
    let args = ["stream", "--frames", "2", "--threads", "64"];
    let output = run(&args);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let noun = if cpus == 1 { "CPU" } else { "CPUs" };
    assert!(said.contains(&format!("--threads 64: this process has {cpus} {noun}")), "{said}");
    let report = json(&run(&[&args[..], &["--json"]].concat()));
    assert_eq!(report["threads"], cpus, "{report}");
}
