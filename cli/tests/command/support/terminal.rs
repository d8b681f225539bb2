//! A command in a terminal of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::termios::{Termios, tcgetattr};

use super::wait_until;

/// What a command did in a terminal.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) status: ExitStatus,
    /// All that was written to it, with the sequences that move the cursor and change colours.
    pub(crate) transcript: String,
}

/// A command under way in a terminal. It never outlives its test.
pub(crate) struct Running {
    child: Child,
    transcript: Arc<Mutex<Vec<u8>>>,
    /// The terminal's other end.
    keyboard: File,
    /// The end that the command has, and its settings before, where a user sits.
    held: Option<(OwnedFd, Termios)>,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts the command in a terminal with so many columns.
    pub(crate) fn start(command: Command, columns: u16) -> Running {
        let terminal = terminal(columns);
        Running::show(command, terminal)
    }

    /// Starts the command where a user sits: the terminal has its input too, is its controlling one, and gives it
    /// what is typed.
    pub(crate) fn start_at_keyboard(command: &Command, columns: u16) -> Running {
        let terminal = terminal(columns);
        let mut in_session = Command::new("setsid");
        in_session.arg("-c").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => in_session.env(name, value),
                None => in_session.env_remove(name),
            };
        }
        in_session.stdin(terminal.slave.try_clone().expect("a descriptor"));
        let held = terminal.slave.try_clone().expect("a descriptor");
        let before = tcgetattr(&held).expect("a terminal");
        let mut running = Running::show(in_session, terminal);
        running.held = Some((held, before));
        running
    }

    fn show(mut command: Command, terminal: OpenptyResult) -> Running {
        let end = || Stdio::from(terminal.slave.try_clone().expect("a descriptor"));
        let child = command.stdout(end()).stderr(end()).spawn().expect("the command starts");
        // The child alone holds its end now: when it is gone, reading ends.
        drop((command, terminal.slave));
        let keyboard = File::from(terminal.master.try_clone().expect("a descriptor"));
        let transcript = Arc::new(Mutex::new(Vec::new()));
        let (shown, mut ours) = (Arc::clone(&transcript), File::from(terminal.master));
        // All the time: a full terminal would stop the command. The kernel tells the end by an error.
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = ours.read(&mut buffer) {
                let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                shown.extend_from_slice(&buffer[..read]);
            }
        });
        Running { child, transcript, keyboard, held: None, reader: Some(reader) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn transcript(&self) -> String {
        let bytes = self.transcript.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Presses these keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// Whether the terminal where a user sits has the settings that it had at the start.
    pub(crate) fn is_as_it_was(&self) -> bool {
        let (terminal, before) = self.held.as_ref().expect("a keyboard");
        tcgetattr(terminal).expect("a terminal") == *before
    }

    /// Waits until the command has ended, and not for ever.
    pub(crate) fn wait_for_end(&mut self) {
        wait_until("the end", || self.child.try_wait().expect("its status").is_some());
    }

    /// Waits until this was written.
    pub(crate) fn wait_for(&self, part: &str) {
        wait_until(part, || self.transcript().contains(part));
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Session {
        let status = self.child.wait().expect("its status");
        self.held = None;
        if let Some(reader) = self.reader.take() {
            reader.join().expect("what reads the terminal");
        }
        Session { status, transcript: self.transcript() }
    }
}

/// A terminal with so many columns, which nobody has yet.
fn terminal(columns: u16) -> OpenptyResult {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    openpty(Some(&size), None).expect("a terminal")
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Session {
    /// Runs a command to its end in a terminal with so many columns.
    pub(crate) fn run(command: Command, columns: u16) -> Session {
        Running::start(command, columns).end()
    }

    /// The lines as they are read, without the sequences.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut plain = String::new();
        let mut characters = self.transcript.chars();
        while let Some(character) = characters.next() {
            if character == '\u{1b}' {
                // An introducer, then everything up to a letter.
                characters.by_ref().skip(1).find(char::is_ascii_alphabetic);
            } else {
                plain.push(character);
            }
        }
        plain.split(['\n', '\r']).map(str::to_owned).filter(|line| !line.is_empty()).collect()
    }
}
