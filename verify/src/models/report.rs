//! What came of running goldens.

use serde::Serialize;

/// How close a model's outputs are to the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// As the reference, value for value; floats within their tolerance.
    Strict,
    /// As close as other fast kernels are, where more is not in reach.
    Fair,
    /// Neither, or not to be run at all.
    Failed,
}

impl Class {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Strict => "strict",
            Class::Fair => "fair",
            Class::Failed => "failed",
        }
    }
}

/// What came of one golden.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoldenResult {
    /// Name of the model.
    pub model: String,
    /// Name of the golden.
    pub input: String,
    /// How close the outputs were, over every route.
    pub class: Class,
    /// Largest difference of any value from the reference; `None` where nothing could be run.
    pub max_diff: Option<f64>,
    /// Why the class is not strict.
    #[serde(skip)]
    pub why: Option<String>,
}

/// What came of all of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GoldenReport {
    /// How many there were.
    pub goldens: usize,
    /// How many of them were strict.
    pub strict: usize,
    /// How many were fair.
    pub fair: usize,
    /// How many were neither.
    pub failed: usize,
    /// Each, in the manifest's order.
    pub results: Vec<GoldenResult>,
}

impl GoldenReport {
    pub(crate) fn of(results: Vec<GoldenResult>) -> Self {
        let count = |class| results.iter().filter(|result| result.class == class).count();
        GoldenReport {
            goldens: results.len(),
            strict: count(Class::Strict),
            fair: count(Class::Fair),
            failed: count(Class::Failed),
            results,
        }
    }

    /// Whether nothing failed.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.failed == 0
    }
}
