//! Standard output and standard error, whose readers may go away at any time.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use burst_harness::report::counted;

/// Standard output; remembers that nobody reads it any more.
#[derive(Debug, Default)]
pub(crate) struct Out(());

/// Set when a write found that the reader of standard output is gone.
static READER_IS_GONE: AtomicBool = AtomicBool::new(false);

/// Standard output of this process.
pub(crate) fn stdout() -> Out {
    Out(())
}

/// Whether nobody reads standard output any more, as a write has shown.
pub(crate) fn reader_is_gone() -> bool {
    READER_IS_GONE.load(Ordering::Relaxed) // a fact that nothing else hangs on
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        noted(std::io::stdout().write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        noted(std::io::stdout().flush())
    }
}

fn noted<T>(result: std::io::Result<T>) -> std::io::Result<T> {
    result.map_err(|error| {
        if error.kind() == ErrorKind::BrokenPipe {
            READER_IS_GONE.store(true, Ordering::Relaxed);
        }
        match error.kind() {
            // Whoever writes tries again.
            ErrorKind::Interrupted => error,
            kind => std::io::Error::new(kind, format!("cannot write to standard output: {error}")),
        }
    })
}

/// Says a line on standard error. Where nobody reads that, there is nobody left to tell.
pub(crate) fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{}", harmless(&line.to_string()));
}

/// A text as a terminal may show it: names of files, labels and what peers say may have characters that move its
/// cursor or change its colours.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '?' } else { c };
    text.chars().map(shown).collect()
}

/// Writes what `write` says on standard output, as a terminal may show it.
///
/// # Errors
/// Those of `write`; it cannot be written.
pub(crate) fn text<E: From<std::io::Error>>(
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut text = Vec::new();
    write(&mut text)?;
    let mut to = stdout();
    to.write_all(harmless(&String::from_utf8_lossy(&text)).as_bytes())?;
    Ok(to.flush()?)
}

/// How many columns a terminal at standard output has; `None` where it is none.
pub(crate) fn columns() -> Option<u16> {
    let size = terminal_size::terminal_size_of(std::io::stdout());
    size.map(|(width, _)| width.0)
}

/// How many lines it has.
pub(crate) fn lines() -> Option<u16> {
    let size = terminal_size::terminal_size_of(std::io::stdout());
    size.map(|(_, height)| height.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_the_cursor_is_not_shown_and_lines_stay() {
        assert_eq!(harmless("a\tb\nc\r\x1b[31md\u{9b}e\u{7f} ü"), "a\tb\nc??[31md?e? ü");
    }
}
