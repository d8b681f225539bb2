//! How measuring and verifying end before their time: with what was done by then, the reason, and the exit code of
//! shells, in text and as JSON.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use nix::pty::openpty;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use serde_json::Value;

use crate::support::{Process, burst, repository, signal, wait_until};
use crate::{mlts, verify, verify_models};

burst_testing::tests![
    a_run_is_ended_at_once(),
    answers_that_were_compared_are_said(),
    vectors_that_were_run_are_said(),
    goldens_that_were_run_are_said(),
    random_models_that_were_judged_are_counted(),
    rounds_of_a_model_that_were_measured_are_said(),
    rounds_of_the_transport_that_were_measured_are_said(),
    workloads_that_were_measured_are_said_and_nothing_is_written(),
    a_second_signal_does_not_wait_for_the_work(),
];

/// A command with a terminal for its standard error, and all that it has shown there.
pub(crate) struct Shown {
    pub(crate) process: Process,
    text: Arc<Mutex<String>>,
}

/// What a command left when it had ended.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// What a process is sent, its name, the exit status of shells, and whether it prints JSON.
type Case = (&'static str, &'static str, i32, bool);

/// Each signal, in text and as JSON.
fn cases() -> impl Iterator<Item = Case> {
    let signals = [("-INT", "SIGINT", 130), ("-TERM", "SIGTERM", 143), ("-HUP", "SIGHUP", 129)];
    signals
        .into_iter()
        .flat_map(|(flag, name, code)| [false, true].map(|is_json| (flag, name, code, is_json)))
}

impl Shown {
    pub(crate) fn start(args: &[&str]) -> Shown {
        let terminal = openpty(None, None).unwrap();
        let mut command = burst(args);
        command.stderr(Stdio::from(terminal.slave));
        let process = Process::start(command);
        let text = Arc::new(Mutex::new(String::new()));
        let (shown, mut master) = (Arc::clone(&text), File::from(terminal.master));
        // Read all the time: a full terminal would stop the command. The kernel tells the end by an error.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = master.read(&mut buffer) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        Shown { process, text }
    }

    pub(crate) fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    fn end(self, flag: &str) -> Left {
        signal(self.process.child.id(), flag);
        self.left()
    }

    /// Waits for its end.
    pub(crate) fn left(mut self) -> Left {
        let mut out = String::new();
        self.process.out.read_to_string(&mut out).unwrap();
        let code = self.process.child.wait().unwrap().code();
        // One line, which may come in pieces.
        let is_told = |text: &str| {
            text.split_once("burst: ").is_some_and(|(_, reason)| reason.contains('\n'))
        };
        wait_until("the reason", || out.starts_with('{') || is_told(&self.text()));
        Left { code, out, err: self.text() }
    }
}

/// Waits until a command has seen a signal: then a second thread waits for the end.
fn seen(pid: u32) {
    let waiting = || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
        names.flatten().filter(|name| name == "signals\n").count()
    };
    wait_until("the signal", || waiting() == 2);
}

/// A file that whoever reads it waits for.
pub(crate) fn fifo(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Our end of such a file, once it is being read.
pub(crate) fn reader_of(path: &Path) -> OwnedFd {
    let mut end = None;
    wait_until("a reader", || {
        end = rustix::fs::open(path, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).ok();
        end.is_some()
    });
    end.unwrap()
}

/// Runs a command that waits for a file in the middle of its work, and sends it a signal there.
fn stopped_at(file: &Path, args: &[&str], (flag, json): (&str, bool)) -> Left {
    let mut args = args.to_vec();
    args.extend(json.then_some("--json"));
    let mut command = burst(&args);
    command.stderr(Stdio::piped());
    let process = Process::start(command);
    let end = reader_of(file);
    signal(process.child.id(), flag);
    seen(process.child.id());
    // The file ends, which nobody cares for any more.
    drop(end);
    Left::of_process(process)
}

impl Left {
    pub(crate) fn of(output: Output) -> Left {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Left { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Of a process whose standard error is a pipe.
    pub(crate) fn of_process(mut process: Process) -> Left {
        let (mut out, mut err) = (String::new(), String::new());
        process.out.read_to_string(&mut out).unwrap();
        process.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        Left { code: process.child.wait().unwrap().code(), out, err }
    }

    /// The one object, which names the signal.
    #[track_caller]
    fn object(&self, code: i32, name: &str) -> Value {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        let object: Value = serde_json::from_str(&self.out).unwrap();
        assert_eq!((&object["interrupted"], &object["error"]), (&name.into(), &Value::Null));
        object
    }

    /// A summary with this in it, then the reason.
    #[track_caller]
    fn assert_text(&self, code: i32, name: &str, part: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.out.contains(part), "{self:?}");
        let last = self.err.trim_end().lines().last().unwrap_or_default();
        assert!(last.ends_with(&format!("burst: interrupted by {name}")), "{self:?}");
    }
}

/// It has nothing to say of what it did before its only execution.
fn a_run_is_ended_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("v.json.gz");
    fifo(&input);
    let (path, output) = (input.to_str().unwrap(), folder.path().join("outputs"));
    let output = output.to_str().unwrap();
    for (flag, name, code, is_json) in cases() {
        let mut args = vec!["run", path, "--output", output];
        args.extend(is_json.then_some("--json"));
        let mut command = burst(&args);
        command.stderr(Stdio::piped());
        let process = Process::start(command);
        let end = reader_of(&input);
        signal(process.child.id(), flag);
        let left = Left::of_process(process);
        drop(end);
        if is_json {
            assert!(left.object(code, name)["outputs"].is_null(), "{left:?}");
        } else {
            left.assert_text(code, name, "");
            assert!(left.out.is_empty(), "{left:?}");
        }
    }
}

fn answers_that_were_compared_are_said() {
    let data = mlts::data(2);
    let folder = tempfile::tempdir().unwrap();
    let second = folder.path().join("second.tflite");
    fifo(&second);
    let first = repository().join("models/shapes.tflite");
    let [first, path, data] = [&first, &second, data.path()].map(|path| path.to_str().unwrap());
    let args = ["bench", "mlts", first, path, "--data", data, "--windows", "0"];
    let args = [&args[..], &["--path", "in-process"]].concat();
    for (flag, name, code, is_json) in cases() {
        let left = stopped_at(&second, &args, (flag, is_json));
        if is_json {
            let object = left.object(code, name);
            assert_eq!(object["models"][0]["inputs"], 2, "{object}");
        } else {
            left.assert_text(code, name, "shapes");
        }
    }
}

fn vectors_that_were_run_are_said() {
    let folder = tempfile::tempdir().unwrap();
    verify::write_right(folder.path(), "a");
    let second = folder.path().join("V1_0/b.json.gz");
    fifo(&second);
    let args = ["verify", folder.path().to_str().unwrap(), "--jobs", "1"];
    for (flag, name, code, is_json) in cases() {
        let left = stopped_at(&second, &args, (flag, is_json));
        if is_json {
            let object = left.object(code, name);
            assert_eq!((&object["tests"], &object["failed"]), (&1.into(), &0.into()), "{object}");
        } else {
            left.assert_text(code, name, "1 test: 1 passed, 0 failed");
        }
    }
}

fn goldens_that_were_run_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let second = verify_models::write_with_another(folder.path());
    fifo(&second);
    let root = folder.path().to_str().unwrap();
    let args = ["verify", "--models", root, "--jobs", "1", "--mode", "burst"];
    for (flag, name, code, is_json) in cases() {
        let left = stopped_at(&second, &args, (flag, is_json));
        if is_json {
            let object = left.object(code, name);
            assert_eq!((&object["goldens"], &object["strict"]), (&1.into(), &1.into()), "{object}");
        } else {
            left.assert_text(code, name, "1 golden over burst: 1 strict");
        }
    }
}

fn random_models_that_were_judged_are_counted() {
    // A quick lane: of models there are some before the signal.
    let args = ["verify", "--random", "1000000", "--class", "single", "--jobs", "1"];
    let args = [&args[..], &["--mode", "in-process"]].concat();
    for (flag, name, code, is_json) in cases() {
        let mut args = args.clone();
        args.extend(is_json.then_some("--json"));
        let shown = Shown::start(&args);
        if is_json {
            // No line shows how far it is: all of its threads are there.
            let pid = shown.process.child.id();
            let threads =
                || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
            wait_until("the lanes", || threads() >= 5);
        } else {
            wait_until("a model that was judged", || shown.text().contains("models  0 failed"));
        }
        let left = shown.end(flag);
        if is_json {
            let object = left.object(code, name);
            // None may be done yet.
            if !object["models"].is_null() {
                assert_eq!(object["findings"], Value::Array(Vec::new()), "{object}");
                assert_eq!(object["lanes"][0], "in process", "{object}");
            }
        } else {
            left.assert_text(code, name, " from seed 0: ");
            assert!(left.out.contains("lanes: in process, "), "{left:?}");
        }
    }
}

/// Rounds that take minutes.
const MANY: [&str; 2] = ["--rounds", "1000"];

fn measured(args: &[&str], (flag, json): (&str, bool)) -> Left {
    let mut args = [args, &MANY].concat();
    args.extend(json.then_some("--json"));
    let shown = Shown::start(&args);
    wait_until("the second round", || shown.text().contains("round 2: "));
    shown.end(flag)
}

fn rounds_of_a_model_that_were_measured_are_said() {
    let args = ["bench", "model", "--threads", "1", "--executions", "2", "--path", "in-process"];
    for (flag, name, code, is_json) in cases() {
        let left = measured(&args, (flag, is_json));
        if is_json {
            let object = left.object(code, name);
            let path = &object["models"][0]["paths"][0];
            assert!(path["latency_us"]["p50"].as_f64().unwrap() > 0.0, "{object}");
            assert!(path["executions"].as_u64().unwrap() < 2000, "{path}");
        } else {
            left.assert_text(code, name, "in-process");
        }
    }
}

fn rounds_of_the_transport_that_were_measured_are_said() {
    let args = ["bench", "transport", "--no-strace", "--no-frames", "--sizes", "64"];
    let args =
        [&args[..], &["--wait", "sleep", "--placement", "unpinned", "--peers", "ours"]].concat();
    for (flag, name, code, is_json) in cases() {
        let left = measured(&args, (flag, is_json));
        if is_json {
            let object = left.object(code, name);
            let rows = object["rows"].as_array().unwrap();
            // The floor is always there. On a busy machine the rounds of a peer may all be dropped.
            assert!(rows.iter().any(|row| row["name"] == "floor-futex"), "{object}");
        } else {
            left.assert_text(code, name, "floor-futex");
        }
    }
}

/// Lines that were shown, each with a name.
fn names(text: &str) -> Vec<String> {
    let lines = text.split("\r\x1b[K").filter(|line| !line.trim().is_empty());
    let mut names: Vec<String> = lines.map(str::to_owned).collect();
    names.dedup();
    names
}

fn workloads_that_were_measured_are_said_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calibration.json");
    for (flag, name, code, json) in cases() {
        let mut args = vec!["calibrate", "--rounds", "50", "--output", file.to_str().unwrap()];
        args.extend(json.then_some("--json"));
        let shown = Shown::start(&args);
        wait_until("the second workload", || names(&shown.text()).len() >= 2);
        let first = names(&shown.text())[0].clone();
        let left = shown.end(flag);
        if json {
            let object = left.object(code, name);
            assert!(object["file"].is_null(), "{object}");
            assert_eq!(object["calibration"]["measured"][0]["workload"], first, "{object}");
        } else {
            left.assert_text(code, name, &first);
            assert!(left.out.contains("nothing was written"), "{left:?}");
        }
        assert!(!file.exists());
    }
}

fn a_second_signal_does_not_wait_for_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("V1_0/a.json.gz");
    std::fs::create_dir(folder.path().join("V1_0")).unwrap();
    fifo(&first);
    let mut command = burst(&["verify", folder.path().to_str().unwrap(), "--jobs", "1", "--json"]);
    command.stderr(Stdio::piped());
    let mut process = Process::start(command);
    let mut end = File::from(reader_of(&first));
    signal(process.child.id(), "-INT");
    seen(process.child.id());
    signal(process.child.id(), "-TERM");
    let mut out = String::new();
    process.out.read_to_string(&mut out).unwrap();
    let left = Left { code: process.child.wait().unwrap().code(), out, err: String::new() };
    left.object(143, "SIGTERM");
    assert!(end.write_all(b"x").is_err(), "nobody reads any more");
}
