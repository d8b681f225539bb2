//! `--trace`: where the time of each frame goes, in a file for ui.perfetto.dev and Chrome's tracing page.
//!
//! | file | what a reader finds there |
//! |---|---|
//! | `recorder.rs` | the spans of this process |
//! | `frames.rs` | the spans of all processes, put together frame by frame |
//! | `chrome.rs` | the file |
//!
//! Both processes read the same clock. A driver in another process writes its spans to memory of this one, so they
//! are here however it ends.

mod chrome;
mod frames;
mod recorder;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use burst_client::{Client, ClientError, TraceBuffer};
use burst_hal::Caller;
use burst_hal::trace::{SpanSink, Tracer};
use serde::Serialize;

use frames::{Arranged, Process, arrange};
use recorder::Recorder;

use crate::out::{self, counted};

/// Where spans are written, and how many.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TraceArgs {
    /// Write what this process, the queues and the driver did in each frame, operation by operation, to this
    /// file: JSON for ui.perfetto.dev or Chrome's tracing page. Written at the end, also of a run that fails or is
    /// interrupted.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Room for spans of --trace, in MiB, here and in the driver: 16 hold 262,143 spans of each, which is a few thousand
    /// frames. The first frames are kept, those without room are counted.
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 16,
        requires = "trace",
        value_parser = clap::value_parser!(u64).range(1..=TraceBuffer::BYTES_MAX >> 20)
    )]
    trace_mib: u64,
}

impl TraceArgs {
    /// The file that is named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.trace.as_deref()
    }

    /// Begins a trace, where one is asked for.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn begin(&self) -> Result<Option<Tracing>> {
        let Some(path) = &self.trace else { return Ok(None) };
        let file = open(path)?;
        let bytes = self.trace_mib << 20;
        let inner = Inner {
            path: path.clone(),
            recorder: Arc::new(Recorder::new(bytes)),
            bytes,
            state: Mutex::new(State { file: Some(file), drivers: Vec::new(), untraced: 0 }),
        };
        Ok(Some(Tracing(Arc::new(inner))))
    }
}

/// Ends a piece of work that may be traced: whatever became of it, the trace is written.
///
/// # Errors
/// Those of the work; the trace cannot be written.
pub(crate) fn conclude<T>(
    tracing: Option<&Tracing>,
    outcome: Result<T>,
) -> Result<(T, Option<Summary>)> {
    let traced = tracing.map(Tracing::finish).transpose();
    let done = outcome.inspect_err(|_| match &traced {
        Ok(summary) => summary.iter().flatten().for_each(out::say),
        Err(error) => out::say(format_args!("burst: {error:#}")),
    })?;
    Ok((done, traced?.flatten()))
}

/// Writes a trace, where there is one, and says so on standard error: for work that does not come to its end.
pub(crate) fn write_now(tracing: Option<&Tracing>) {
    match tracing.map(Tracing::finish).transpose() {
        Ok(summary) => summary.iter().flatten().for_each(out::say),
        Err(error) => out::say(format_args!("burst: {error:#}")),
    }
}

/// A service that does not know a call of this command says so; what for, only this end knows.
pub(crate) fn told(error: ClientError) -> anyhow::Error {
    let is_old = matches!(error, ClientError::UnknownCall { .. });
    let error = anyhow::Error::from(error);
    if is_old { error.context("--trace: the driver records no spans") } else { error }
}

/// Opens a file to write; what is in it stays until then.
fn open(path: &Path) -> Result<File> {
    let named = || format!("--trace {}", path.display());
    // A pipe that nobody reads would be waited for here.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        bail!("{}: not a file", named());
    }
    OpenOptions::new().write(true).create(true).truncate(false).open(path).with_context(named)
}

/// A trace that was begun. Copies are the same.
#[derive(Debug, Clone)]
pub(crate) struct Tracing(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    recorder: Arc<Recorder>,
    /// Room for the spans of this process, and for those of all drivers together.
    bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Until it is written.
    file: Option<File>,
    drivers: Vec<Driver>,
    /// Drivers for whose spans there was no room left.
    untraced: u64,
}

/// A driver in another process.
#[derive(Debug)]
struct Driver {
    pid: u32,
    buffer: TraceBuffer,
}

/// What a trace came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Summary {
    /// Its path, for people: what is not UTF-8 in it is replaced.
    pub(crate) file: String,
    /// Frames that are in it, with all their spans.
    pub(crate) frames: u64,
    pub(crate) spans: u64,
    /// Spans, of this process and of drivers, that had no room, or whose frame is not in it.
    pub(crate) dropped_spans: u64,
    /// Records of a driver that make no sense here.
    pub(crate) unknown_records: u64,
    /// Drivers, after others, for whose spans there was no room left.
    pub(crate) untraced_drivers: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { file, frames, spans, .. } = self;
        let (frames, spans) = (counted(*frames, "frame"), counted(*spans, "span"));
        write!(f, "trace: {frames}, {spans} in {file}")?;
        if self.dropped_spans > 0 {
            let spans = counted(self.dropped_spans, "span");
            write!(f, "; {spans} of later frames had no room (--trace-mib)")?;
        }
        if self.unknown_records > 0 {
            let records = counted(self.unknown_records, "record");
            write!(f, "; unknown: {records} of the driver")?;
        }
        if self.untraced_drivers > 0 {
            let drivers = counted(self.untraced_drivers, "later driver");
            write!(f, "; {drivers} had no room (--trace-mib)")?;
        }
        Ok(())
    }
}

impl Tracing {
    /// Where the spans of this process go.
    pub(crate) fn sink(&self) -> &dyn SpanSink {
        &*self.0.recorder
    }

    /// For whom a device in this process works, so that its spans are among them.
    pub(crate) fn caller(&self) -> Caller {
        Caller::default().with_tracer(self.tracer())
    }

    fn tracer(&self) -> Tracer {
        Arc::clone(&self.0.recorder) as Tracer
    }

    /// From now on the service of this client writes its spans to memory of this process. One that comes after
    /// others, for whose spans there is no room left, goes without.
    ///
    /// # Errors
    /// The service does not do that; there is no memory.
    pub(crate) fn attach(&self, client: &Client) -> Result<(), ClientError> {
        let mut state = self.state();
        let used = state.drivers.iter().map(|driver| driver.buffer.bytes_used());
        let left = self.0.bytes.saturating_sub(used.sum());
        if left < TraceBuffer::BYTES_MIN {
            state.untraced += 1;
            return Ok(());
        }
        let buffer = TraceBuffer::create(left)?;
        client.begin_trace(&buffer, self.tracer())?;
        state.drivers.push(Driver { pid: client.driver_pid(), buffer });
        Ok(())
    }

    /// Writes the file, once; `None` where that was done before.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn finish(&self) -> Result<Option<Summary>> {
        let mut state = self.state();
        let Some(file) = state.file.take() else { return Ok(None) };
        let failed = || format!("cannot write the trace to {}", self.0.path.display());
        let own = self.0.recorder.process();
        let drivers = state.drivers.iter().map(|driver| Process::read(driver.pid, &driver.buffer));
        let drivers = drivers.collect::<Result<Vec<_>, _>>().with_context(failed)?;
        let arranged = arrange(own, drivers);
        chrome::write(&file, &arranged).with_context(failed)?;
        let Arranged { frames, dropped, unknown, .. } = arranged;
        Ok(Some(Summary {
            file: self.0.path.display().to_string(),
            frames,
            spans: arranged.processes.iter().map(|process| process.spans.len() as u64).sum(),
            dropped_spans: dropped,
            unknown_records: unknown,
            untraced_drivers: state.untraced,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_refused_before_anything_begins_and_what_is_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let said = |path: &Path| format!("{:#}", open(path).unwrap_err());
        assert!(said(folder.path()).contains("not a file"));
        let missing = folder.path().join("nowhere/trace.json");
        let refused = said(&missing);
        assert!(refused.contains("nowhere/trace.json") && refused.contains("No such file"));
        let pipe = folder.path().join("pipe");
        let (here, kind) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(here, &pipe, kind, rustix::fs::Mode::RWXU, 0).unwrap();
        assert!(said(&pipe).contains("not a file"));
        let there = folder.path().join("there");
        std::fs::write(&there, "kept").unwrap();
        drop(open(&there).unwrap());
        assert_eq!(std::fs::read(&there).unwrap(), b"kept");
    }

    #[test]
    fn a_summary_says_what_is_missing() {
        let summary = Summary {
            file: "t.json".into(),
            frames: 7,
            spans: 70,
            dropped_spans: 0,
            unknown_records: 0,
            untraced_drivers: 0,
        };
        assert_eq!(summary.to_string(), "trace: 7 frames, 70 spans in t.json");
        let full = Summary { dropped_spans: 3, untraced_drivers: 2, ..summary };
        let said = full.to_string();
        assert!(said.contains("3 spans of later frames had no room (--trace-mib)"), "{said}");
        assert!(said.contains("2 later drivers"), "{said}");
    }
}
