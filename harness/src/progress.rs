//! A line that says what is measured now.

use std::io::{IsTerminal, Write};

/// One line on standard error, where that is a terminal; it is gone in the end.
#[derive(Debug, Default)]
pub struct Progress {
    shown: bool,
}

impl Progress {
    /// Replaces the line.
    pub fn show(&mut self, line: &str) {
        let mut err = std::io::stderr();
        if !err.is_terminal() {
            return;
        }
        // A line that cannot be shown is no reason to stop measuring.
        let _ = write!(err, "\r\x1b[K{line}");
        let _ = err.flush();
        self.shown = true;
    }

    /// Takes the line away.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprint!("\r\x1b[K");
        }
    }
}
