//! What is fair: how far LiteRT's own fast kernels are from its reference kernels, as a manifest beside the models
//! says it.

use std::path::Path;

use anyhow::Result;
use burst_tflite::TensorInfo;
use burst_verify::models::{Tolerance, tolerances};

use super::answers::{Answer, Says};
use super::tally::best;

/// The manifest's name.
const MANIFEST: &str = "MANIFEST.json";

/// What may be more than a manifest says, which was measured on fewer inputs.
const OR_SEEN: &str = "or by what LiteRT's own kernels differ by on that input, where that is more";

/// How far two answers may be apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fair {
    /// By so much, and by this part of a score; where LiteRT's two kinds of kernels differ by more on the very
    /// input, by that.
    Stated { abs: f64, rel: f64 },
    /// By as much as LiteRT's two kinds of kernels differ on the very input.
    Seen,
}

impl Fair {
    /// What the manifest beside this model says of its first output.
    ///
    /// # Errors
    /// There is a manifest that cannot be read.
    pub(super) fn of(model: &Path, output: Option<&TensorInfo>) -> Result<Fair> {
        let path = model.with_file_name(MANIFEST);
        if !path.exists() {
            return Ok(Fair::Seen);
        }
        let stated = tolerances(&path)?;
        let name = model.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        Ok(stated.get(name).map_or(Fair::Seen, |tolerance| Fair::from(*tolerance, output)))
    }

    fn from(tolerance: Tolerance, output: Option<&TensorInfo>) -> Fair {
        match tolerance {
            Tolerance::Float { abs, rel } => Fair::Stated { abs, rel },
            Tolerance::Quantized { fair } => {
                // In steps of the output, where it has steps.
                let step = output.map_or(0.0, |output| f64::from(output.scale));
                let step = if step > 0.0 { step } else { 1.0 };
                Fair::Stated { abs: fair.max_abs * step, rel: 0.0 }
            }
            Tolerance::ClassMap { .. } | Tolerance::Detections => Fair::Seen,
        }
    }

    /// Of each decision, whether the reference's best class is ahead of the next by more than twice what is fair.
    pub(super) fn clear(self, reference: &Answer, fast: &Answer) -> Vec<bool> {
        let (Says::Classes { scores, classes }, Says::Classes { scores: other, .. }) =
            (&reference.says, &fast.says)
        else {
            return Vec::new();
        };
        let steps = scores.chunks(*classes).zip(other.chunks(*classes));
        let is_clear = |(scores, other): (&[f32], &[f32])| {
            let first = best(scores);
            let highest = f64::from(scores[first]);
            let rest = scores.iter().enumerate().filter(|(at, _)| *at != first);
            let second = rest.map(|(_, score)| f64::from(*score)).fold(f64::NEG_INFINITY, f64::max);
            let apart = scores.iter().zip(other).map(|(a, b)| f64::from((a - b).abs()));
            let seen = apart.fold(0.0, f64::max);
            let fair = match self {
                Fair::Stated { abs, rel } => seen.max(abs + rel * highest.abs()),
                Fair::Seen => seen,
            };
            highest - second > 2.0 * fair
        };
        steps.map(is_clear).collect()
    }

    /// For people.
    pub(super) fn text(self) -> String {
        match self {
            Fair::Stated { abs, rel: 0.0 } => {
                format!("a score may be off by {abs:.3}, as the models' manifest says, {OR_SEEN}")
            }
            Fair::Stated { abs, rel } => {
                format!(
                    "a score may be off by {abs:.2e} and {rel:.0e} of itself, as the models' manifest says, {OR_SEEN}"
                )
            }
            Fair::Seen => {
                "a score may be off by what LiteRT's own kernels differ by on that input".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(scores: &[f32]) -> Answer {
        let says = Says::Classes { scores: scores.to_vec(), classes: 3 };
        Answer { outputs: Vec::new(), values: Vec::new(), says }
    }

    #[test]
    fn the_best_class_is_clear_where_it_is_ahead_by_more_than_twice_what_is_fair() {
        let reference = answer(&[0.5, 0.1, 0.2, 0.5, 0.1, 0.4]);
        let fast = answer(&[0.4, 0.1, 0.2, 0.5, 0.2, 0.4]);
        assert_eq!(Fair::Seen.clear(&reference, &fast), [true, false]);
        let stated = |abs| Fair::Stated { abs, rel: 0.0 };
        assert_eq!(stated(0.01).clear(&reference, &fast), [true, false], "seen is more");
        assert_eq!(stated(0.01).clear(&reference, &reference), [true, true], "stated is more");
        assert_eq!(stated(0.2).clear(&reference, &fast), [false, false]);
        assert_eq!(Fair::Stated { abs: 0.0, rel: 0.2 }.clear(&reference, &fast), [true, false]);
    }

    #[test]
    fn a_manifest_says_it_of_a_model_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m.tflite");
        assert_eq!(Fair::of(&model, None).unwrap(), Fair::Seen);
        let file = folder.path().join(MANIFEST);
        let text = r#"{"models": [{"name": "m", "yardstick": {"tolerance": {"kind": "float", "abs": 0.5, "rel": 0.25}}}]}"#;
        std::fs::write(&file, text).unwrap();
        assert_eq!(Fair::of(&model, None).unwrap(), Fair::Stated { abs: 0.5, rel: 0.25 });
        assert_eq!(Fair::of(&folder.path().join("n.tflite"), None).unwrap(), Fair::Seen);
        std::fs::write(&file, "{").unwrap();
        let said = format!("{:#}", Fair::of(&model, None).unwrap_err());
        assert!(said.contains(MANIFEST), "{said}");
    }
}
