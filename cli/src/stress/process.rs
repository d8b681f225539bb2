//! A process that is watched: what it prints, whether it lives, how it ended.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Longest line that is kept of what a process prints.
const LINE_MAX: u64 = 2000;
/// How long the status of a process may take to be there after it has closed its output.
const STATUS_PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether a process has ended.
const PAUSE: Duration = Duration::from_millis(2);

/// What is heard of a process.
#[derive(Debug)]
pub(super) enum News {
    /// It printed this line.
    Line(String),
    /// It prints nothing more: it has ended, or is about to.
    End,
}

/// A process. It never outlives this value.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) name: String,
    child: Child,
    /// It ends when this is closed.
    stdin: Option<ChildStdin>,
    was_killed: bool,
}

impl Watched {
    /// Starts it. What it prints goes to `news` under this number.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(
        name: &str,
        mut command: Command,
        number: u64,
        news: &Sender<(u64, News)>,
    ) -> Result<Watched> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start the {name}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let watched = Watched { name: name.to_owned(), child, stdin, was_killed: false };
        let stdout = stdout.context("a process without output")?;
        let news = news.clone();
        let read = move || {
            let mut lines = BufReader::new(stdout);
            let mut line = Vec::new();
            // A longer one is heard as several.
            let mut next = |line: &mut Vec<u8>| {
                lines.by_ref().take(LINE_MAX).read_until(b'\n', line).is_ok_and(|length| length > 0)
            };
            while next(&mut line) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if news.send((number, News::Line(text))).is_err() {
                    return; // the test is over
                }
            }
            let _ = news.send((number, News::End));
        };
        std::thread::Builder::new()
            .name("watch".into())
            .spawn(read)
            .context("no thread to watch")?;
        Ok(watched)
    }

    /// Tells it to stop: a worker by the end of its input, a service by a signal.
    pub(super) fn tell_to_stop(&mut self, is_service: bool) {
        if is_service {
            self.signal(Signal::SIGTERM);
        }
        drop(self.stdin.take());
    }

    /// Kills it on purpose. Gives how it ended where something else had ended it by then.
    pub(super) fn kill(&mut self) -> Option<Crash> {
        self.was_killed = true;
        let _ = self.child.kill(); // it may have ended
        let crash = Crash::of(self.child.wait().ok()?)?;
        (crash.signal.as_deref() != Some(Signal::SIGKILL.as_str())).then_some(crash)
    }

    fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // It may have ended, and nobody has waited for it: the number is still its own.
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
        }
    }

    pub(super) fn was_killed(&self) -> bool {
        self.was_killed
    }

    /// How it ended; `None` where it goes on for the whole time.
    pub(super) fn status_within(&mut self, time: Duration) -> Option<ExitStatus> {
        self.status_within_while(time, &|| true)
    }

    /// The same for as long as `go_on` says so.
    pub(super) fn status_within_while(
        &mut self,
        time: Duration,
        go_on: &dyn Fn() -> bool,
    ) -> Option<ExitStatus> {
        let until = Instant::now() + time;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until && go_on() => std::thread::sleep(PAUSE),
                _ => return None,
            }
        }
    }

    /// How it ended, of one that has done so by now.
    pub(super) fn status_now(&mut self) -> Option<ExitStatus> {
        self.status_within(Duration::ZERO)
    }

    /// From now on it may open descriptors while it has fewer than so many, and never again more; what is open stays.
    ///
    /// # Errors
    /// It is gone, or this process may not.
    pub(super) fn allow_descriptors(&self, most: u64) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        prlimit(pid, Resource::Nofile, limit)
            .with_context(|| format!("cannot take descriptors from the {}", self.name))?;
        Ok(())
    }

    /// How it ended, of one that has closed its output.
    pub(super) fn status(&mut self) -> Option<ExitStatus> {
        self.status_within(STATUS_PATIENCE)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended that crashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Crash {
    /// The signal that ended it; nothing for one that panicked.
    pub(super) signal: Option<String>,
}

impl Crash {
    /// Nothing for a process that ended by itself.
    pub(super) fn of(status: ExitStatus) -> Option<Crash> {
        /// What Rust's runtime ends with after a panic.
        const PANICKED: i32 = 101;
        if let Some(number) = status.signal() {
            let name = Signal::try_from(number)
                .map_or_else(|_| number.to_string(), |signal| signal.to_string());
            return Some(Crash { signal: Some(name) });
        }
        (status.code() == Some(PANICKED)).then_some(Crash { signal: None })
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.signal {
            Some(signal) => write!(f, "ended by {signal}"),
            None => f.write_str("panicked"),
        }
    }
}
