//! A command in a terminal of its own.

use std::fs::File;
use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};

use nix::pty::{Winsize, openpty};

/// What a command did in a terminal.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) status: ExitStatus,
    /// All that was written to it, with the sequences that move the cursor and change colours.
    pub(crate) transcript: String,
}

impl Session {
    /// Runs a command to its end in a terminal with so many columns.
    pub(crate) fn run(mut command: Command, columns: u16) -> Session {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = openpty(Some(&size), None).expect("a terminal");
        let end = || Stdio::from(terminal.slave.try_clone().expect("a descriptor"));
        let mut child = command.stdout(end()).stderr(end()).spawn().expect("the command starts");
        // The child alone holds its end now: when it is gone, reading ends.
        drop((command, terminal.slave));
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        let mut ours = File::from(terminal.master);
        // The kernel tells the end by an error.
        while let Ok(read @ 1..) = ours.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..read]);
        }
        let status = child.wait().expect("its status");
        Session { status, transcript: String::from_utf8_lossy(&bytes).into_owned() }
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
