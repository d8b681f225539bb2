//! What is reported is what happened, and not what was asked for; and what cannot be is refused in words.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{
    Process, STATE_VARIABLES, Service, burst, child_of, json as parse, repository, run, wait_until,
};

burst_testing::tests![
    where_no_burst_is_to_be_had_the_default_goes_over_the_socket_and_says_so(),
    a_burst_that_is_asked_for_and_cannot_be_had_is_an_error(),
    how_ends_wait_and_how_many_compute_is_told_as_it_is(),
    a_missed_deadline_is_a_failed_frame_on_every_path(),
    a_private_driver_process_has_the_commands_name(),
    a_service_says_in_its_log_that_fewer_threads_compute(),
    a_service_without_a_place_for_a_key_or_its_socket_says_so(),
    help_that_cannot_be_written_is_a_failure(),
    what_has_no_object_of_its_own_is_named_in_json(),
    nothing_verified_is_not_green(),
    a_tensor_comes_from_a_pipe_and_not_from_a_folder(),
    a_folder_whose_name_is_no_text_is_written_to_and_told(),
    a_calibration_goes_where_no_device_or_pipe_is(),
    contradictions_are_refused(),
    numbers_below_zero_are_told_with_what_may_be(),
];

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A stream of three frames, as JSON.
fn streamed(extra: &[&str], status: i32) -> (Value, String) {
    let output = run(&[&["stream", "--frames", "3", "--json"], extra].concat());
    assert_eq!(output.status.code(), Some(status), "{extra:?}: {output:?}");
    (parse(&output), said(&output))
}

/// Services that grant no burst, and none that carries a request.
const WITHOUT_BURSTS: [[&str; 2]; 2] = [["--max-bursts", "0"], ["--max-queue-datums", "1"]];

fn where_no_burst_is_to_be_had_the_default_goes_over_the_socket_and_says_so() {
    for limit in WITHOUT_BURSTS {
        let service = Service::start_with(&limit);
        let (report, said) = streamed(&["--socket", service.path()], 0);
        assert_eq!((&report["path"], &report["wait"]), (&json!("sync"), &Value::Null), "{limit:?}");
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.len() == 1 && lines[0].contains("over the control socket"), "{said}");
        let text = run(&["stream", "--frames", "3", "--socket", service.path()]);
        let text = String::from_utf8(text.stdout).unwrap();
        assert!(text.contains("path sync; client process"), "{text}");
    }
}

fn a_burst_that_is_asked_for_and_cannot_be_had_is_an_error() {
    for limit in WITHOUT_BURSTS {
        let service = Service::start_with(&limit);
        let (report, _) = streamed(&["--socket", service.path(), "--path", "burst"], 2);
        let error = report["error"].as_str().unwrap();
        assert!(error.contains("--path burst"), "{error}");
    }
}

fn how_ends_wait_and_how_many_compute_is_told_as_it_is() {
    let service = Service::start();
    let here = ["--socket", service.path()];
    for (args, path, wait, threads) in [
        (&[][..], "burst", json!("adaptive"), json!(1)),
        (&["--wait", "spin", "--preference", "low-power"], "burst", json!("sleep"), json!(1)),
        (&["--path", "sync"], "sync", Value::Null, json!(1)),
        (&["--path", "fenced"], "fenced", Value::Null, json!(1)),
        (&["--path", "in-process"], "in-process", Value::Null, json!(1)),
        (&["--devices", "cpu"], "framework", Value::Null, json!(1)),
        (&here, "burst", json!("adaptive"), Value::Null),
    ] {
        let (report, _) = streamed(args, 0);
        assert_eq!(report["path"], path, "{args:?}");
        assert_eq!((&report["wait"], &report["threads"]), (&wait, &threads), "{args:?}");
    }
}

/// No frame is answered in a nanosecond, whoever looks at the clock.
fn a_missed_deadline_is_a_failed_frame_on_every_path() {
    for path in ["burst", "sync", "async", "fenced", "in-process"] {
        let (report, _) = streamed(&["--path", path, "--deadline", "1e-9"], 1);
        assert_eq!((&report["frames"], &report["errors"]), (&json!(3), &json!(3)), "{report}");
        assert!(report["error"].is_null(), "{report}");
        let statuses = report["errors_by_status"].as_object().unwrap();
        assert!(statuses.keys().all(|status| status.starts_with("MISSED_DEADLINE_")), "{report}");
        let text = run(&["stream", "--frames", "3", "--path", path, "--deadline", "1e-9"]);
        let text = String::from_utf8(text.stdout).unwrap();
        assert!(text.contains("3 errors (MISSED_DEADLINE_"), "{path}: {text}");
    }
    let refused = said(&run(&["stream", "--deadline", "0"]));
    assert_eq!(refused, "burst: --deadline 0: nothing is done in no time\n");
}

fn a_private_driver_process_has_the_commands_name() {
    let mut command = burst(&["stream", "--source", "-", "--size", "32x32"]);
    command.stdin(Stdio::piped());
    let mut stream = Process::start(command);
    let driver = child_of(stream.child.id());
    // It is `exe` until it has read its arguments.
    wait_until("the name", || {
        std::fs::read_to_string(format!("/proc/{driver}/comm")).unwrap() == "burst\n"
    });
    drop(stream.child.stdin.take());
    stream.child.wait().unwrap();
}

fn a_service_says_in_its_log_that_fewer_threads_compute() {
    if std::thread::available_parallelism().unwrap().get() >= 64 {
        return; // as many as may be asked for
    }
    let service = ["serve", "--socket", "/nonexistent/burst.sock", "--log", "json"];
    let output = run(&[&service[..], &["--threads", "64"]].concat());
    let said = said(&output);
    // What ends the command is said behind its log.
    let (log, last) = said.trim_end().rsplit_once('\n').unwrap();
    assert!(
        last.starts_with("burst: ") && log.contains("--threads 64: this process has"),
        "{said}"
    );
    for line in log.lines() {
        serde_json::from_str::<Value>(line).expect(line);
    }
}

fn a_service_without_a_place_for_a_key_or_its_socket_says_so() {
    let output = run(&["serve", "--socket", "/nonexistent/burst.sock"]);
    let said = said(&output);
    let mut command = burst(&["serve", "--no-cache"]);
    let hint = command.env("XDG_RUNTIME_DIR", "/nonexistent").output().unwrap();
    let hint = String::from_utf8(hint.stderr).unwrap();
    assert!(hint.contains("/nonexistent") && hint.contains("--socket names another"), "{hint}");
    let names = STATE_VARIABLES.iter().all(|name| said.contains(name));
    assert!(names && said.contains("no place for a key"), "{said}");
}

/// Into a file that may have no byte.
fn help_that_cannot_be_written_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$1\" > file";
    for option in ["--help", "--version"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_burst"), option]).current_dir(&folder);
        let output = shell.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{option}: {output:?}");
        let said = said(&output);
        assert!(said.starts_with("burst: cannot write to standard output: "), "{said}");
    }
}

fn what_has_no_object_of_its_own_is_named_in_json() {
    for (args, command) in [
        (&["man", "--json", "x"][..], "man"),
        (&["dump", "--json"], "dump"),
        (&["completions", "--json"], "completions"),
        (&["bench", "nonsense", "--json"], "bench"),
        (&["serve", "--json", "--nonsense"], "serve"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let object = parse(&output);
        assert_eq!((&object["command"], object["error"].is_string()), (&json!(command), true));
    }
}

fn nothing_verified_is_not_green() {
    let none = ["--op", "SOFTMAX", "--class", "single", "--device", "cpu-minimal"];
    let args = [&["verify", "--random", "3", "--mode", "sync"], &none[..]].concat();
    let output = run(&args);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("0 passed, 0 failed, 3 not supported"), "{text}");
    assert!(text.contains("nothing was verified"), "{text}");
    let object = parse(&run(&[&args[..], &["--json"]].concat()));
    let counts = ["passed", "failed", "unsupported"].map(|key| object[key].as_u64());
    assert_eq!(counts, [Some(0), Some(0), Some(3)]);
}

/// Bytes of the built-in model's input.
const INPUT: usize = 64 * 64 * 3;

fn a_tensor_comes_from_a_pipe_and_not_from_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (bytes, status, part) in
        [(INPUT, 0, ""), (INPUT - 1, 2, "has 12287"), (INPUT + 9, 2, "has more")]
    {
        let mut command = burst(&["run", "--input", "/dev/stdin", "--output", out]);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // Less than a pipe holds.
        pipe.write_all(&vec![7; bytes]).unwrap();
        drop(pipe);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert!(said(&output).contains(part), "{output:?}");
    }
    let refused = said(&run(&["run", "--input", out, "--output", out]));
    assert!(refused.ends_with("it is a folder\n"), "{refused}");
    let model = said(&run(&["run", "/dev/stdin", "--input", out, "--output", out]));
    assert!(model.contains("not a file"), "{model}");
}

fn a_folder_whose_name_is_no_text_is_written_to_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    std::fs::write(&input, [7; INPUT]).unwrap();
    let out = folder.path().join(OsStr::from_bytes(b"o\xff"));
    let mut command = burst(&["run", "--json", "--input", input.to_str().unwrap(), "--output"]);
    let output = command.arg(&out).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(parse(&output)["outputs"][0]["file"].as_str().unwrap().contains("o\u{fffd}"));
    assert!(out.join("output0.bin").is_file());
    let mut command = burst(&["stream", "--source"]);
    let refused = said(&command.arg(OsStr::from_bytes(b"p\xff")).output().unwrap());
    assert!(refused.contains("--source") && refused.contains("not UTF-8"), "{refused}");
}

fn pipe(at: &Path) {
    let (here, kind) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(here, at, kind, rustix::fs::Mode::RWXU, 0).unwrap();
}

fn a_calibration_goes_where_no_device_or_pipe_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("c.json");
    pipe(&at);
    let path = at.to_str().unwrap();
    let refused = said(&run(&["calibrate", "--rounds", "1", "--output", path]));
    assert_eq!(refused, format!("burst: --output {path}: it is not a file\n"));
    assert!(at.symlink_metadata().unwrap().file_type().is_fifo());
    let served = said(&run(&["serve", "--no-cache", "--calibration", path]));
    assert!(served.contains("c.json") && served.contains("it is not a file"), "{served}");
}

fn contradictions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (one, model) = (file("one"), file("m.tflite"));
    std::fs::copy(repository().join("models/shapes.tflite"), &model).unwrap();
    for (args, parts) in [
        (&["stream", "--path", "sync", "--wait", "spin"][..], &["--wait", "--path sync"][..]),
        (&["stream", "--float-range", "unit"], &["--float-range", "bytes as they are"]),
        (&["stream", "--source", ""], &["--source", "it names nothing"]),
        (&["stream", "--trace", &one, "--save-output", &one], &["--save-output", "--trace names"]),
        (&["stream", "--model", &model, "--trace", &model], &["--trace", "--model names"]),
        (&["run", &model, "--output", &one, "--trace", &model], &["--trace", "the model names"]),
        (&["stream", "--devices", "cpu,cpu"], &["the device cpu is named twice"]),
        (&["serve", "--device", "cpu,cpu"], &["the device cpu is named twice"]),
        (&["serve", "--allow-all", "--allow-uid", "1"], &["--allow-all", "--allow-uid"]),
        (&["serve", "--socket", &one, "--admin", &one], &["--admin", "--socket names"]),
        (&["top", "--user", "root"], &["--user", "expected the number of a user"]),
    ] {
        let output = run(args);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{args:?}: {said}");
    }
    let read = std::fs::read(&model).unwrap();
    assert_eq!(read, std::fs::read(repository().join("models/shapes.tflite")).unwrap());
    assert!(!Path::new(&one).exists(), "nothing was begun");
}

fn numbers_below_zero_are_told_with_what_may_be() {
    for (args, option, part) in [
        (&["stream", "--threads", "-1"][..], "--threads", "-1 is not from 1 to"),
        (&["stress", "--minutes", "-1"], "--minutes", "0.001 to 10080"),
        (&["top", "--once", "--interval", "-1"], "--interval", "0.1 to 3600"),
        (&["calibrate", "--rounds", "-1"], "--rounds", "-1 is not from 1 to 1000"),
        (&["serve", "--grace", "-1"], "--grace", "-1 is no number of seconds, from 0 on"),
    ] {
        let said = said(&run(args));
        assert!(said.contains(option) && said.contains(part), "{args:?}: {said}");
    }
}
