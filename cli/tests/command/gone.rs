//! A driver that dies, or a file that is broken, in the middle of measuring and verifying: what was done by then, then
//! the reason, and exit status 2, in text and as JSON.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::io::Write;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::interrupted::{Left, Shown, fifo, reader_of};
use crate::support::{Process, Service, burst, child_of, wait_until};
use crate::{verify, verify_models};

burst_testing::tests![
    vectors_before_a_broken_file_are_said(),
    vectors_before_the_end_of_a_service_are_said(),
    goldens_before_a_model_that_cannot_be_read_are_said(),
    goldens_before_the_end_of_a_service_are_said(),
    random_models_before_the_end_of_a_service_are_said(),
    rounds_of_a_model_before_the_death_of_its_driver_are_said(),
    rounds_of_the_transport_before_peers_that_die_again_and_again_are_said(),
];

impl Left {
    /// The one object, with what ended it.
    #[track_caller]
    fn failed(&self, reason: &str) -> Value {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        let object: Value = serde_json::from_str(&self.out).unwrap();
        assert!(object["interrupted"].is_null(), "{object}");
        assert!(object["error"].as_str().unwrap().contains(reason), "{object}");
        object
    }

    /// A summary with this in it, then the reason.
    #[track_caller]
    fn failed_text(&self, reason: &str, part: &str) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert!(self.out.contains(part), "{self:?}");
        let last = self.err.trim_end().lines().last().unwrap_or_default();
        assert!(last.contains("burst: ") && last.contains(reason), "{self:?}");
    }
}

fn with_json(args: &[&str], json: bool) -> Vec<String> {
    args.iter().copied().chain(json.then_some("--json")).map(str::to_owned).collect()
}

/// Runs a command to its end, with nobody in its way.
fn left(args: &[&str], json: bool) -> Left {
    let args = with_json(args, json);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Left::of(burst(&args).output().unwrap())
}

/// Runs a command that waits for a file in the middle of its work; its service is killed there, and the file is what
/// it was to be.
fn left_by(
    service: &mut Service,
    file: &Path,
    bytes: &[u8],
    (args, json): (&[&str], bool),
) -> Left {
    let args = [args, &["--socket", service.path()]].concat();
    let args = with_json(&args, json);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = burst(&args);
    command.stderr(std::process::Stdio::piped());
    let process = Process::start(command);
    let mut end = std::fs::File::from(reader_of(file));
    service.process.child.kill().unwrap();
    service.process.child.wait().unwrap();
    end.write_all(bytes).unwrap();
    drop(end);
    Left::of_process(process)
}

fn vectors_before_a_broken_file_are_said() {
    let folder = tempfile::tempdir().unwrap();
    verify::write_right(folder.path(), "a");
    std::fs::write(folder.path().join("V1_0/b.json.gz"), "no vectors").unwrap();
    let args = ["verify", folder.path().to_str().unwrap(), "--jobs", "1", "--mode", "burst"];
    let object = left(&args, true).failed("b.json.gz");
    assert_eq!((&object["tests"], &object["passed"]), (&1.into(), &1.into()), "{object}");
    left(&args, false).failed_text("b.json.gz", "1 test: 1 passed, 0 failed");
}

fn vectors_before_the_end_of_a_service_are_said() {
    let folder = tempfile::tempdir().unwrap();
    verify::write_right(folder.path(), "a");
    verify::write_right(folder.path(), "b");
    let second = folder.path().join("V1_0/b.json.gz");
    let bytes = std::fs::read(&second).unwrap();
    std::fs::remove_file(&second).unwrap();
    fifo(&second);
    let args = ["verify", folder.path().to_str().unwrap(), "--jobs", "1", "--mode", "burst"];
    let gone = "no service listens";
    let object = left_by(&mut Service::start(), &second, &bytes, (&args, true)).failed(gone);
    assert_eq!((&object["tests"], &object["passed"]), (&2.into(), &1.into()), "{object}");
    let left = left_by(&mut Service::start(), &second, &bytes, (&args, false));
    left.failed_text(gone, "2 tests: 1 passed, 1 failed");
}

fn goldens_before_a_model_that_cannot_be_read_are_said() {
    let folder = tempfile::tempdir().unwrap();
    verify_models::write_with_another(folder.path());
    let root = folder.path().to_str().unwrap();
    let args = ["verify", "--models", root, "--jobs", "1", "--mode", "burst"];
    let object = left(&args, true).failed("another.tflite");
    assert_eq!((&object["goldens"], &object["strict"]), (&1.into(), &1.into()), "{object}");
    left(&args, false).failed_text("another.tflite", "1 golden over burst: 1 strict");
}

fn goldens_before_the_end_of_a_service_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let second = verify_models::write_with_another(folder.path());
    fifo(&second);
    let root = folder.path().to_str().unwrap();
    let bytes = std::fs::read(folder.path().join("models/shapes.tflite")).unwrap();
    let args = ["verify", "--models", root, "--jobs", "1", "--mode", "burst"];
    let gone = "no service listens";
    let object = left_by(&mut Service::start(), &second, &bytes, (&args, true)).failed(gone);
    assert_eq!((&object["goldens"], &object["strict"]), (&1.into(), &1.into()), "{object}");
    let left = left_by(&mut Service::start(), &second, &bytes, (&args, false));
    left.failed_text(gone, "1 golden over burst: 1 strict");
}

fn random_models_before_the_end_of_a_service_are_said() {
    for json in [true, false] {
        let mut service = Service::start();
        let args = ["verify", "--random", "1000000", "--class", "single", "--jobs", "1"];
        // As JSON there is no line that shows how far it is; the service knows of its client.
        let args = [&args[..], &["--mode", "sync", "--socket", service.path()]].concat();
        let args = with_json(&args, json);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let shown = Shown::start(&args);
        if json {
            std::thread::sleep(std::time::Duration::from_secs(2));
        } else {
            let judged = || {
                let text = shown.text();
                let places = text.split("/1000000 models").filter_map(|text| {
                    text.rsplit(' ').next().and_then(|place| place.parse::<u64>().ok())
                });
                places.max() > Some(0)
            };
            wait_until("a model that was judged", judged);
        }
        service.process.child.kill().unwrap();
        service.process.child.wait().unwrap();
        let left = shown.left();
        if json {
            let object = left.failed("no device: ");
            assert!(object["models"].as_u64().unwrap() > 0, "{object}");
            assert_eq!((&object["lanes"][0], &object["failed"]), (&"sync".into(), &0.into()));
        } else {
            left.failed_text("no device: ", " from seed 0: ");
            assert!(left.out.contains("lanes: sync"), "{left:?}");
        }
    }
}

/// Kills the child processes of a command until it ends.
fn without_children(mut shown: Shown) -> Left {
    let pid = shown.process.child.id();
    wait_until("the end", || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
        for child in lists.flatten().flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
        }) {
            // It may be gone by now.
            let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
        }
        shown.process.child.try_wait().unwrap().is_some()
    });
    shown.left()
}

fn rounds_of_a_model_before_the_death_of_its_driver_are_said() {
    // Trials that are long enough to be found in the middle.
    let args = ["bench", "model", "--threads", "1", "--executions", "2000", "--rounds", "1000"];
    let args = [&args[..], &["--path", "in-process,burst"]].concat();
    for json in [true, false] {
        let args = with_json(&args, json);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let shown = Shown::start(&args);
        wait_until("a round that was measured", || shown.text().contains("round 2: burst"));
        child_of(shown.process.child.id());
        let left = without_children(shown);
        if json {
            let object = left.failed("built-in shapes: ");
            let path = &object["models"][0]["paths"][0];
            assert_eq!(path["path"], "in-process", "{object}");
            assert!(path["executions"].as_u64().unwrap() >= 2000, "{object}");
        } else {
            left.failed_text("built-in shapes: ", "in-process");
        }
    }
}

fn rounds_of_the_transport_before_peers_that_die_again_and_again_are_said() {
    let args = ["bench", "transport", "--no-strace", "--no-frames", "--sizes", "64"];
    let args =
        [&args[..], &["--wait", "sleep", "--placement", "unpinned", "--peers", "ours"]].concat();
    let args = [&args[..], &["--rounds", "1000"]].concat();
    for json in [true, false] {
        let args = with_json(&args, json);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let shown = Shown::start(&args);
        wait_until("a round that was measured", || shown.text().contains("round 3: "));
        let left = without_children(shown);
        if json {
            let object = left.failed("");
            let rows = object["rows"].as_array().unwrap();
            assert!(rows.iter().any(|row| row["name"] == "floor-futex"), "{object}");
        } else {
            left.failed_text("", "floor-futex");
        }
    }
}
