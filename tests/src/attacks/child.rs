//! Processes of an attack: this program again, in a role. None outlives the one that started it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{Gid, Uid};

/// The first argument of a process that is to play a role; behind it the user, the role and its arguments.
pub(super) const ARGUMENT: &str = "--role";

/// Turns a hang into a failure: far longer than anything here takes.
pub const HANG: Duration = Duration::from_secs(60);

/// As which user a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// As the one that started it.
    Same,
    /// As this one, which needs root.
    Other(u32),
}

impl User {
    fn argument(self) -> String {
        match self {
            User::Same => "-".to_owned(),
            User::Other(uid) => uid.to_string(),
        }
    }
}

/// A process in a role: lines go in and come out. It is killed when this is dropped, when the process
/// that started it dies, and when the thread that started it ends.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    lines: Lines,
    role: String,
}

/// What a process prints. None of it is lost: a line that nobody asked for is kept until somebody does, as
/// the threads of a process print in any order.
#[derive(Debug)]
struct Lines {
    coming: Receiver<String>,
    /// Those that came before one that was asked for, oldest first.
    kept: VecDeque<String>,
}

impl Lines {
    /// The oldest one.
    fn next(&mut self, within: Duration) -> Option<String> {
        self.kept.pop_front().or_else(|| self.coming.recv_timeout(within).ok())
    }

    /// The oldest one that begins with this word; those before it stay.
    fn beginning_with(&mut self, word: &str, within: Duration) -> Option<String> {
        let until = Instant::now() + within;
        if let Some(at) = self.kept.iter().position(|line| line.starts_with(word)) {
            return self.kept.remove(at);
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.coming.recv_timeout(left).ok()?;
            if line.starts_with(word) {
                return Some(line);
            }
            self.kept.push_back(line);
        }
    }
}

impl Child {
    /// This program in a role.
    ///
    /// # Panics
    /// The system has no process left.
    pub fn start<A: AsRef<OsStr>>(user: User, role: &str, arguments: &[A], log: Stdio) -> Child {
        let program = std::env::current_exe().expect("the program that runs");
        let mut command = Command::new(program);
        command.arg(ARGUMENT).arg(user.argument()).arg(role).args(arguments);
        command.env_remove("BURST_LOG").env_remove("BURST_SOCKET").env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().expect("a process");
        let input = process.stdin.take();
        let output = process.stdout.take().expect("piped");
        let (heard, lines) = channel();
        // Ends with the process, whose end of the pipe then closes.
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.map_while(|line| heard.send(line).ok()).for_each(drop);
        });
        let lines = Lines { coming: lines, kept: VecDeque::new() };
        Child { process, input, lines, role: role.to_owned() }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// The next line that it prints; `None` where it prints none in time, or ended.
    #[must_use]
    pub fn line(&mut self, within: Duration) -> Option<String> {
        self.lines.next(within)
    }

    /// The rest of the next line that begins with this word; lines before it stay to be heard.
    ///
    /// # Errors
    /// It does not come in time. What it printed instead is part of what it says.
    pub fn hear(&mut self, word: &str, within: Duration) -> Result<String, String> {
        let line = self.lines.beginning_with(word, within);
        let rest = line.as_deref().and_then(|line| line.strip_prefix(word));
        let rest = rest.map(|rest| rest.trim_start().to_owned());
        rest.ok_or_else(|| format!("{} never said {word:?}, but {:?}", self.role, self.lines.kept))
    }

    /// Gives it a line to read. One that has ended reads nothing.
    pub fn say(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}");
        }
    }

    /// Kills it, and returns when it is dead.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Sends it a signal. One that has ended gets none.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    /// How it ended, where it does so in time.
    pub fn ended_within(&mut self, within: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + within;
        loop {
            if let Some(status) = self.process.try_wait().ok().flatten() {
                return Some(status);
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a process does first in its role: it becomes the user, and dies with its parent from then on.
/// It has one thread yet.
///
/// # Errors
/// The system's.
pub(super) fn settle(user: &str) -> Result<(), Box<dyn std::error::Error>> {
    if user != "-" {
        let id = user.parse()?;
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_gid(Gid::from_raw(id))?;
        rustix::thread::set_thread_uid(Uid::from_raw(id))?;
    }
    // Behind the change of user, which takes it back.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// Prints a line for the process that started this one.
pub(super) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever does not listen any more is about to kill this process.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_comes_before_the_one_that_is_waited_for_is_heard_later() {
        let (prints, coming) = channel();
        let mut lines = Lines { coming, kept: VecDeque::new() };
        for line in ["executing 1", "refused", "under way", "executing 2"] {
            prints.send(line.to_owned()).unwrap();
        }
        let mut hear = |word: &str| lines.beginning_with(word, Duration::ZERO);
        assert_eq!(hear("under way").as_deref(), Some("under way"));
        assert_eq!(hear("executing").as_deref(), Some("executing 1"));
        assert_eq!(hear("executing").as_deref(), Some("executing 2"));
        assert_eq!(hear("executing"), None);
        assert_eq!(lines.next(Duration::ZERO).as_deref(), Some("refused"), "what is left");
        assert_eq!(lines.next(Duration::ZERO), None);
    }
}
