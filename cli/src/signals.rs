//! The signals that ask a process to end: SIGINT, SIGTERM, SIGHUP.
//!
//! They are kept from all threads but one, which waits for them; so whatever the others wait for, a signal is
//! acted on. Whatever an earlier process had ignored (`nohup`, a shell's background job) stays so.

use std::io::Write;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};

use crate::json::{self, Ending, Shape};
use crate::out;

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
