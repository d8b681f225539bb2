//! What one check finds.

use serde::Serialize;

/// How good it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// As it should be.
    Fine,
    /// Everything works, but slower, or with less room.
    Worse,
    /// Something does not work, or is not kept apart as it should be.
    Lacking,
    /// Hardware that need not be there is not.
    Absent,
    /// It could not be found out.
    Unknown,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Fine => "fine",
            Verdict::Worse => "worse",
            Verdict::Lacking => "lacking",
            Verdict::Absent => "absent",
            Verdict::Unknown => "unknown",
        }
    }
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at: `clock_source`. Scripts go by it.
    pub(super) name: &'static str,
    /// How good it is.
    pub(super) verdict: Verdict,
    /// What is there.
    pub(super) found: String,
    /// What follows from it.
    pub(super) effect: String,
    /// What can be done.
    pub(super) advice: Option<String>,
}

/// What a check is called; makes its findings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named(pub(super) &'static str);

impl Named {
    pub(super) fn fine(self, found: impl Into<String>, effect: impl Into<String>) -> Finding {
        self.finding(Verdict::Fine, found, effect, None)
    }

    pub(super) fn worse(
        self,
        found: impl Into<String>,
        effect: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        self.finding(Verdict::Worse, found, effect, Some(advice.into()))
    }

    pub(super) fn lacking(
        self,
        found: impl Into<String>,
        effect: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        self.finding(Verdict::Lacking, found, effect, Some(advice.into()))
    }

    pub(super) fn absent(
        self,
        found: impl Into<String>,
        effect: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        self.finding(Verdict::Absent, found, effect, Some(advice.into()))
    }

    pub(super) fn unknown(self, found: impl Into<String>, effect: impl Into<String>) -> Finding {
        self.finding(Verdict::Unknown, found, effect, None)
    }

    fn finding(
        self,
        verdict: Verdict,
        found: impl Into<String>,
        effect: impl Into<String>,
        advice: Option<String>,
    ) -> Finding {
        Finding { name: self.0, verdict, found: found.into(), effect: effect.into(), advice }
    }
}
