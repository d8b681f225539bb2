//! Log lines: which, and in what form.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// One line for people.
    #[default]
    Text,
    /// One JSON object per line, with every field by its name.
    Json,
}

/// Log lines go to standard error; `BURST_LOG` says which, `level` where it is not set.
pub(crate) fn start(format: LogFormat, level: &str) {
    let filter = EnvFilter::try_from_env("BURST_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
