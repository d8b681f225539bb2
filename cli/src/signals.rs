//! The signals that ask a process to end: SIGINT, SIGTERM, SIGHUP.
//!
//! They are kept from all threads but one, which waits for them; so whatever the others wait for, a signal is
//! acted on. Whatever an earlier process had ignored (`nohup`, a shell's background job) stays so.

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};
use serde::Serialize;

use crate::failure;
use crate::json::{self, Ending, Shape};
use crate::out::{self, Out};

/// All of them.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Keeps the signals from this thread and from those that it starts from now on.
///
/// # Errors
/// The system refuses.
pub(crate) fn block() -> Result<SigSet> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    let mut signals = SigSet::empty();
    for signal in ENDING {
        if ignored & bit(signal) == 0 {
            signals.add(signal);
        }
    }
    signals.thread_block().context("cannot take over SIGINT")?;
    Ok(signals)
}

/// Lets the signals through to this thread again, and to what it becomes.
///
/// # Errors
/// The system refuses.
pub(crate) fn unblock() -> Result<()> {
    let signals: SigSet = ENDING.into_iter().collect();
    signals.thread_unblock().context("cannot let SIGINT through")
}

/// The signals that a process ignores, as bits, by its file of the system.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as i32 - 1)
}

/// Waits for the next of them; `None` where that cannot be.
pub(crate) fn next(signals: &SigSet) -> Option<Signal> {
    signals.wait().inspect_err(|error| tracing::error!(%error, "cannot wait for signals")).ok()
}

/// Starts the thread that waits for signals.
///
/// # Errors
/// There is no thread to be had.
pub(crate) fn thread(wait: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(wait).context("cannot start the signal thread")?;
    Ok(())
}

/// Ends this process at the next signal: first does what is to be done, then says what ended it, as one JSON
/// object where one is asked for.
///
/// # Errors
/// The signals cannot be taken over.
pub(crate) fn end_at_once(
    json: Option<&'static Shape>,
    first: impl FnOnce() + Send + 'static,
) -> Result<()> {
    let signals = block()?;
    thread(move || {
        let Some(signal) = next(&signals) else { return };
        first();
        told(signal, json);
        std::process::exit(exit_code(signal).into());
    })
}

/// Ends this process at the next signal: says what was done by then, as `summary` has it, and what ended it.
///
/// # Errors
/// The signals cannot be taken over.
pub(crate) fn end_with<R: Serialize>(
    json: Option<&'static Shape>,
    summary: impl FnOnce() -> (R, String) + Send + 'static,
) -> Result<()> {
    let signals = block()?;
    thread(move || {
        let Some(signal) = next(&signals) else { return };
        let (report, text) = summary();
        let ending = Ending { error: None, interrupted: Some(signal.as_str()) };
        let said = match json {
            Some(shape) => json::ended(shape, &report, ending).unwrap_or_default(),
            None => text,
        };
        // Where the reader is gone there is nobody left to tell.
        let _ = writeln!(out::stdout(), "{said}");
        if json.is_none() {
            out::say(format_args!("burst: interrupted by {signal}"));
        }
        std::process::exit(exit_code(signal).into());
    })
}

/// How long work may take to come to an end after a signal; then it is given up, with what it did.
const GRACE: Duration = Duration::from_secs(10);

/// How often it is looked for a signal by who waits for one.
const PAUSE: Duration = Duration::from_millis(5);

/// What a signal asked for, for work that looks now and then whether it is to go on. Copies are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    signal: OnceLock<Signal>,
    /// Whether somebody has begun to say how the command ends.
    told: AtomicBool,
}

impl Asked {
    /// From now on a signal asks the work of this process to end. The second one ends the process at once, and so does
    /// work that does not end within [`GRACE`].
    ///
    /// # Errors
    /// The signals cannot be taken over.
    pub(crate) fn watch(json: Option<&'static Shape>) -> Result<Asked> {
        let signals = block()?;
        let asked = Asked::default();
        let watching = asked.clone();
        thread(move || {
            let Some(signal) = next(&signals) else { return };
            let _ = watching.0.signal.set(signal); // none was before
            let late = watching.clone();
            let waiting = thread(move || {
                std::thread::sleep(GRACE);
                if late.begins_to_tell() {
                    told(signal, json);
                    std::process::exit(exit_code(signal).into());
                }
            });
            let signal = if waiting.is_ok() { next(&signals) } else { Some(signal) };
            let Some(signal) = signal else { return };
            if watching.begins_to_tell() {
                told(signal, json);
            }
            std::process::exit(exit_code(signal).into());
        })?;
        Ok(asked)
    }

    /// Whether nothing has asked for the end.
    pub(crate) fn go_on(&self) -> bool {
        self.0.signal.get().is_none()
    }

    /// Whether nothing asks for the end for so long, either.
    pub(crate) fn go_on_for(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while self.go_on() && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
        self.go_on()
    }

    fn begins_to_tell(&self) -> bool {
        !self.0.told.swap(true, Ordering::Relaxed)
    }

    /// Says how the work ended, and the reason where a signal ended it before its time, or what `otherwise` says that
    /// it could not go on for: `text` says what was done, or nothing where nothing was. Gives the exit status.
    ///
    /// # Errors
    /// Nobody reads, or the report has no form in JSON.
    pub(crate) fn tell<R: Serialize>(
        &self,
        (report, json): (&R, Option<&Shape>),
        otherwise: Result<ExitCode>,
        text: impl FnOnce(&mut Out) -> Result<()>,
    ) -> Result<ExitCode> {
        if !self.begins_to_tell() {
            // The thread that waits for signals ends the process.
            loop {
                std::thread::park();
            }
        }
        let signal = self.0.signal.get().copied();
        // What does not work any more after a signal, its driver gone too, is no reason of its own.
        let error = otherwise.as_ref().err().filter(|_| signal.is_none()).map(failure::error_text);
        let mut to = out::stdout();
        if let Some(shape) = json {
            let interrupted = signal.map(Signal::as_str);
            let ending = Ending { error: error.as_deref(), interrupted };
            writeln!(to, "{}", json::ended(shape, report, ending)?)?;
        } else {
            text(&mut to)?;
        }
        to.flush()?;
        if json.is_none() {
            let interrupted = signal.map(|signal| format!("interrupted by {signal}"));
            let reason = interrupted.or(error);
            reason.iter().for_each(|reason| out::say(format_args!("burst: {reason}")));
        }
        Ok(match (signal, otherwise) {
            (Some(signal), _) => ExitCode::from(exit_code(signal)),
            (None, Ok(code)) => code,
            (None, Err(_)) => ExitCode::from(failure::COULD_NOT),
        })
    }
}

/// Says that a signal ended the command, which has nothing else to say.
pub(crate) fn told(signal: Signal, json: Option<&Shape>) {
    match json {
        Some(shape) => {
            let ending = Ending { error: None, interrupted: Some(signal.as_str()) };
            // Where the reader is gone there is nobody left to tell.
            let _ = writeln!(out::stdout(), "{}", json::stopped(shape, ending));
        }
        None => out::say(format_args!("burst: interrupted by {signal}")),
    }
}

/// How a shell reports a process that a signal has ended.
pub(crate) fn exit_code(signal: Signal) -> u8 {
    128 + u8::try_from(signal as i32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_systems_file() {
        let status =
            "Name:\tburst\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored(status) & bit(Signal::SIGHUP), 1);
        assert_eq!(ignored(status) & bit(Signal::SIGINT), 0);
        assert_eq!(ignored("no such line"), 0);
    }

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!(ENDING.map(exit_code), [130, 143, 129]);
    }
}
