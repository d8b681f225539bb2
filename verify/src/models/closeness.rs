//! How close outputs are to the reference: strict, fair, or neither.

use super::golden::ClassMap;
use super::manifest::{Fair, Tolerance};

/// How far a coordinate of a box may be off and still be equal.
const BOX_TOLERANCE: f64 = 1e-5;
/// Reference detections from this score on have to be found again.
const LEAST_SCORE: f64 = 0.45;
/// How much of both boxes' area they have to share.
const LEAST_OVERLAP: f64 = 0.8;
/// How far a found detection's score may be off.
const SCORE_TOLERANCE: f64 = 0.1;

/// Takes in the outputs of one execution after the other.
pub(crate) struct Judge<'a> {
    tolerance: &'a Tolerance,
    outputs: Vec<Tally>,
    /// The first thing that is not even fair, beyond what the tallies show.
    unfair: Option<String>,
    /// The first thing that is not strict, beyond what the tallies show.
    loose: Option<String>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judgement {
    /// Why the outputs are not strict, if they are not.
    pub(crate) not_strict: Option<String>,
    /// Why they are not fair.
    pub(crate) not_fair: Option<String>,
    /// Largest difference of any value.
    pub(crate) max_diff: f64,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    total: usize,
    equal: usize,
    outside: usize,
    max_diff: f64,
    /// The first value that is not strict.
    first: Option<String>,
}

impl<'a> Judge<'a> {
    /// Of a model with this tolerance.
    pub(crate) fn new(tolerance: &'a Tolerance) -> Self {
        Judge { tolerance, outputs: Vec::new(), unfair: None, loose: None }
    }

    /// Takes in the outputs of one execution, `got` and `want` of equal sizes.
    pub(crate) fn add(&mut self, execution: usize, got: &[Vec<f64>], want: &[Vec<f64>]) {
        self.outputs.resize(got.len().max(self.outputs.len()), Tally::default());
        for (index, (got, want)) in got.iter().zip(want).enumerate() {
            let bound = |want: f64| strict_bound(self.tolerance, index, want);
            self.outputs[index].add((execution, index), got, want, bound);
        }
        let wrong = match self.tolerance {
            Tolerance::Quantized { fair } => {
                got.iter().zip(want).find_map(|(got, want)| best_moved(got, want, fair))
            }
            Tolerance::Detections => lost_detection(got, want),
            Tolerance::Float { .. } | Tolerance::ClassMap { .. } => None,
        };
        if let Some(wrong) = wrong {
            self.unfair.get_or_insert(format!("execution {execution}: {wrong}"));
        }
    }

    /// Compares the best class at each position of an output with the reference's.
    pub(crate) fn add_classes(&mut self, got: &[f64], map: &ClassMap) {
        let depth = got.len() / map.classes.len().max(1);
        let best = got.chunks_exact(depth.max(1)).map(best_index);
        let equal = best.zip(&map.classes).filter(|(best, class)| *best == usize::from(**class));
        let share = share(equal.count(), map.classes.len());
        if share < map.agreement {
            let needed = map.agreement;
            let what =
                format!("the best class is the same at {share:.6} of all positions, not {needed}");
            self.loose.get_or_insert(what);
        }
    }

    /// The judgement over all executions.
    pub(crate) fn finish(self) -> Judgement {
        let outside: usize = self.outputs.iter().map(|tally| tally.outside).sum();
        let first = self.outputs.iter().find_map(|tally| tally.first.as_deref());
        let total: usize = self.outputs.iter().map(|tally| tally.total).sum();
        let not_strict =
            first.map(|first| format!("{outside} of {total} values are off, first {first}"));
        let not_strict = not_strict.or_else(|| self.loose.clone());
        let not_fair = match &not_strict {
            None => None,
            Some(why) => self.unfair.clone().or_else(|| self.not_fair(why)),
        };
        let max_diff = self.outputs.iter().map(|tally| tally.max_diff).fold(0.0, f64::max);
        Judgement { not_strict, not_fair, max_diff }
    }

    fn not_fair(&self, not_strict: &str) -> Option<String> {
        let needed = match self.tolerance {
            Tolerance::Float { .. } => return Some(not_strict.to_owned()),
            Tolerance::Detections => return None,
            Tolerance::Quantized { fair } => *fair,
            Tolerance::ClassMap { fair } => {
                let min_equal_fraction = fair.min_equal_fraction;
                Fair { max_abs: f64::INFINITY, min_equal_fraction }
            }
        };
        self.outputs.iter().enumerate().find_map(|(index, tally)| {
            let equal = share(tally.equal, tally.total);
            if tally.max_diff > needed.max_abs {
                let (found, most) = (tally.max_diff, needed.max_abs);
                return Some(format!(
                    "output {index} is off by up to {found}, at most {most} is fair"
                ));
            }
            (equal < needed.min_equal_fraction).then(|| {
                let least = needed.min_equal_fraction;
                format!("{equal:.6} of output {index}'s values are equal, at least {least} is fair")
            })
        })
    }
}

impl Tally {
    fn add(
        &mut self,
        (execution, output): (usize, usize),
        got: &[f64],
        want: &[f64],
        bound: impl Fn(f64) -> f64,
    ) {
        self.total += want.len();
        for (index, (got, want)) in got.iter().zip(want).enumerate() {
            let difference = (got - want).abs();
            let difference = if difference.is_nan() { f64::INFINITY } else { difference };
            self.max_diff = self.max_diff.max(difference);
            self.equal += usize::from(difference == 0.0);
            if difference > bound(*want) {
                self.outside += 1;
                self.first.get_or_insert_with(|| {
                    format!(
                        "execution {execution}, output {output}, value {index}: {got}, reference {want}"
                    )
                });
            }
        }
    }
}

/// How far a value may be off and still be strict.
fn strict_bound(tolerance: &Tolerance, output: usize, want: f64) -> f64 {
    match tolerance {
        Tolerance::Float { abs, rel } => abs + rel * want.abs(),
        Tolerance::Detections if output == 0 => BOX_TOLERANCE,
        Tolerance::Quantized { .. } | Tolerance::ClassMap { .. } | Tolerance::Detections => 0.0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

fn best_index(values: &[f64]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = index;
        }
    }
    best
}

/// Whether the best class is another one although the reference has it far ahead.
fn best_moved(got: &[f64], want: &[f64], fair: &Fair) -> Option<String> {
    if want.is_empty() {
        return None;
    }
    let best = best_index(want);
    let others = want.iter().enumerate().filter(|(index, _)| *index != best);
    let second = others.map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
    let found = best_index(got);
    (want[best] - second > 2.0 * fair.max_abs && found != best)
        .then(|| format!("the best class is {found}, in the reference {best}"))
}

/// A reference detection with a good score that was not found again.
fn lost_detection(got: &[Vec<f64>], want: &[Vec<f64>]) -> Option<String> {
    let (got, want) = (detections(got)?, detections(want)?);
    want.iter().filter(|want| want.score >= LEAST_SCORE).find_map(|want| {
        let found = got.iter().any(|got| {
            got.class == want.class
                && overlap(&got.corners, &want.corners) >= LEAST_OVERLAP
                && (got.score - want.score).abs() <= SCORE_TOLERANCE
        });
        (!found).then(|| {
            format!("no detection of class {} with score {:.3} is found", want.class, want.score)
        })
    })
}

struct Detection {
    /// Top, left, bottom, right.
    corners: [f64; 4],
    class: f64,
    score: f64,
}

/// The detections in boxes, classes, scores and count.
fn detections(outputs: &[Vec<f64>]) -> Option<Vec<Detection>> {
    let [boxes, classes, scores, _] = outputs else { return None };
    let rows = boxes.as_chunks::<4>().0.iter().zip(classes).zip(scores);
    let detection = |((corners, class), score): ((&[f64; 4], &f64), &f64)| Detection {
        corners: *corners,
        class: *class,
        score: *score,
    };
    Some(rows.map(detection).collect())
}

/// Shared area over the area of both.
fn overlap(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    let area =
        |[top, left, bottom, right]: &[f64; 4]| (bottom - top).max(0.0) * (right - left).max(0.0);
    let both = [a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])];
    let shared = area(&both);
    let all = area(a) + area(b) - shared;
    if all > 0.0 { shared / all } else { 0.0 }
}

#[cfg(test)]
#[path = "closeness_tests.rs"]
mod tests;
