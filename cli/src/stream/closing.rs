//! How a stream ends: the trace is written, the summary of what was done is said, then the reason why it ended
//! before its time, if it did.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};

use super::args::Args;
use super::ledger::{Entries, Ledger};
use crate::failure;
use crate::json::{self, Ending};
use crate::trace::{Summary, Tracing};
use crate::{out, signals};

/// How long the thread that streams may take to come to an end after a signal; then what it waits for, a frame
/// on a pipe or an answer, is given up.
const GRACE: Duration = Duration::from_millis(500);

/// Why a stream ended.
#[derive(Debug)]
pub(super) enum End {
    /// All frames were sent.
    Done,
    /// A signal asked for it.
    Interrupted(Signal),
    /// It could not go on.
    Failed(anyhow::Error),
}

/// What it takes to end a stream. Copies are the same.
#[derive(Debug, Clone)]
pub(super) struct Closing {
    pub(super) args: Arc<Args>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) tracing: Option<Tracing>,
}

impl Closing {
    /// From now on a signal ends the stream: the thread that streams is asked to, and where it does not within
    /// [`GRACE`], this is done without it. The second signal ends the process at once.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn end_at_signals(&self, signals: SigSet) -> Result<()> {
        let closing = self.clone();
        signals::thread(move || {
            let Some(signal) = signals::next(&signals) else { return };
            closing.ledger.ask(signal);
            let ending = signals::thread(move || closing.end_without_the_stream(signal));
            if let Err(error) = ending {
                tracing::error!(%error, "nothing is said of what was done");
                std::process::exit(signals::exit_code(signal).into());
            }
            let Some(signal) = signals::next(&signals) else { return };
            std::process::exit(signals::exit_code(signal).into());
        })
    }

    fn end_without_the_stream(&self, signal: Signal) {
        if self.ledger.is_taken_within(GRACE) {
            return;
        }
        if let Some(entries) = self.ledger.take() {
            let code = self.end(*entries, End::Interrupted(signal));
            std::process::exit(code.into());
        }
    }

    /// Says what was done and why it ended; gives the exit status.
    pub(super) fn end(&self, entries: Entries, end: End) -> u8 {
        if let Some(bar) = &entries.heading.bar {
            bar.finish_and_clear();
        }
        let traced = self.tracing.as_ref().map(Tracing::finish).transpose();
        let (trace, end) = match (traced, end) {
            (Ok(trace), end) => (trace.flatten(), end),
            // What else went wrong matters more.
            (Err(error), End::Done) => (None, End::Failed(error)),
            (Err(error), end) => {
                out::say(format_args!("burst: {error:#}"));
                (None, end)
            }
        };
        self.say(entries, trace, end)
            .unwrap_or_else(|error| failure::told(&error.to_string(), None))
    }

    fn say(&self, entries: Entries, trace: Option<Summary>, end: End) -> Result<u8> {
        if out::reader_is_gone() {
            return Ok(failure::NOT_READ);
        }
        let error = match &end {
            End::Failed(error) => Some(failure::error_text(error)),
            End::Done | End::Interrupted(_) => None,
        };
        let interrupted = match &end {
            End::Interrupted(signal) => Some(signal.as_str()),
            End::Done | End::Failed(_) => None,
        };
        let has_begun = !entries.is_empty();
        let mut report = entries.report(&self.args);
        report.trace = trace;
        let mut to = out::stdout();
        if self.args.wants_json() {
            let ending = Ending { error: error.as_deref(), interrupted };
            writeln!(to, "{}", json::ended(&json::STREAM, &report, ending)?)?;
        } else if has_begun {
            out::text(|to| report.write_text(to))?;
        } else if let Some(trace) = &report.trace {
            out::say(trace);
        }
        to.flush()?;
        if !self.args.wants_json() {
            let reason =
                error.or_else(|| interrupted.map(|signal| format!("interrupted by {signal}")));
            reason.iter().for_each(|reason| out::say(format_args!("burst: {reason}")));
        }
        Ok(match end {
            End::Interrupted(signal) => signals::exit_code(signal),
            End::Failed(_) => failure::COULD_NOT,
            End::Done if report.is_sound() => 0,
            End::Done => failure::NO,
        })
    }
}

/// Ends the stream of this thread, unless the thread that waits for signals does.
pub(super) fn conclude(closing: &Closing, end: End) -> ExitCode {
    let Some(entries) = closing.ledger.take() else { super::ledger::wait_for_the_end() };
    // A driver that dies with the signal that asks for the end is no reason of its own.
    let end = match (closing.ledger.asked(), end) {
        (Some(signal), _) => End::Interrupted(signal),
        (None, end) => end,
    };
    ExitCode::from(closing.end(*entries, end))
}
