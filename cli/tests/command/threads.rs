//! `--threads`: the same outputs on every number, refused numbers.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use crate::support::{json, run};
use crate::{mlts, verify, verify_models};

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
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (input, outputs) = (path("input"), path("outputs"));
    std::fs::write(&input, vec![100; 64 * 64 * 3]).unwrap();
    verify::write_right(folder.path(), "a");
    verify_models::write(folder.path());
    let data = mlts::data(1);
    let data = data.path().to_str().unwrap();
    let (root, calibration) = (path(""), path("calibration.json"));
    let model = path("models/shapes.tflite");
    let random = ["verify", "--random", "1", "--class", "single", "--mode", "burst", "--jobs", "2"];
    let run_once = ["run", "--path", "in-process", "--input", &input, "--output", &outputs];
    let goldens = ["verify", "--models", &root, "--mode", "in-process,burst"];
    let bench = ["bench", "model", "--rounds", "1", "--executions", "2", "--path", "in-process"];
    let few = ["--windows", "0", "--path", "in-process,burst"];
    let answers = [&["bench", "mlts", &model, "--data", data][..], &few].concat();
    for (args, at) in [
        (&["stream", "--frames", "2"][..], "/threads"),
        (&["stream", "--frames", "2", "--path", "in-process"], "/threads"),
        (&run_once, "/threads"),
        (&["verify", &root, "--mode", "burst", "--jobs", "2"], "/threads"),
        (&goldens, "/threads"),
        (&random, "/threads"),
        (&bench, "/models/0/paths/0/threads"),
        (&answers, "/threads"),
        (&["calibrate", "--rounds", "1", "--output", &calibration], "/calibration/made/threads"),
    ] {
        let output = run(&[args, &["--threads", "64", "--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        let report = json(&output);
        let used = report.pointer(at).unwrap_or_else(|| panic!("{args:?}: {report}"));
        assert_eq!(used, cpus, "{args:?}: {report}");
        let said = String::from_utf8(output.stderr).unwrap();
        let noun = if cpus == 1 { "CPU" } else { "CPUs" };
        let notice = format!("--threads 64: this process has {cpus} {noun}, so ");
        assert_eq!(said.matches(&notice).count(), 1, "said once: {args:?}: {said}");
    }
    let output = run(&["stream", "--frames", "2", "--threads", "64"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--threads 64: this process has"), "{said}");
}
