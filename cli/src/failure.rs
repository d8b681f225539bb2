//! How a command ends: exit status and what is said.

use std::io::Write;
use std::process::ExitCode;

/// The answer is "no": the work was done, and something in it did not hold.
pub(crate) const NO: u8 = 1;
/// There is no answer: the work could not be done.
pub(crate) const COULD_NOT: u8 = 2;

/// Says why a command could not do its work: one sentence, or one JSON object with `error`.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    let text = error_text(error);
    if json {
        let object = serde_json::json!({ "error": text });
        // The reader of standard error may be gone; then there is nobody left to report to.
        let _ = writeln!(std::io::stdout(), "{object}");
    } else {
        let _ = writeln!(std::io::stderr(), "burst: {text}");
    }
    ExitCode::from(COULD_NOT)
}

/// The causes from the outermost in, each once, in one line.
fn error_text(error: &anyhow::Error) -> String {
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
}
