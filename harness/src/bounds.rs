//! Ratios, and bounds to hold them to, from a file such as `benches/transport.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::HarnessError;
use crate::report::{Cell, Column, dash};

/// One ratio, and where a run is held to bounds, these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// A ratio, and where it is taken.
    pub what: String,
    /// What it is in this run; `None` where a row it needs was not measured.
    pub value: Option<f64>,
    /// What it must be at most, or at least; `None` without bounds.
    pub must: Option<Bound>,
    /// What it should be.
    pub reach: Option<Bound>,
    /// Whether `must` holds; `None` without a value, or without bounds.
    pub ok: Option<bool>,
}

/// A limit from above or below; in JSON a string such as `<= 1.25`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

impl Bound {
    /// Whether a value keeps to it.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtMost(limit) => value <= limit,
            Bound::AtLeast(limit) => value >= limit,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::AtMost(limit) => write!(f, "<= {limit}"),
            Bound::AtLeast(limit) => write!(f, ">= {limit}"),
        }
    }
}

impl From<Bound> for String {
    fn from(bound: Bound) -> String {
        bound.to_string()
    }
}

/// Text that is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected <= or >= and a number")]
pub struct NotABound;

impl TryFrom<String> for Bound {
    type Error = NotABound;

    fn try_from(text: String) -> Result<Bound, NotABound> {
        let (sign, number) = text.split_once(' ').ok_or(NotABound)?;
        let number = number.parse().map_err(|_| NotABound)?;
        match sign {
            "<=" => Ok(Bound::AtMost(number)),
            ">=" => Ok(Bound::AtLeast(number)),
            _ => Err(NotABound),
        }
    }
}

impl Check {
    /// A ratio that is held to nothing so far.
    #[must_use]
    pub fn new(what: impl Into<String>, value: Option<f64>) -> Check {
        let value = value.filter(|value| value.is_finite());
        Check { what: what.into(), value, must: None, reach: None, ok: None }
    }

    /// What a table says of it: what it is, its value and bounds, and in a word what became of it.
    #[must_use]
    pub fn cells(&self) -> [Cell; 5] {
        let written = |bound: Option<Bound>| bound.map_or_else(dash, |bound| bound.to_string());
        [
            self.what.clone().into(),
            self.value.map_or_else(dash, |value| format!("{value:.4}")).into(),
            written(self.must).into(),
            written(self.reach).into(),
            Cell::judged(self.verdict(), self.ok),
        ]
    }

    /// The columns for that.
    #[must_use]
    pub fn columns() -> [Column; 5] {
        let [value, must, reach] = ["value", "must", "reach"].map(Column::number);
        [Column::text("what"), value, must, reach, Column::text("")]
    }

    /// In a word; none without bounds.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match (self.ok, self.reach, self.value) {
            (Some(true), Some(reach), Some(value)) if reach.holds(value) => "reached",
            (Some(true), ..) => "ok",
            (Some(false), ..) => "MISSED",
            (None, Some(_), _) => "not measured",
            (None, None, _) => "",
        }
    }
}

/// Bounds for ratios, by what they are called.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds(BTreeMap<String, BoundPair>);

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundPair {
    must: Bound,
    reach: Bound,
}

impl Bounds {
    /// Reads a file of bounds for some of the ratios that there are.
    ///
    /// # Errors
    /// It cannot be read, is no such file, or has a bound for a ratio that there is not.
    pub fn read(path: &Path, ratios: &[String]) -> Result<Bounds, HarnessError> {
        let wrong = |error: &dyn std::fmt::Display| {
            HarnessError::peer(format!("cannot use the bounds in {}: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let bounds: BTreeMap<String, BoundPair> =
            serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let stranger = bounds.keys().find(|name| !ratios.contains(name));
        match stranger {
            Some(name) => Err(wrong(&format!("no ratio is called {name}"))),
            None => Ok(Bounds(bounds)),
        }
    }

    /// Holds ratios to them.
    pub fn hold(&self, checks: &mut [Check]) {
        for check in checks {
            let Some(BoundPair { must, reach }) = self.0.get(&check.what) else { continue };
            (check.must, check.reach) = (Some(*must), Some(*reach));
            check.ok = check.value.map(|value| must.holds(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_for_a_ratio_that_there_is_not_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bounds.json");
        for (text, part) in [
            (r#"{"height": {"must": "<= 1", "reach": "<= 1"}}"#, "no ratio is called height"),
            (r#"{"speed": {"must": "about 1", "reach": "<= 1"}}"#, "<= or >="),
            ("[", "bounds.json"),
        ] {
            std::fs::write(&file, text).unwrap();
            let said = Bounds::read(&file, &["speed".to_owned()]).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn a_bound_reads_in_json_as_it_is_written() {
        for (bound, text) in
            [(Bound::AtMost(1.25), "\"<= 1.25\""), (Bound::AtLeast(4.0), "\">= 4\"")]
        {
            assert_eq!(serde_json::to_string(&bound).unwrap(), text);
            assert_eq!(serde_json::from_str::<Bound>(text).unwrap(), bound);
        }
        assert!(serde_json::from_str::<Bound>("\"about 4\"").is_err());
    }
}
