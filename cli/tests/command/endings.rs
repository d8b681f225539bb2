//! How a stream ends before its time: the summary of what was done, then the reason, in text and as JSON.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, Stdio};

use serde_json::Value;

use crate::support::{self, Process, Service, burst, child_of, signal, wait_until};

burst_testing::tests![
    a_signal_ends_a_stream_with_its_summary_and_the_exit_code_of_shells(),
    a_signal_that_the_driver_process_gets_too_is_no_death_of_a_driver(),
    a_signal_ends_a_stream_that_waits_for_the_next_frame_to_be_due(),
    a_signal_before_the_first_frame_has_its_object_too(),
    what_was_ignored_before_stays_ignored(),
    a_dead_driver_ends_a_stream_with_its_summary(),
    giving_up_to_reconnect_ends_a_stream_with_its_summary(),
    a_frame_cut_off_in_the_middle_ends_a_stream_with_its_summary(),
    a_line_for_each_frame_comes_when_it_is_answered(),
    a_pipe_that_is_slower_than_the_schedule_has_none_of_its_frames_dropped(),
    nobody_who_reads_is_nothing_to_complain_about(),
];

/// Raw frames of 32 by 32 pixels, three bytes each.
const FRAME: [u8; 32 * 32 * 3] = [90; 32 * 32 * 3];

/// A stream of the frames that the test writes, which saves a picture for each one that is answered.
struct Piped {
    process: Process,
    frames: ChildStdin,
    pictures: PathBuf,
    answered: usize,
    _folder: tempfile::TempDir,
}

/// What a stream left when it had ended.
#[derive(Debug)]
struct Left {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Piped {
    fn start(is_json: bool, extra: &[&str]) -> Piped {
        let folder = tempfile::tempdir().unwrap();
        let pictures = folder.path().join("pictures");
        let mut args = vec!["stream", "--source", "-", "--size", "32x32"];
        args.extend(["--save-frames", pictures.to_str().unwrap()]);
        if is_json {
            args.push("--json");
        }
        args.extend(extra);
        let mut command = burst(&args);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::start(command);
        let frames = process.child.stdin.take().unwrap();
        Piped { process, frames, pictures, answered: 0, _folder: folder }
    }

    fn pid(&self) -> u32 {
        self.process.child.id()
    }

    fn send(&mut self) {
        self.frames.write_all(&FRAME).unwrap();
    }

    /// Sends a frame and waits until it is answered and counted.
    fn answered(&mut self) {
        self.send();
        self.answered += 1;
        let pictures = || std::fs::read_dir(&self.pictures).map_or(0, Iterator::count);
        wait_until("an answer", || pictures() >= self.answered);
    }

    /// Waits for its end, with no more frames to come.
    fn end(self) -> Left {
        let Piped { process, frames, .. } = self;
        drop(frames);
        left(process)
    }

    /// Waits for its end although frames may still come.
    fn end_by_itself(mut self) -> Left {
        wait_until("the end", || self.process.child.try_wait().unwrap().is_some());
        self.end()
    }
}

fn left(mut process: Process) -> Left {
    let (mut out, mut err) = (String::new(), String::new());
    process.out.read_to_string(&mut out).unwrap();
    process.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    Left { code: process.child.wait().unwrap().code(), out, err }
}

impl Left {
    /// Asserts that the summary counts frames, and that the reason is the last thing that is said.
    #[track_caller]
    fn assert(&self, is_json: bool, code: i32, frames: u64, reason: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        if is_json {
            assert_eq!(self.report()["frames"], frames, "{self:?}");
            assert!(self.err.is_empty(), "{self:?}");
            return;
        }
        let noun = if frames == 1 { "frame" } else { "frames" };
        assert!(self.out.contains(&format!("\n{frames} {noun} in ")), "{self:?}");
        assert!(self.out.contains("latency"), "{self:?}");
        let last = self.err.lines().last().unwrap_or_default();
        assert!(last.starts_with("burst: ") && last.contains(reason), "{self:?}");
    }

    fn report(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "one object: {self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// Asserts that the object says that a signal ended it, or that an error did.
    #[track_caller]
    fn assert_object(&self, interrupted: Option<&str>, error: Option<&str>) {
        let report = self.report();
        assert_eq!(report["interrupted"].as_str(), interrupted, "{report}");
        match error {
            None => assert!(report["error"].is_null(), "{report}"),
            Some(part) => assert!(report["error"].as_str().unwrap().contains(part), "{report}"),
        }
        assert!(report["latency_us"]["p50"].as_f64().unwrap() > 0.0, "{report}");
    }
}

const SIGNALS: [(&str, &str, i32); 3] =
    [("-INT", "SIGINT", 130), ("-TERM", "SIGTERM", 143), ("-HUP", "SIGHUP", 129)];

fn a_signal_ends_a_stream_with_its_summary_and_the_exit_code_of_shells() {
    for (flag, name, code) in SIGNALS {
        for is_json in [false, true] {
            let mut stream = Piped::start(is_json, &[]);
            stream.answered();
            stream.answered();
            signal(stream.pid(), flag);
            // It waits for a frame that does not come.
            let left = stream.end_by_itself();
            left.assert(is_json, code, 2, &format!("interrupted by {name}"));
            if is_json {
                left.assert_object(Some(name), None);
            }
        }
    }
}

/// A terminal tells all of its processes, and a supervisor all of a service's.
fn a_signal_that_the_driver_process_gets_too_is_no_death_of_a_driver() {
    for ((flag, name, code), is_json) in
        SIGNALS.into_iter().flat_map(|signal| [(signal, false), (signal, true)])
    {
        let mut stream = Piped::start(is_json, &[]);
        stream.answered();
        let driver = child_of(stream.pid());
        signal(driver, flag);
        signal(stream.pid(), flag);
        let left = stream.end_by_itself();
        left.assert(is_json, code, 1, &format!("interrupted by {name}"));
        if is_json {
            left.assert_object(Some(name), None);
        } else {
            assert!(!left.err.contains("died"), "{left:?}");
        }
    }
}

fn a_signal_ends_a_stream_that_waits_for_the_next_frame_to_be_due() {
    let mut command = burst(&["stream", "--frames", "3", "--fps", "0.001", "--top", "1"]);
    command.stderr(Stdio::piped());
    let mut process = Process::start(command);
    assert!(process.line().starts_with("frame 1 "));
    process.line();
    signal(process.child.id(), "-INT");
    let left = left(process);
    left.assert(false, 130, 1, "interrupted by SIGINT");
}

fn a_signal_before_the_first_frame_has_its_object_too() {
    let stream = Piped::start(true, &[]);
    child_of(stream.pid()); // it has taken the signals over by then
    signal(stream.pid(), "-TERM");
    let left = stream.end_by_itself();
    assert_eq!(left.code, Some(143), "{left:?}");
    let report = left.report();
    assert_eq!(report["interrupted"], "SIGTERM");
    assert_eq!(report["frames"], 0);
}

/// As `nohup` and a shell's background jobs have it.
fn what_was_ignored_before_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("out");
    let script = "trap '' HUP; exec \"$0\" stream --source - --size 32x32 --json-lines";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_burst")]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::start(command);
    let mut frames = process.child.stdin.take().unwrap();
    frames.write_all(&FRAME).unwrap();
    process.line();
    signal(process.child.id(), "-HUP");
    frames.write_all(&FRAME).unwrap();
    assert!(process.line().contains("\"frame\":2"), "it goes on");
    drop((frames, lines));
    let left = left(process);
    assert_eq!(left.code, Some(0), "{left:?}");
}

fn a_dead_driver_ends_a_stream_with_its_summary() {
    for is_json in [false, true] {
        let mut stream = Piped::start(is_json, &[]);
        stream.answered();
        stream.answered();
        let driver = child_of(stream.pid());
        signal(driver, "-KILL");
        stream.send();
        let left = stream.end();
        let reason = format!("(process {driver}) died: killed by SIGKILL");
        left.assert(is_json, 2, 2, &reason);
        if is_json {
            left.assert_object(None, Some(&reason));
        }
    }
}

fn giving_up_to_reconnect_ends_a_stream_with_its_summary() {
    for is_json in [false, true] {
        let mut service = Service::start();
        let socket = service.path().to_owned();
        let options = ["--socket", &socket, "--reconnect", "--deadline", "0.2"];
        let mut stream = Piped::start(is_json, &options);
        stream.answered();
        stream.answered();
        service.process.child.kill().unwrap();
        service.process.child.wait().unwrap();
        // The first may be lost with the service; the one after that finds nobody.
        stream.send();
        stream.send();
        let left = stream.end();
        assert_eq!(left.code, Some(2), "{left:?}");
        let reason = format!("no service listens at {socket}");
        if is_json {
            left.assert_object(None, Some(&reason));
            let report = left.report();
            assert_eq!(report["frames"], 2 + report["lost"].as_u64().unwrap(), "{report}");
        } else {
            assert!(left.out.contains("latency") && left.out.contains(" frames in "), "{left:?}");
            let last = left.err.lines().last().unwrap();
            assert!(last.starts_with("burst: ") && last.contains(&reason), "{left:?}");
        }
    }
}

fn a_frame_cut_off_in_the_middle_ends_a_stream_with_its_summary() {
    for is_json in [false, true] {
        let mut stream = Piped::start(is_json, &[]);
        stream.answered();
        stream.answered();
        stream.frames.write_all(&FRAME[..100]).unwrap();
        let left = stream.end();
        let reason = "stdin ended in the middle of frame 3: 100 of 3072 bytes";
        left.assert(is_json, 2, 2, reason);
        if is_json {
            left.assert_object(None, Some(reason));
        }
    }
}

fn a_line_for_each_frame_comes_when_it_is_answered() {
    let mut command = burst(&["stream", "--source", "-", "--size", "32x32", "--json-lines"]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::start(command);
    let mut frames = process.child.stdin.take().unwrap();
    let mut keys = Vec::new();
    for number in 1..=3 {
        frames.write_all(&FRAME).unwrap();
        let line: Value = serde_json::from_str(&process.line()).unwrap();
        assert_eq!(line["frame"], number, "{line}");
        assert_eq!(line["status"], "NONE", "{line}");
        assert!(line["latency_us"].as_f64().unwrap() > 0.0, "{line}");
        assert_eq!(line["top"].as_array().unwrap().len(), 1, "{line}");
        keys.push(line.as_object().unwrap().keys().cloned().collect::<Vec<String>>());
    }
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
    drop(frames);
    let left = left(process);
    let summary = left.report();
    assert_eq!((&summary["schema"], &summary["frames"]), (&1.into(), &3.into()), "{summary}");
    assert!(summary["results"].is_null(), "each was a line of its own: {summary}");
    assert_eq!(left.code, Some(0));
}

/// The next frame comes when the one before is answered: there is never a newer one that it would be dropped for.
fn a_pipe_that_is_slower_than_the_schedule_has_none_of_its_frames_dropped() {
    // A frame is more than a pipe holds, so that reading one takes longer than a millionth of a second.
    let (size, frame) = ("320x240", vec![90; 320 * 240 * 3]);
    let args = ["stream", "--source", "-", "--size", size, "--json-lines", "--fps", "1000000"];
    let mut command = burst(&args);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::start(command);
    let mut frames = process.child.stdin.take().unwrap();
    for number in 1..=20 {
        frames.write_all(&frame).unwrap();
        let line: Value = serde_json::from_str(&process.line()).unwrap();
        assert_eq!(line["frame"], number, "{line}");
    }
    drop(frames);
    let left = left(process);
    let summary = left.report();
    assert_eq!((&summary["frames"], &summary["dropped"]), (&20.into(), &0.into()), "{summary}");
}

/// `burst stream | head -1`.
fn nobody_who_reads_is_nothing_to_complain_about() {
    for extra in [&["--top", "1"][..], &["--json-lines"]] {
        let mut command = burst(&[&["stream", "--frames", "100000000"][..], extra].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = [0; 1];
        child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + 13), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
    let service = Service::start();
    for args in [
        &["dump"][..],
        &["stream", "--frames", "2", "--json"],
        &["explain", "--json"],
        &["devices", "--json", "--socket", service.path()],
    ] {
        let mut command = support::burst(args);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(128 + 13), "{args:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{args:?}: {output:?}");
    }
}
