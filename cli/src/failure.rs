//! How a command ends: exit status and what is said.

use std::io::Write;
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
    if !error.use_stderr() || !wants_json {
        // The reader may be gone; then there is nobody left to tell.
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { COULD_NOT } else { 0 });
    }
    let rendered = error.render().to_string();
    ExitCode::from(told(&first_part(&rendered), Some(Shape::of_arguments(arguments))))
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
    text.replace('\n', " ")
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
    }

    #[test]
    fn of_wrong_arguments_the_sentence_is_kept_and_the_hints_are_not() {
        let said = "error: invalid value 'x' for '--wait <WAIT>'\n  [possible values: spin, sleep]\n\n\
                    For more information, try '--help'.\n";
        assert_eq!(
            first_part(said),
            "invalid value 'x' for '--wait <WAIT>' [possible values: spin, sleep]"
        );
        let said = "error: unexpected argument '--x' found\n\nUsage: burst stream\n";
        assert_eq!(first_part(said), "unexpected argument '--x' found");
    }
}
