//! What becomes of a test.

use serde::Serialize;

use super::process::Crash;

/// Which of the four it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Verdict {
    Success,
    /// Something was wrong: an answer, a refusal, or something that did not happen although it had to.
    Failure,
    /// Somebody did not get on.
    Hang,
    /// A process died that nobody killed.
    Crash,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Success => "SUCCESS",
            Verdict::Failure => "FAILURE",
            Verdict::Hang => "HANG",
            Verdict::Crash => "CRASH",
        }
    }
}

/// What became of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Outcome {
    #[serde(rename = "outcome")]
    pub(super) verdict: Verdict,
    /// In a sentence; nothing where all went well.
    pub(super) what: Option<String>,
    /// The process that it was found at.
    pub(super) process: Option<String>,
    /// What ended that process, where a signal did.
    pub(super) signal: Option<String>,
}

impl Outcome {
    pub(super) fn success() -> Outcome {
        Outcome { verdict: Verdict::Success, what: None, process: None, signal: None }
    }

    /// Something that is the whole test's.
    pub(super) fn failure(what: String) -> Outcome {
        Outcome { verdict: Verdict::Failure, what: Some(what), process: None, signal: None }
    }

    pub(super) fn failure_of(process: &str, what: &str) -> Outcome {
        let what = format!("{process}: {what}");
        Outcome { process: Some(process.to_owned()), ..Outcome::failure(what) }
    }

    pub(super) fn hang(process: &str, what: &str) -> Outcome {
        let what = Some(format!("{process} {what}"));
        let process = Some(process.to_owned());
        Outcome { verdict: Verdict::Hang, what, process, signal: None }
    }

    /// `when` follows the words that say how it ended.
    pub(super) fn crash(process: &str, crash: &Crash, when: &str) -> Outcome {
        Outcome {
            verdict: Verdict::Crash,
            what: Some(format!("{process} {crash}{when}")),
            process: Some(process.to_owned()),
            signal: crash.signal.clone(),
        }
    }

    pub(super) fn is_success(&self) -> bool {
        self.verdict == Verdict::Success
    }
}
