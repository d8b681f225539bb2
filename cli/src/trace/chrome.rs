//! The file: Chrome's trace event format, as ui.perfetto.dev and Chrome's tracing page open it.
//!
//! One JSON object. Each span is a complete event (`X`) with process and thread, in microseconds from the first span on;
//! metadata events (`M`) name processes and threads. Categories are layer and phase.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use burst_hal::trace::SpanKind;
use serde::Serialize;
use serde_json::{Value, json};

use super::frames::{Arranged, OwnedSpan, Process, REQUEST_QUEUE, RESULT_QUEUE};

/// A complete event.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    cat: String,
    ph: &'static str,
    ts: f64,
    dur: f64,
    pid: u32,
    tid: u32,
    args: Arguments<'a>,
}

/// What a viewer shows of an event beside its times.
#[derive(Serialize)]
struct Arguments<'a> {
    layer: &'static str,
    phase: &'static str,
    /// As Android's trace marks say it.
    mark: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    frame: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    graph: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
}

/// Writes the file in place of what was in it.
pub(super) fn write(file: &File, arranged: &Arranged) -> io::Result<()> {
    let mut start = file;
    start.set_len(0)?;
    start.seek(SeekFrom::Start(0))?;
    let mut out = BufWriter::new(start);
    write_to(&mut out, arranged)?;
    out.flush()
}

fn write_to(out: &mut impl Write, arranged: &Arranged) -> io::Result<()> {
    let spans = arranged.processes.iter().flat_map(|process| &process.spans);
    let zero = spans.map(|span| span.begin).min().unwrap_or(0);
    let about = json!({
        "clock": "CLOCK_MONOTONIC",
        "begin_ns": zero,
        "frames": arranged.frames,
        "dropped_spans": arranged.dropped,
        "unknown_records": arranged.unknown,
        "burst": env!("CARGO_PKG_VERSION"),
    });
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")?;
    let mut separator = "\n";
    for (number, process) in arranged.processes.iter().enumerate() {
        for named in names(process, number == 0) {
            write!(out, "{separator}{named}")?;
            separator = ",\n";
        }
        for span in &process.spans {
            write!(out, "{separator}")?;
            serde_json::to_writer(&mut *out, &event(span, process.pid, zero))?;
            separator = ",\n";
        }
    }
    writeln!(out, "\n]}}")
}

/// Names of a process and its threads, as events.
fn names(process: &Process, is_own: bool) -> Vec<Value> {
    let named = |what: &str, tid: u32, name: &str| json!({"name": what, "ph": "M", "pid": process.pid, "tid": tid, "args": {"name": name}});
    let mut threads: BTreeMap<u32, String> = BTreeMap::new();
    for span in &process.spans {
        let name = threads.entry(span.thread).or_default();
        if let Some(better) = thread_name(span, is_own) {
            *name = better;
        }
    }
    let process_name = if is_own { "burst, client" } else { "burst, driver" };
    let threads = threads.iter().map(|(tid, name)| match name.as_str() {
        "" => named("thread_name", *tid, if is_own { "client" } else { "calls" }),
        name => named("thread_name", *tid, name),
    });
    std::iter::once(named("process_name", 0, process_name)).chain(threads).collect()
}

/// What a span says of its thread.
fn thread_name(span: &OwnedSpan, is_own: bool) -> Option<String> {
    match (span.kind, span.thread) {
        (SpanKind::Frame, _) if is_own => Some("application".to_owned()),
        (_, REQUEST_QUEUE) => Some("request queue".to_owned()),
        (_, RESULT_QUEUE) => Some("result queue".to_owned()),
        (SpanKind::Request, _) if span.index > 0 => Some(format!("burst {}", span.index)),
        _ => None,
    }
}

fn event(span: &OwnedSpan, pid: u32, zero: u64) -> Event<'_> {
    let (layer, phase) = (span.kind.layer(), span.kind.phase());
    let is_operation = matches!(span.kind, SpanKind::Operation | SpanKind::PlanOperation);
    let name = match (span.kind, span.operation) {
        (SpanKind::Operation, Some(operation)) => operation.name(),
        _ => span.kind.name(),
    };
    let operation = span.operation.map(|operation| operation.to_string());
    let detail = operation.as_deref().unwrap_or(span.kind.name());
    Event {
        name,
        cat: format!("{},{}", layer.name(), phase.name()),
        ph: "X",
        ts: micros(span.begin - zero),
        dur: micros(span.end - span.begin),
        pid,
        tid: span.thread,
        args: Arguments {
            layer: layer.name(),
            phase: phase.name(),
            mark: format!("[NN_{}_{}]{detail}", layer.tag(), phase.tag()),
            frame: span.frame,
            burst: (span.kind == SpanKind::Request && span.index > 0).then_some(span.index),
            graph: is_operation.then_some(span.graph),
            operation: is_operation.then_some(span.index),
            kernel: (is_operation && !span.detail.is_empty()).then_some(&span.detail),
        },
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact for 100 days")]
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use burst_hal::OperationType;
    use burst_hal::trace::Span;

    use super::*;

    fn arranged() -> Arranged {
        let of = |kind, begin, end, thread| {
            let span = Span { begin_ns: begin, end_ns: end, ..Span::since(begin, kind) };
            OwnedSpan::new(&span, thread)
        };
        let frame = OwnedSpan { frame: Some(3), index: 3, ..of(SpanKind::Frame, 5_000, 9_001, 7) };
        let request = OwnedSpan { index: 2, ..of(SpanKind::Request, 6_000, 8_000, 8) };
        let operation = OwnedSpan {
            operation: Some(OperationType::Conv2d),
            index: 4,
            graph: 1,
            detail: "a \"kernel\"".into(),
            ..of(SpanKind::Operation, 6_500, 7_000, 8)
        };
        let process = |pid, spans| Process { pid, spans, ..Process::default() };
        let processes = vec![process(1, vec![frame]), process(2, vec![request, operation])];
        Arranged { processes, frames: 1, dropped: 5, unknown: 0 }
    }

    #[test]
    fn spans_are_complete_events_and_processes_and_threads_have_names() {
        let mut bytes = Vec::new();
        write_to(&mut bytes, &arranged()).unwrap();
        let file: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(file["otherData"]["dropped_spans"], 5);
        assert_eq!(file["otherData"]["begin_ns"], 5_000);
        let events = file["traceEvents"].as_array().unwrap();
        let name = |what: &str, pid: u32, tid: u32| {
            let is_it = |event: &&Value| {
                event["ph"] == "M"
                    && event["name"] == what
                    && event["pid"] == pid
                    && event["tid"] == tid
            };
            events.iter().find(is_it).unwrap()["args"]["name"].as_str().unwrap()
        };
        assert_eq!(name("process_name", 1, 0), "burst, client");
        assert_eq!(name("process_name", 2, 0), "burst, driver");
        assert_eq!(name("thread_name", 1, 7), "application");
        assert_eq!(name("thread_name", 2, 8), "burst 2");
        let spans: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        let want = json!({
            "name": "frame", "cat": "Application,Execution", "ph": "X", "ts": 0.0, "dur": 4.001,
            "pid": 1, "tid": 7,
            "args": {
                "layer": "Application", "phase": "Execution", "mark": "[NN_LA_PE]frame", "frame": 3,
            },
        });
        assert_eq!(*spans[0], want);
        let want = json!({
            "name": "CONV_2D", "cat": "CPU,Computation", "ph": "X", "ts": 1.5, "dur": 0.5,
            "pid": 2, "tid": 8,
            "args": {
                "layer": "CPU", "phase": "Computation", "mark": "[NN_LC_PCO]CONV_2D",
                "graph": 1, "operation": 4, "kernel": "a \"kernel\"",
            },
        });
        assert_eq!(*spans[2], want);
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; 100_000]).unwrap();
        write(&file, &Arranged::default()).unwrap();
        let mut text = String::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_string(&mut text).unwrap();
        let empty: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(empty["traceEvents"], json!([]));
    }
}
