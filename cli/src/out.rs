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
    result.inspect_err(|error| {
        if error.kind() == ErrorKind::BrokenPipe {
            READER_IS_GONE.store(true, Ordering::Relaxed);
        }
    })
}

/// Says a line on standard error. Where nobody reads that, there is nobody left to tell.
pub(crate) fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
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
