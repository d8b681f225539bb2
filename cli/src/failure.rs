//! How a command ends: exit status and what is said.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use crate::json::{self, Shape};
use crate::out;

/// The answer is "no": the work was done, and something in it did not hold.
pub(crate) const NO: u8 = 1;
/// There is no answer: the work could not be done.
pub(crate) const COULD_NOT: u8 = 2;
/// Nobody reads the answer: as a shell reports a process that SIGPIPE has ended.
pub(crate) const NOT_READ: u8 = 128 + 13;

/// Says why a command could not do its work: one sentence, or one JSON object of this shape.
pub(crate) fn report(error: &anyhow::Error, json: Option<&Shape>) -> ExitCode {
    ExitCode::from(told(&error_text(error), json))
}

/// Says this sentence; gives the exit status.
pub(crate) fn told(text: &str, json: Option<&Shape>) -> u8 {
    if out::reader_is_gone() {
        return NOT_READ;
    }
    match json {
        // Where the reader is gone there is nobody left to report to.
        Some(shape) => drop(writeln!(out::stdout(), "{}", json::failed(shape, text))),
        None => out::say(format_args!("burst: {text}")),
    }
    COULD_NOT
}

/// What the command line could not be read for: clap's own text, or one JSON object where that is asked for.
/// Help and version are none of these, and are printed.
pub(crate) fn wrong_arguments(error: &clap::Error, arguments: &[String]) -> ExitCode {
    let wants_json = arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| argument == "--json" || argument == "--json-lines");
    if !error.use_stderr() {
        return ExitCode::from(helped(error));
    }
    let rendered = in_words(&error.render().to_string());
    if wants_json {
        let shape = Shape::of_arguments(arguments);
        return ExitCode::from(told(&first_part(&rendered), Some(shape)));
    }
    // With colours where a terminal has them, unless words stand in the place of clap's own. The reader may be
    // gone; then there is nobody left to tell.
    if rendered == error.render().to_string() {
        let _ = error.print();
    } else {
        out::say(rendered.trim_end());
    }
    ExitCode::from(COULD_NOT)
}

/// Prints help or a version; gives the exit status.
fn helped(error: &clap::Error) -> u8 {
    let printed = if std::io::stdout().is_terminal() {
        error.print()
    } else {
        let mut to = out::stdout();
        write!(to, "{}", error.render()).and_then(|()| to.flush())
    };
    match printed {
        Ok(()) => 0,
        // Who reads the beginning alone has what was wanted.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => 0,
        Err(error) => told(&error.to_string(), None),
    }
}

/// What is said of a range, in words: clap writes it as Rust does.
fn in_words(text: &str) -> String {
    const IS_NOT: &str = " is not in ";
    let Some((before, rest)) = text.split_once(IS_NOT) else { return text.to_owned() };
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (range, behind) = rest.split_at(end);
    match range.split_once("..") {
        Some((least, "")) => format!("{before} is not {least} or more{behind}"),
        Some((least, most)) => {
            format!("{before} is not from {least} to {}{behind}", most.trim_start_matches('='))
        }
        None => text.to_owned(),
    }
}

/// What clap says, in one line and without its hints.
fn first_part(rendered: &str) -> String {
    let text = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let ends = ["\n\nUsage:", "\n\nFor more information"].into_iter();
    let end = ends.filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    text[..end].split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The causes from the outermost in, each once, in one line.
pub(crate) fn error_text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.ends_with(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    // A status that a peer names and a cause repeats is said once.
    let mut parts: Vec<&str> = text.split(": ").collect();
    parts.dedup();
    parts.join(": ").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_sentence_names_every_cause_once() {
        let error = std::fs::read("/nonexistent/x").context("cannot open m.tflite").unwrap_err();
        assert_eq!(
            error_text(&error),
            "cannot open m.tflite: No such file or directory (os error 2)"
        );
        let error = anyhow::anyhow!("inner").context("outer: inner");
        assert_eq!(error_text(&error), "outer: inner");
        let error =
            anyhow::anyhow!("GENERAL_FAILURE: GENERAL_FAILURE: it broke").context("no model");
        assert_eq!(error_text(&error), "no model: GENERAL_FAILURE: it broke");
    }

    #[test]
    fn of_wrong_arguments_the_sentence_is_kept_and_the_hints_are_not() {
        let said = "error: invalid value 'x' for '--wait <WAIT>'\n  [possible values: spin, sleep]\n\n\
                    For more information, try '--help'.\n";
        assert_eq!(
            first_part(said),
            "invalid value 'x' for '--wait <WAIT>' [possible values: spin, sleep]"
        );
        let said = "error: invalid value '0' for '--jobs <N>': 0 is not in 1..=64\n\nmore\n";
        assert_eq!(in_words(said), said.replace("is not in 1..=64", "is not from 1 to 64"));
        assert_eq!(in_words("0 is not in 1.."), "0 is not 1 or more");
        assert_eq!(in_words("he is not in the house"), "he is not in the house");
        let said = "error: unexpected argument '--x' found\n\nUsage: burst stream\n";
        assert_eq!(first_part(said), "unexpected argument '--x' found");
    }
}
