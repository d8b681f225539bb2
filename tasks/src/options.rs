//! What a caller of a task asks for.

use std::time::Duration;

use crate::error::TaskError;
use crate::picture_input::{Fit, Normalisation};

/// Least score of what a detector found where nobody says another one.
pub const DEFAULT_MIN_SCORE: f32 = 0.45;
/// How long one execution may take where nobody says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// What a caller of a task asks for. The names are those of TensorFlow Lite's task library.
///
/// Everything has a default: what the model's own file says, else what is usual for its task.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct TaskOptions {
    /// Most classes or things in an answer; by default all.
    pub max_results: Option<usize>,
    /// Least score of a class or a thing; by default what the model's file says, else [`DEFAULT_MIN_SCORE`] of a
    /// detector, and none of anything else.
    pub score_threshold: Option<f32>,
    /// Labels of the only classes that are answered; none: all.
    pub allowed: Vec<String>,
    /// Labels of classes that are never answered.
    pub denied: Vec<String>,
    /// Labels of the classes, from class 0 on, in place of those in the model's file.
    pub labels: Option<Vec<String>>,
    /// How a picture of another aspect is fitted; by default stretched where the answer says where something is,
    /// else cropped.
    pub fit: Option<Fit>,
    /// What bytes become in a float input; by default what the model's file says, else −1 to 1, of
    /// super-resolution 0 to 255.
    pub normalisation: Option<Normalisation>,
    /// How long one execution may take; by default [`DEFAULT_TIMEOUT`].
    pub timeout: Option<Duration>,
}

impl TaskOptions {
    /// At most so many classes or things in an answer.
    #[must_use]
    pub fn with_max_results(self, count: usize) -> Self {
        TaskOptions { max_results: Some(count), ..self }
    }

    /// Nothing with a lower score.
    #[must_use]
    pub fn with_score_threshold(self, score: f32) -> Self {
        TaskOptions { score_threshold: Some(score), ..self }
    }

    /// Only classes with these labels. Not together with [`TaskOptions::with_denied`].
    #[must_use]
    pub fn with_allowed<T: Into<String>>(self, labels: impl IntoIterator<Item = T>) -> Self {
        TaskOptions { allowed: labels.into_iter().map(Into::into).collect(), ..self }
    }

    /// No classes with these labels. Not together with [`TaskOptions::with_allowed`].
    #[must_use]
    pub fn with_denied<T: Into<String>>(self, labels: impl IntoIterator<Item = T>) -> Self {
        TaskOptions { denied: labels.into_iter().map(Into::into).collect(), ..self }
    }

    /// These labels, from class 0 on.
    #[must_use]
    pub fn with_labels<T: Into<String>>(self, labels: impl IntoIterator<Item = T>) -> Self {
        TaskOptions { labels: Some(labels.into_iter().map(Into::into).collect()), ..self }
    }

    /// Pictures of another aspect are fitted like this.
    #[must_use]
    pub fn with_fit(self, fit: Fit) -> Self {
        TaskOptions { fit: Some(fit), ..self }
    }

    /// Bytes become these numbers in a float input.
    #[must_use]
    pub fn with_normalisation(self, normalisation: Normalisation) -> Self {
        TaskOptions { normalisation: Some(normalisation), ..self }
    }

    /// An execution may take so long.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        TaskOptions { timeout: Some(timeout), ..self }
    }

    /// How long one execution may take.
    pub(crate) fn time(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }
}

/// Which classes are answered, and how many.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Choice {
    max_results: Option<usize>,
    least: Option<f32>,
    allowed: Vec<String>,
    denied: Vec<String>,
}

impl Choice {
    /// That of these options, `least` being the score where they say none. `labels` are those of the model's classes.
    pub(crate) fn new(
        options: &TaskOptions,
        least: Option<f32>,
        (model, labels): (&str, &[String]),
    ) -> Result<Self, TaskError> {
        let TaskOptions { max_results, score_threshold, allowed, denied, .. } = options.clone();
        if !allowed.is_empty() && !denied.is_empty() {
            return Err(TaskError::BothLists);
        }
        if let Some(score) = score_threshold.filter(|score| score.is_nan()) {
            return Err(TaskError::Threshold { score });
        }
        // A list with a typing error would quietly answer nothing, or too much.
        let unknown = allowed.iter().chain(&denied).find(|label| !labels.contains(label));
        if let Some(label) = unknown {
            return Err(TaskError::NoSuchLabel { model: model.into(), label: label.clone() });
        }
        Ok(Choice { max_results, least: score_threshold.or(least), allowed, denied })
    }

    /// Whether a class with this label and score is answered.
    pub(crate) fn takes(&self, label: &str, score: f32) -> bool {
        let is_listed = |list: &[String]| list.iter().any(|listed| listed == label);
        self.least.is_none_or(|least| score >= least)
            && (self.allowed.is_empty() || is_listed(&self.allowed))
            && !is_listed(&self.denied)
    }

    /// At most so many.
    pub(crate) fn most(&self) -> usize {
        self.max_results.unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_thresholds_choose() {
        let labels = ["cat", "dog", "owl"].map(String::from);
        let choice = |options: &TaskOptions| Choice::new(options, None, ("m", &labels));
        let options = TaskOptions::default();
        let all = choice(&options).unwrap();
        assert!(all.takes("cat", -5.0) && all.takes("", 0.0) && all.most() == usize::MAX);
        let some = options.clone().with_allowed(["cat", "owl"]).with_score_threshold(0.5);
        let some = choice(&some.with_max_results(2)).unwrap();
        assert!(some.takes("cat", 0.5) && !some.takes("cat", 0.4) && !some.takes("dog", 0.9));
        assert_eq!(some.most(), 2);
        let denied = choice(&options.clone().with_denied(["dog"])).unwrap();
        assert!(denied.takes("cat", 0.0) && !denied.takes("dog", 1.0));
        let both = options.clone().with_denied(["dog"]).with_allowed(["cat"]);
        assert!(matches!(choice(&both), Err(TaskError::BothLists)));
        let unknown = choice(&options.clone().with_allowed(["cow"])).unwrap_err().to_string();
        assert_eq!(unknown, "no class of m has the label \"cow\"");
        assert!(choice(&options.with_score_threshold(f32::NAN)).is_err());
    }
}
