//! What can be judged. LiteRT's fast kernels and its reference kernels are two right ways to compute one model: where
//! these two do not say the same, neither can say that a third one is wrong. And where they do, but a class is ahead
//! of the next one by no more than what such kernels are known to differ by, it is chance that they do. How much that
//! is, a manifest beside the models says.

use std::path::Path;

use anyhow::Result;
use burst_tflite::TensorInfo;
use burst_verify::models::{Tolerance, tolerances};

use super::alike::{best, found_again};
use super::answers::{Answer, Says};

/// The manifest's name.
const MANIFEST: &str = "MANIFEST.json";

/// Whether what LiteRT says of one thing, the best class of a decision or a pixel or a box, can judge others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It can: both kinds of kernels say it, and a class is ahead of the next one by more than twice what is fair.
    Clear,
    /// Both kinds of kernels say it, but the next class is too near.
    TooNear,
    /// LiteRT disagrees with itself: one kind of kernels says it, the other does not.
    Disputed,
    /// So it does, of a class that is ahead of the next one by more than twice what is fair: its own kernels are farther
    /// apart than that.
    DisputedBeyondFair,
}

/// What LiteRT says of one input, as far as it can judge others: of each decision, each pixel, or each box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standings {
    /// Of what the reference kernels say.
    pub(super) reference: Vec<Standing>,
    /// Of what the fast kernels say.
    pub(super) fast: Vec<Standing>,
}

impl Standings {
    /// Whichever kind of kernels is asked.
    fn alike(of: impl Iterator<Item = Standing>) -> Standings {
        let reference: Vec<Standing> = of.collect();
        Standings { fast: reference.clone(), reference }
    }
}

/// How far two answers may be apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fair {
    /// By so much, and by this part of a score.
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

    /// What of two answers to one input can judge a third one.
    pub(super) fn standings(self, reference: &Answer, fast: &Answer) -> Standings {
        match (&reference.says, &fast.says) {
            (Says::Classes { scores, classes }, Says::Classes { scores: other, .. }) => {
                self.of_classes(scores, other, *classes)
            }
            (Says::Boxes(reference), Says::Boxes(fast)) => {
                let of = |one, other| {
                    let found = found_again(one, other).into_iter();
                    found.map(|found| if found { Standing::Clear } else { Standing::Disputed })
                };
                Standings {
                    reference: of(fast, reference).collect(),
                    fast: of(reference, fast).collect(),
                }
            }
            (Says::Mask { mask, .. }, Says::Mask { mask: other, .. }) => {
                match (reference.pixel_scores(), fast.pixel_scores()) {
                    (Some((scores, classes)), Some((other, _))) => {
                        self.of_classes(scores, other, classes)
                    }
                    _ => Standings::alike(mask.iter().zip(other).map(|(class, other)| {
                        if class == other { Standing::Clear } else { Standing::Disputed }
                    })),
                }
            }
            _ => Standings { reference: Vec::new(), fast: Vec::new() },
        }
    }

    /// Of decisions one after the other, each with so many scores.
    fn of_classes(self, scores: &[f32], other: &[f32], classes: usize) -> Standings {
        let steps = scores.chunks(classes).zip(other.chunks(classes));
        Standings::alike(steps.map(|(scores, other)| self.of_class(scores, other)))
    }

    /// Of one decision.
    fn of_class(self, scores: &[f32], other: &[f32]) -> Standing {
        let first = best(scores);
        let is_disputed = best(other) != first;
        let highest = f64::from(scores[first]);
        let rest = scores.iter().enumerate().filter(|(at, _)| *at != first);
        let second = rest.map(|(_, score)| f64::from(*score)).fold(f64::NEG_INFINITY, f64::max);
        let fair = match self {
            Fair::Stated { abs, rel } => abs + rel * highest.abs(),
            Fair::Seen => {
                let apart = scores.iter().zip(other).map(|(a, b)| f64::from((a - b).abs()));
                apart.fold(0.0, f64::max)
            }
        };
        match (is_disputed, highest - second > 2.0 * fair) {
            (false, true) => Standing::Clear,
            (false, false) => Standing::TooNear,
            (true, false) => Standing::Disputed,
            (true, true) => Standing::DisputedBeyondFair,
        }
    }

    /// For people.
    pub(super) fn text(self) -> String {
        match self {
            Fair::Stated { abs, rel: 0.0 } => {
                format!("a score may be off by {abs:.3}, as the models' manifest says")
            }
            Fair::Stated { abs, rel } => {
                format!(
                    "a score may be off by {abs:.2e} and {rel:.0e} of itself, as the models' manifest says"
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
    use burst_tasks::Detection;

    use super::Standing::{Clear, Disputed, DisputedBeyondFair, TooNear};
    use super::*;

    fn answer(scores: &[f32]) -> Answer {
        let says = Says::Classes { scores: scores.to_vec(), classes: 3 };
        Answer { outputs: Vec::new(), values: Vec::new(), says }
    }

    fn of_classes(fair: Fair, reference: &Answer, fast: &Answer) -> Vec<Standing> {
        let Standings { reference, fast } = fair.standings(reference, fast);
        assert_eq!(reference, fast, "one question, whoever is asked");
        reference
    }

    #[test]
    fn the_best_class_is_clear_where_it_is_ahead_by_more_than_twice_what_is_fair() {
        let reference = answer(&[0.5, 0.1, 0.2, 0.5, 0.1, 0.4]);
        let fast = answer(&[0.4, 0.1, 0.2, 0.5, 0.2, 0.4]);
        assert_eq!(of_classes(Fair::Seen, &reference, &fast), [Clear, TooNear]);
        let stated = |abs| Fair::Stated { abs, rel: 0.0 };
        assert_eq!(of_classes(stated(0.01), &reference, &fast), [Clear, Clear]);
        assert_eq!(of_classes(stated(0.1), &reference, &fast), [Clear, TooNear]);
        assert_eq!(of_classes(stated(0.2), &reference, &fast), [TooNear, TooNear]);
        let of_itself = Fair::Stated { abs: 0.0, rel: 0.2 };
        assert_eq!(of_classes(of_itself, &reference, &fast), [Clear, TooNear]);
    }

    #[test]
    fn where_litert_disagrees_with_itself_about_the_best_class_it_judges_nobody() {
        let reference = answer(&[0.9, 0.1, 0.0, 0.9, 0.1, 0.0]);
        let fast = answer(&[0.1, 0.9, 0.0, 0.8, 0.2, 0.0]);
        let stated = |abs| Fair::Stated { abs, rel: 0.0 };
        let found = of_classes(stated(0.01), &reference, &fast);
        assert_eq!(found, [DisputedBeyondFair, Clear], "however far ahead, but by its own name");
        let seen = of_classes(Fair::Seen, &reference, &fast);
        assert_eq!(seen, [Disputed, Clear], "nothing is beyond what they differ by");
        let near = answer(&[0.4, 0.5, 0.0, 0.8, 0.2, 0.0]);
        let found = of_classes(stated(0.2), &near, &reference);
        assert_eq!(found[0], Disputed, "before it is too near");
    }

    #[test]
    fn pixels_are_decisions_and_without_scores_they_are_clear_where_both_say_the_same() {
        let pixels = |mask: &[u16], values: &[f32]| Answer {
            outputs: Vec::new(),
            values: vec![values.to_vec()],
            says: Says::Mask {
                mask: mask.to_vec(),
                scores: (values.len() > mask.len()).then(|| values.len() / mask.len()),
            },
        };
        let reference = pixels(&[0, 1, 0, 1], &[0.9, 0.1, 0.4, 0.5, 0.9, 0.1, 0.4, 0.5]);
        let fast = pixels(&[0, 1, 1, 0], &[0.9, 0.2, 0.4, 0.5, 0.1, 0.9, 0.6, 0.5]);
        let stated = Fair::Stated { abs: 0.1, rel: 0.0 };
        let found = of_classes(stated, &reference, &fast);
        assert_eq!(found, [Clear, TooNear, DisputedBeyondFair, Disputed]);
        let reference = pixels(&[0, 1, 0, 1], &[0.0, 1.0, 0.0, 1.0]);
        let fast = pixels(&[0, 1, 1, 0], &[0.0, 1.0, 1.0, 0.0]);
        let found = of_classes(stated, &reference, &fast);
        assert_eq!(found, [Clear, Clear, Disputed, Disputed]);
    }

    #[test]
    fn a_box_that_only_one_kind_of_kernels_finds_judges_nobody() {
        let answer = |boxes: &[(usize, f32, [f32; 4])]| {
            let detection = |(index, score, edges): &(usize, f32, [f32; 4])| Detection {
                index: *index,
                label: String::new(),
                score: *score,
                edges: *edges,
            };
            let says = Says::Boxes(boxes.iter().map(detection).collect());
            Answer { outputs: Vec::new(), values: Vec::new(), says }
        };
        let (here, far) = ([0.1, 0.1, 0.5, 0.5], [0.3, 0.3, 0.7, 0.7]);
        let reference = answer(&[(1, 0.9, here), (2, 0.8, here), (3, 0.4, far)]);
        let fast = answer(&[(1, 0.4, here), (2, 0.8, far), (3, 0.6, far), (4, 0.1, here)]);
        let found = Fair::Seen.standings(&reference, &fast);
        // Its score alone differs: found by both. Another place, and a third one with too low a score to be asked for.
        assert_eq!(found.reference, [Clear, Disputed]);
        assert_eq!(found.fast, [Disputed, Clear]);
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
