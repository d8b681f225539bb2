//! Log lines: which, and in what form.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::OnceLock;

use burst_hal::log_tags::{LogTag, LogTags};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Says which lines, in the syntax of `tracing`.
const FILTER_VARIABLE: &str = "BURST_LOG";
/// Says which tags besides, as `--vlog` does.
const TAGS_VARIABLE: &str = "BURST_VLOG";

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// One line for people.
    #[default]
    Text,
    /// One JSON object per line, with every field by its name.
    Json,
}

/// The tags of `--vlog`, for processes that this one starts.
static TAGS: OnceLock<LogTags> = OnceLock::new();

/// Log lines go to standard error. `BURST_LOG` says which, `level` where it is not set; besides come all lines
/// with the tags of `--vlog`, or of `BURST_VLOG` where that is not given.
pub(crate) fn start(format: LogFormat, level: &str, tags: Option<LogTags>) {
    if let Some(tags) = tags {
        TAGS.get_or_init(|| tags);
    }
    let chosen = Chosen::of(std::env::var_os(FILTER_VARIABLE), level);
    let named = tags.map_or_else(|| Named::of(std::env::var_os(TAGS_VARIABLE)), Named::from);
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(with_tags(chosen.filter, named.tags)))
        .with_writer(std::io::stderr)
        .with_ansi(
            std::io::stderr().is_terminal() && !wants_no_colour(std::env::var_os("NO_COLOR")),
        )
        .log_internal_errors(false);
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    for warning in chosen.warning.iter().chain(&named.warning) {
        tracing::warn!("{warning}");
    }
}

/// Whether the variable `NO_COLOR` asks for none: set, to anything but nothing.
fn wants_no_colour(variable: Option<OsString>) -> bool {
    variable.is_some_and(|value| !value.is_empty())
}

/// What to give a process that this one starts, so that it logs with the same tags: `--vlog` and its tags.
/// The variables it inherits.
pub(crate) fn arguments() -> Vec<String> {
    let tags = TAGS.get().map(LogTags::to_string);
    tags.map_or_else(Vec::new, |tags| vec!["--vlog".to_owned(), tags])
}

/// Reads the tags of `--vlog`.
///
/// # Errors
/// A name that is no tag, with those that there are.
pub(crate) fn tags(text: &str) -> Result<LogTags, String> {
    match LogTags::parse(text) {
        (tags, unknown) if unknown.is_empty() => Ok(tags),
        (_, unknown) => Err(no_tags(&unknown)),
    }
}

fn no_tags(unknown: &[&str]) -> String {
    let names = LogTag::ALL.map(LogTag::name).join(", ");
    let unknown = unknown.join(", ");
    format!("no log tag {unknown}; there are: {names}, all")
}

/// Which lines, without tags.
struct Chosen {
    filter: String,
    warning: Option<String>,
}

impl Chosen {
    fn of(variable: Option<OsString>, level: &str) -> Self {
        let Some(value) = variable else {
            return Chosen { filter: level.to_owned(), warning: None };
        };
        let parsed = value.to_str().ok_or_else(|| "not UTF-8".to_owned()).and_then(|text| {
            let filter = EnvFilter::try_new(text).map_err(|error| error.to_string())?;
            drop(filter);
            match stranger(text) {
                Some(word) => Err(format!(
                    "{word} is no level (off, error, warn, info, debug, trace), and nothing here has that name"
                )),
                None => Ok(text.to_owned()),
            }
        });
        match parsed {
            Ok(filter) => Chosen { filter, warning: None },
            Err(error) => {
                let warning =
                    format!("{FILTER_VARIABLE}={value:?} is not used, {level} is: {error}");
                Chosen { filter: level.to_owned(), warning: Some(warning) }
            }
        }
    }
}

/// What the names of those who log here begin with.
const TARGETS: [&str; 4] = ["burst", "fmq", "neuralnetworks", "nn"];

/// A word by itself that is no level and names nobody who logs here: all lines would be those of a target that is not
/// there, so that none was written.
fn stranger(filter: &str) -> Option<&str> {
    let words = filter.split(',').map(str::trim);
    let mut words = words.filter(|word| !word.is_empty() && !word.contains(['=', '[', '{', '}']));
    words.find(|word| {
        let first = word.split([':', '_']).next().unwrap_or_default();
        word.parse::<LevelFilter>().is_err() && !TARGETS.contains(&first)
    })
}

/// Tags that the environment names.
struct Named {
    tags: LogTags,
    warning: Option<String>,
}

impl Named {
    /// Unknown names are told and left out, as the original does.
    fn of(variable: Option<OsString>) -> Self {
        let text = variable.as_ref().map(|value| value.to_string_lossy()).unwrap_or_default();
        let (tags, unknown) = LogTags::parse(&text);
        let warning = (!unknown.is_empty()).then(|| no_tags(&unknown));
        Named { tags, warning: warning.map(|warning| format!("{TAGS_VARIABLE}: {warning}")) }
    }
}

impl From<LogTags> for Named {
    fn from(tags: LogTags) -> Self {
        Named { tags, warning: None }
    }
}

/// The filter, and every line of the tags.
fn with_tags(filter: String, tags: LogTags) -> String {
    tags.iter().fold(filter, |filter, tag| {
        let comma = if filter.is_empty() { "" } else { "," };
        format!("{filter}{comma}{}=trace", tag.target())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_added_to_whatever_is_chosen() {
        let (tags, _) = LogTags::parse("memory model");
        let with = |filter: &str, tags| with_tags(filter.to_owned(), tags);
        assert_eq!(with("warn", LogTags::default()), "warn");
        assert_eq!(with("warn", tags), "warn,nn::model=trace,nn::memory=trace");
        assert_eq!(with("", tags), "nn::model=trace,nn::memory=trace");
        for tag in LogTag::ALL {
            let filter = EnvFilter::try_new(with("off", LogTags::parse(tag.name()).0));
            assert!(filter.is_ok(), "{tag:?}");
        }
    }

    #[test]
    fn a_filter_that_is_none_is_told_and_not_used() {
        let chosen = Chosen::of(Some("burst_server=debug".into()), "warn");
        assert_eq!((chosen.filter.as_str(), chosen.warning), ("burst_server=debug", None));
        let chosen = Chosen::of(None, "warn");
        assert_eq!((chosen.filter.as_str(), chosen.warning), ("warn", None));
        let chosen = Chosen::of(Some("burst_server=loud".into()), "warn");
        let warning = chosen.warning.expect("it is wrong");
        assert_eq!(chosen.filter, "warn");
        assert!(warning.starts_with("BURST_LOG=\"burst_server=loud\" is not used"), "{warning}");
        for wrong in ["nonsense", "info,debgu", "bursts"] {
            let chosen = Chosen::of(Some(wrong.into()), "warn");
            let warning = chosen.warning.expect(wrong);
            assert!(chosen.filter == "warn" && warning.contains("is no level"), "{warning}");
        }
        for right in ["", "debug", "OFF", "3", "burst_server", "nn::model, info", "x=debug,burst"] {
            let chosen = Chosen::of(Some(right.into()), "warn");
            assert_eq!((chosen.filter.as_str(), chosen.warning), (right, None));
        }
    }

    #[test]
    fn unknown_tags_are_named_with_those_that_there_are() {
        let named = Named::of(Some("driver:colour".into()));
        assert_eq!(named.tags.to_string(), "driver");
        let warning = named.warning.expect("one is unknown");
        assert!(warning.starts_with("BURST_VLOG: no log tag colour; there are: model, "));
        assert!(Named::of(None).warning.is_none());
        assert_eq!(
            tags("colour,red").unwrap_err().split(';').next(),
            Some("no log tag colour, red")
        );
        assert_eq!(tags("1"), Ok(LogTags::ALL));
    }
}
