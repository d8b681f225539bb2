//! `--trace`: a file in which each frame can be seen, from the application to the operation, in both processes.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{self, Process, Service, json, run};

burst_testing::tests![
    every_frame_has_client_queue_driver_and_operation_spans_nested_and_in_order_from_two_processes(
    ),
    in_one_process_every_frame_has_its_operations_too(),
    over_a_running_service_it_is_the_same(),
    a_model_that_is_run_once_is_traced_over_every_path(),
    a_full_trace_holds_whole_frames_and_says_how_many_are_missing(),
    a_path_that_cannot_be_written_is_refused_at_once(),
    the_trace_of_a_driver_that_was_killed_holds_what_it_did_until_then(),
    each_driver_of_a_stream_that_goes_on_is_in_the_trace(),
    an_interrupted_stream_writes_its_trace_first(),
    the_driver_of_a_traced_stream_is_ended_by_a_signal_like_any_other(),
];

/// Far longer than anything here takes; only turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);

/// A span of the file, in nanoseconds.
#[derive(Debug, Clone)]
struct Span {
    name: String,
    cat: String,
    pid: u64,
    tid: u64,
    begin: u64,
    end: u64,
    args: Value,
}

impl Span {
    fn contains(&self, other: &Span) -> bool {
        self.begin <= other.begin && other.end <= self.end
    }

    fn frame(&self) -> Option<u64> {
        self.args["frame"].as_u64()
    }

    fn is_operation(&self) -> bool {
        self.cat == "CPU,Computation"
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no test runs so long")]
fn nanos(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1000.0).round() as u64
}

/// The spans of a file, and all of it.
fn spans(file: &Path) -> (Vec<Span>, Value) {
    let whole: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let events = whole["traceEvents"].as_array().unwrap();
    let complete = events.iter().filter(|event| event["ph"] == "X");
    let span = |event: &Value| {
        let begin = nanos(&event["ts"]);
        Span {
            name: event["name"].as_str().unwrap().to_owned(),
            cat: event["cat"].as_str().unwrap().to_owned(),
            pid: event["pid"].as_u64().unwrap(),
            tid: event["tid"].as_u64().unwrap(),
            begin,
            end: begin + nanos(&event["dur"]),
            args: event["args"].clone(),
        }
    };
    let spans = complete.map(span).collect();
    for event in events.iter().filter(|event| event["ph"] != "X") {
        assert_eq!(event["ph"], "M", "{event}");
        assert!(event["args"]["name"].is_string(), "{event}");
    }
    (spans, whole)
}

struct Traced {
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Traced {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Traced { file: folder.path().join("trace.json"), _folder: folder }
    }

    fn path(&self) -> &str {
        self.file.to_str().unwrap()
    }
}

/// The one span of this name in a frame.
#[track_caller]
fn only<'s>(spans: &'s [Span], frame: u64, name: &str) -> &'s Span {
    let of_frame = |span: &&Span| span.frame() == Some(frame) && span.name == name;
    let found: Vec<&Span> = spans.iter().filter(of_frame).collect();
    assert_eq!(found.len(), 1, "{name} of frame {frame}: {found:?}");
    found[0]
}

/// The operations that the driver planned, as position and name.
fn planned(spans: &[Span]) -> Vec<(u64, String)> {
    let plans = spans.iter().filter(|span| span.name == "plan operation");
    let mut planned: Vec<_> = plans
        .map(|span| {
            let mark = span.args["mark"].as_str().unwrap();
            let operation = mark.strip_prefix("[NN_LC_PC]").unwrap().to_owned();
            (span.args["operation"].as_u64().unwrap(), operation)
        })
        .collect();
    planned.sort_unstable();
    planned
}

/// The operations of a frame, which come one behind the other: position and name.
fn operations(spans: &[Span], frame: u64) -> Vec<(u64, String)> {
    let mut of_frame: Vec<&Span> =
        spans.iter().filter(|span| span.is_operation() && span.frame() == Some(frame)).collect();
    of_frame.sort_by_key(|span| span.begin);
    assert!(of_frame.windows(2).all(|pair| pair[0].end <= pair[1].begin), "frame {frame}");
    of_frame
        .iter()
        .map(|span| (span.args["operation"].as_u64().unwrap(), span.name.clone()))
        .collect()
}

/// Spans of one thread contain each other, or lie one behind the other.
#[track_caller]
fn assert_nested(spans: &[Span]) {
    let mut threads: BTreeMap<(u64, u64), Vec<&Span>> = BTreeMap::new();
    for span in spans {
        threads.entry((span.pid, span.tid)).or_default().push(span);
    }
    for spans in threads.values_mut() {
        spans.sort_by_key(|span| (span.begin, u64::MAX - span.end));
        let mut open: Vec<&Span> = Vec::new();
        for span in spans {
            open.retain(|outer| outer.end > span.begin);
            if let Some(outer) = open.last() {
                assert!(outer.contains(span), "{span:?} sticks out of {outer:?}");
            }
            open.push(span);
        }
    }
}

/// Every frame of a trace over two processes, whole and in order.
#[track_caller]
fn assert_whole(spans: &[Span], frames: u64, client: u64, driver: u64) {
    assert_ne!(client, driver);
    assert_nested(spans);
    let planned = planned(spans);
    assert!(!planned.is_empty());
    let mut of_frames: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
    for span in spans {
        if let Some(frame) = span.frame() {
            of_frames.entry(frame).or_default().push(span.clone());
        }
    }
    let mut before = 0;
    for number in 1..=frames {
        let spans = &of_frames[&number][..];
        let find = |name| only(spans, number, name);
        let frame = find("frame");
        assert_eq!(frame.cat, "Application,Execution");
        assert!(before <= frame.begin, "frame {number} is in its place");
        before = frame.end;
        // The application, the client library, the transport: of this process.
        let (execute, waited) = (find("execute"), find("wait for result"));
        let (encoded, decoded) = (find("encode request"), find("decode result"));
        for (inner, outer) in [
            (find("write inputs"), frame),
            (execute, frame),
            (find("read outputs"), frame),
            (encoded, execute),
            (waited, execute),
        ] {
            assert!(outer.contains(inner), "{inner:?} in {outer:?}");
            assert_eq!((inner.pid, inner.tid), (client, frame.tid), "{inner:?}");
        }
        // Of an execution that calls back, on the thread for that.
        assert!(execute.contains(decoded) && decoded.pid == client, "{decoded:?}");
        // The queues, and the driver between them.
        let (there, back) = (find("request queue"), find("result queue"));
        let request = find("request");
        assert_eq!((there.pid, back.pid, request.pid), (client, client, driver));
        assert_eq!(request.cat, "Driver,Execution");
        let way =
            [encoded.end, there.begin, there.end, request.end, back.begin, back.end, decoded.end];
        assert!(way.is_sorted(), "frame {number}: {way:?}");
        let ends = (there.end, back.begin, back.end);
        assert_eq!(ends, (request.begin, request.end, decoded.begin), "no gap");
        // Within the driver.
        let device = find("execute on the device");
        let (brought, taken) = (find("bring inputs"), find("take outputs"));
        for (inner, outer) in [
            (device, request),
            (find("encode result"), request),
            (brought, device),
            (taken, device),
        ] {
            assert!(outer.contains(inner), "{inner:?} in {outer:?}");
            assert_eq!((inner.pid, inner.tid), (driver, request.tid), "{inner:?}");
        }
        assert_eq!(operations(spans, number), planned, "each operation once, in its order");
        for operation in spans.iter().filter(|span| span.is_operation()) {
            assert!(brought.end <= operation.begin && operation.end <= taken.begin);
            assert_eq!((operation.pid, operation.tid), (driver, request.tid));
        }
    }
}

fn every_frame_has_client_queue_driver_and_operation_spans_nested_and_in_order_from_two_processes()
{
    for path in ["burst", "sync", "async", "fenced"] {
        let traced = Traced::new();
        let file = traced.path();
        let output = run(&["stream", "--frames", "20", "--path", path, "--trace", file, "--json"]);
        assert!(output.status.success(), "{path}: {output:?}");
        let report = json(&output);
        let pid = |name: &str| report[name].as_u64().unwrap();
        let (spans, whole) = spans(&traced.file);
        assert_whole(&spans, 20, pid("client_pid"), pid("driver_pid"));
        assert_eq!(report["trace"]["frames"], 20, "{path}");
        assert_eq!(report["trace"]["dropped_spans"], 0, "{path}");
        assert_eq!(report["trace"]["spans"], spans.len(), "{path}");
        assert_eq!(whole["otherData"]["clock"], "CLOCK_MONOTONIC");
        for once in ["make the model", "connect", "prepare", "prepare model", "receive model"] {
            assert_eq!(spans.iter().filter(|span| span.name == once).count(), 1, "{path}: {once}");
        }
    }
}

fn in_one_process_every_frame_has_its_operations_too() {
    let traced = Traced::new();
    let output =
        run(&["stream", "--frames", "5", "--path", "in-process", "--trace", traced.path()]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("trace: 5 frames, "), "{said}");
    let (spans, _) = spans(&traced.file);
    assert_nested(&spans);
    let planned = planned(&spans);
    assert!(!planned.is_empty());
    for frame in 1..=5 {
        assert!(only(&spans, frame, "frame").contains(only(&spans, frame, "execute")));
        assert_eq!(operations(&spans, frame), planned);
    }
    assert!(spans.iter().all(|span| span.pid == spans[0].pid), "one process");
}

fn over_a_running_service_it_is_the_same() {
    let service = Service::start();
    let mut driver = None;
    for _ in 0..2 {
        let traced = Traced::new();
        let arguments = ["stream", "--frames", "5", "--socket", service.path()];
        let output = run(&[&arguments[..], &["--trace", traced.path(), "--json"]].concat());
        let report = json(&output);
        let pid = |name: &str| report[name].as_u64().unwrap();
        let (spans, _) = spans(&traced.file);
        assert_whole(&spans, 5, pid("client_pid"), pid("driver_pid"));
        assert_eq!(*driver.get_or_insert(pid("driver_pid")), pid("driver_pid"));
    }
}

fn a_model_that_is_run_once_is_traced_over_every_path() {
    let folder = tempfile::tempdir().unwrap();
    let [input, out] = ["input", "out"].map(|name| folder.path().join(name));
    fs::write(&input, [7; 64 * 64 * 3]).unwrap();
    let [input, out] = [&input, &out].map(|path| path.to_str().unwrap());
    for path in ["burst", "sync", "async", "fenced", "in-process"] {
        let traced = Traced::new();
        let arguments = ["run", "--input", input, "--output", out, "--path", path, "--json"];
        let output = run(&[&arguments[..], &["--trace", traced.path()]].concat());
        assert!(output.status.success(), "{path}: {output:?}");
        assert_eq!(json(&output)["trace"]["frames"], 1, "{path}");
        let (spans, _) = spans(&traced.file);
        assert_nested(&spans);
        let (frame, execute) = (only(&spans, 1, "frame"), only(&spans, 1, "execute"));
        assert!(frame.contains(execute), "{path}");
        assert_eq!(operations(&spans, 1), planned(&spans), "{path}");
        let driver = spans.iter().find(|span| span.is_operation()).unwrap().pid;
        assert_eq!(driver != frame.pid, path != "in-process", "{path}");
        if driver != frame.pid {
            let request = only(&spans, 1, "request");
            let (there, back) = (only(&spans, 1, "request queue"), only(&spans, 1, "result queue"));
            let ends = (there.end, back.begin);
            assert_eq!(ends, (request.begin, request.end), "{path}");
            assert!(execute.contains(there) && execute.contains(back), "{path}");
        }
    }
}

fn a_full_trace_holds_whole_frames_and_says_how_many_are_missing() {
    let traced = Traced::new();
    // Each frame has more than ten spans in the driver: a MiB is full long before the end.
    let arguments = ["stream", "--frames", "3000", "--trace-mib", "1", "--json"];
    let report = json(&run(&[&arguments[..], &["--trace", traced.path()]].concat()));
    assert_eq!(report["frames"], 3000, "{report}");
    let count = |name: &str| report["trace"][name].as_u64().unwrap();
    assert!((100..3000).contains(&count("frames")), "{report}");
    assert!(count("dropped_spans") > 0, "{report}");
    let (spans, whole) = spans(&traced.file);
    assert_eq!(spans.iter().filter(|span| span.name == "frame").count() as u64, count("frames"));
    let pid = |name: &str| report[name].as_u64().unwrap();
    assert_whole(&spans, count("frames"), pid("client_pid"), pid("driver_pid"));
    assert_eq!(whole["otherData"]["dropped_spans"], count("dropped_spans"));
}

fn a_path_that_cannot_be_written_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for (path, part) in [(path, "not a file"), ("/nonexistent/trace.json", "No such file")] {
        // So many frames that nobody would wait for the end.
        let output = run(&["stream", "--frames", "1000000000", "--trace", path]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(&format!("--trace {path}")) && said.contains(part), "{said}");
    }
    for mib in ["0", "65"] {
        let output = run(&["stream", "--trace", "/dev/null", "--trace-mib", mib]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let without = run(&["stream", "--trace-mib", "2"]);
    assert!(String::from_utf8_lossy(&without.stderr).contains("--trace"), "{without:?}");
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANG, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn signal(pid: u64, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

/// The kernel's letter for the state of a process's main thread.
fn state_of(pid: u64) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// The only child of a process, another one than before, once it has one.
fn child_of(pid: u64, before: Option<u64>) -> u64 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let mut child = None;
    wait_until("the driver process", || {
        let children = fs::read_to_string(&path).unwrap_or_default();
        child = children.split_whitespace().next().and_then(|child| child.parse().ok());
        child.is_some() && child != before
    });
    child.unwrap()
}

/// A traced stream of frames from a pipe, which this test holds: so many frames come as it writes.
struct Piped {
    process: Process,
    frames: std::process::ChildStdin,
    pid: u64,
}

const FRAME: [u8; 8 * 8 * 3] = [128; 8 * 8 * 3];

impl Piped {
    fn start(traced: &Traced, extra: &[&str]) -> Self {
        let arguments =
            ["stream", "--source", "-", "--size", "8x8", "--top", "1", "--trace", traced.path()];
        let mut command = support::burst(&[&arguments[..], extra].concat());
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::start(command);
        let frames = process.child.stdin.take().unwrap();
        let pid = process.child.id().into();
        Piped { process, frames, pid }
    }

    /// Sends a frame and waits for its answer.
    fn answered(&mut self) {
        self.sent();
        let head = self.process.line();
        assert!(head.starts_with("frame "), "{head}");
        let best = self.process.line();
        assert!(best.starts_with("  "), "{best}");
    }

    fn sent(&mut self) {
        use std::io::Write;
        self.frames.write_all(&FRAME).unwrap();
        self.frames.flush().unwrap();
    }

    /// Waits for its end: the status, and all that it said.
    fn ended(mut self) -> (Option<i32>, String) {
        drop(self.frames);
        wait_until("the end", || self.process.child.try_wait().unwrap().is_some());
        let mut said = String::new();
        let mut error = self.process.child.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut self.process.out, &mut said).unwrap();
        std::io::Read::read_to_string(&mut error, &mut said).unwrap();
        (self.process.child.wait().unwrap().code(), said)
    }
}

fn the_trace_of_a_driver_that_was_killed_holds_what_it_did_until_then() {
    let traced = Traced::new();
    let mut stream = Piped::start(&traced, &[]);
    for _ in 0..3 {
        stream.answered();
    }
    let (client, driver) = (stream.pid, child_of(stream.pid, None));
    signal(driver, "-KILL");
    stream.sent();
    let (code, said) = stream.ended();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("died") && said.contains("spans in "), "{said}");
    let (spans, _) = spans(&traced.file);
    assert_whole(&spans, 3, client, driver);
}

fn each_driver_of_a_stream_that_goes_on_is_in_the_trace() {
    let traced = Traced::new();
    let mut stream = Piped::start(&traced, &["--reconnect"]);
    stream.answered();
    let first = child_of(stream.pid, None);
    signal(first, "-KILL");
    stream.sent(); // it may be lost
    stream.answered(); // this one is not
    let second = child_of(stream.pid, Some(first));
    let (_, said) = stream.ended();
    let (spans, _) = spans(&traced.file);
    let drivers: Vec<u64> =
        spans.iter().filter(|span| span.name == "request").map(|span| span.pid).collect();
    assert!(drivers.contains(&first) && drivers.contains(&second), "{drivers:?}: {said}");
    assert_eq!(spans.iter().filter(|span| span.name == "connect").count(), 2);
}

fn an_interrupted_stream_writes_its_trace_first() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let traced = Traced::new();
        let mut stream = Piped::start(&traced, &[]);
        stream.answered();
        stream.answered();
        let (client, driver) = (stream.pid, child_of(stream.pid, None));
        wait_until("waiting for a frame, which does not come", || state_of(client) == Some('S'));
        signal(client, name);
        wait_until("the end", || stream.process.child.try_wait().unwrap().is_some());
        let (ended, said) = stream.ended();
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains("trace: 2 frames, "), "{said}");
        let (spans, _) = spans(&traced.file);
        assert_whole(&spans, 2, client, driver);
        // A zombie has ended, even if nobody has asked for its status yet.
        let gone = || state_of(driver).is_none_or(|state| state == 'Z');
        wait_until("the end of the driver process", gone);
    }
}

/// It gives its client, which may have been told too, the time to hang up first.
fn the_driver_of_a_traced_stream_is_ended_by_a_signal_like_any_other() {
    let traced = Traced::new();
    let mut stream = Piped::start(&traced, &[]);
    stream.answered();
    signal(child_of(stream.pid, None), "-TERM");
    wait_until("the end of the driver process", || {
        let children = format!("/proc/{0}/task/{0}/children", stream.pid);
        let driver = fs::read_to_string(children).unwrap_or_default();
        driver.trim().parse().map_or(true, |driver| state_of(driver).is_none_or(|s| s == 'Z'))
    });
    stream.sent();
    let (code, said) = stream.ended();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("died"), "{said}");
}
