//! How the answers of two who computed the same inputs compare.

use std::collections::BTreeMap;

use burst_tasks::Detection;
use serde::Serialize;

use super::alike::{best, pairs};
use super::answers::{Answer, Says};
use super::fair::Standing;

/// Classes among which the best one of the other side is looked for.
const TOP: usize = 5;

/// What was counted; `Comparison` is what it comes to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    inputs: u64,
    equal: u64,
    largest: f64,
    squares: f64,
    deviation: Deviation,
    classes: Option<Classes>,
    boxes: Option<Boxes>,
    mask: Option<Mask>,
}

/// Of the numbers of the side that is compared with.
#[derive(Debug, Default)]
struct Deviation {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Deviation {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn variance(&self) -> f64 {
        let mean = self.sum / self.count;
        (self.squares / self.count - mean * mean).max(0.0)
    }
}

#[derive(Debug, Default)]
struct Classes {
    of: u64,
    top1: u64,
    top5: u64,
    judged: Judged,
}

/// What LiteRT says, by whether it can judge others.
#[derive(Debug, Default, Clone, Copy)]
struct Judged {
    clear: u64,
    /// Of the clear ones the other side says the same.
    clear_same: u64,
    too_near: u64,
    disputed: u64,
    /// So many of the disputed ones are so although the reference is sure.
    beyond_fair: u64,
}

impl Judged {
    /// `None` is what only one kind of kernels was asked.
    fn add(&mut self, standing: Option<Standing>, is_same: bool) {
        match standing {
            Some(Standing::Clear) => {
                self.clear += 1;
                self.clear_same += u64::from(is_same);
            }
            Some(Standing::TooNear) => self.too_near += 1,
            Some(Standing::Disputed) => self.disputed += 1,
            Some(Standing::DisputedBeyondFair) => {
                self.disputed += 1;
                self.beyond_fair += 1;
            }
            None => {}
        }
    }
}

#[derive(Debug, Default)]
struct Boxes {
    of: u64,
    matched: u64,
    judged: Judged,
    overlap: f64,
    least: Option<f64>,
}

#[derive(Debug, Default)]
struct Mask {
    pixels: u64,
    equal: u64,
    judged: Judged,
    /// Whether there are scores, of which one can be too near another.
    has_scores: bool,
    /// Of each class: pixels where both see it, and where one does.
    classes: BTreeMap<u16, [u64; 2]>,
}

/// How one side's answers compare with those of another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Comparison {
    /// Who answered: `burst` or `litert`.
    pub(super) of: &'static str,
    /// With whom they are compared: `litert` or `litert-reference`.
    pub(super) with: &'static str,
    /// Inputs that were compared.
    pub(super) inputs: u64,
    /// Inputs of which every byte of every output is the same.
    pub(super) equal: u64,
    /// The largest difference of two numbers.
    pub(super) largest: f64,
    /// Mean of the squares of all differences.
    pub(super) mean_square_error: f64,
    /// Its root over the standard deviation of the numbers that are compared with.
    pub(super) relative_error: Option<f64>,
    pub(super) classes: Option<ClassAgreement>,
    pub(super) boxes: Option<BoxAgreement>,
    pub(super) mask: Option<MaskAgreement>,
}

/// Of a classifier; each step of a sequence is a decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct ClassAgreement {
    /// Decisions.
    pub(super) of: u64,
    /// The best class is the same.
    pub(super) top1: u64,
    /// The other side's best class is among the five best.
    pub(super) top5: u64,
    /// Decisions that can be judged: LiteRT's two kinds of kernels agree, and the reference's best class is ahead by more
    /// than twice what is fair.
    pub(super) clear: u64,
    /// Of these the best class is the same.
    pub(super) clear_top1: u64,
    /// The others, whatever the reason.
    pub(super) left_out: u64,
    /// Of these: the two agree, but the next class is too near.
    pub(super) too_near: u64,
    /// Of these: LiteRT's two kinds of kernels disagree about the best class.
    pub(super) litert_disagrees: u64,
    /// Of these: the reference's best class is ahead by more than twice what is fair, by which its own fast kernels are
    /// thus farther off than is fair.
    pub(super) beyond_fair: u64,
}

/// Of a detector.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct BoxAgreement {
    /// Boxes of the other side with a score of at least 0.5.
    pub(super) of: u64,
    /// Found again: the same class, an overlap (IoU) of at least 0.95.
    pub(super) matched: u64,
    /// Overlap with the best box of the same class, none being 0.
    pub(super) mean_overlap: Option<f64>,
    /// The least of these.
    pub(super) least_overlap: Option<f64>,
    /// Boxes that can be judged: LiteRT's other kind of kernels finds them too.
    pub(super) clear: u64,
    /// Of these found again.
    pub(super) clear_matched: u64,
    /// The others, whatever the reason.
    pub(super) left_out: u64,
    /// Of these: LiteRT's other kind of kernels does not find them.
    pub(super) litert_disagrees: u64,
}

/// Of a segmenter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct MaskAgreement {
    /// Share of pixels with the same class.
    pub(super) equal_pixels: f64,
    /// Overlap (IoU) of each class's pixels over all inputs, the mean of all classes.
    pub(super) mean_overlap: f64,
    /// Pixels.
    pub(super) of: u64,
    /// Pixels that can be judged, as the decisions of a classifier; where the output has no scores those of which LiteRT's
    /// two kinds of kernels have the same class.
    pub(super) clear: u64,
    /// Of these the class is the same.
    pub(super) clear_equal: u64,
    /// The others, whatever the reason.
    pub(super) left_out: u64,
    /// Of these: the two agree, but the next class is too near; `None` without scores.
    pub(super) too_near: Option<u64>,
    /// Of these: LiteRT's two kinds of kernels disagree about the class.
    pub(super) litert_disagrees: u64,
    /// Of these: the reference's class is ahead by more than twice what is fair; `None` without scores.
    pub(super) beyond_fair: Option<u64>,
}

impl Tally {
    /// Counts one more input. `standings` are those of the other side's decisions or boxes, none where only one kind
    /// of LiteRT's kernels was asked.
    pub(super) fn add(&mut self, own: &Answer, other: &Answer, standings: &[Standing]) {
        self.inputs += 1;
        self.equal += u64::from(own.outputs == other.outputs);
        for (own, other) in own.values.iter().flatten().zip(other.values.iter().flatten()) {
            let (own, other) = (f64::from(*own), f64::from(*other));
            let apart = (own - other).abs();
            // Not a number on one side alone is as far apart as can be.
            let apart = if apart.is_nan() && own.is_nan() != other.is_nan() {
                f64::INFINITY
            } else {
                apart
            };
            if !apart.is_nan() {
                self.largest = self.largest.max(apart);
                self.squares += apart * apart;
                self.deviation.add(other);
            }
        }
        match (&own.says, &other.says) {
            (Says::Classes { scores: own, classes }, Says::Classes { scores: other, .. }) => {
                let sum = self.classes.get_or_insert_default();
                let steps = own.chunks(*classes).zip(other.chunks(*classes));
                for (step, (own, other)) in steps.enumerate() {
                    sum.add(own, other, standings.get(step).copied());
                }
            }
            (Says::Boxes(own), Says::Boxes(other)) => {
                self.boxes.get_or_insert_default().add(own, other, standings);
            }
            (Says::Mask { mask: own, scores }, Says::Mask { mask: other, .. }) => {
                let sum = self.mask.get_or_insert_default();
                sum.has_scores = scores.is_some();
                sum.add(own, other, standings);
            }
            _ => {}
        }
    }

    /// What it comes to; `None` where nothing was compared.
    pub(super) fn comparison(&self, of: &'static str, with: &'static str) -> Option<Comparison> {
        if self.inputs == 0 {
            return None;
        }
        let mean_square_error = self.squares / self.deviation.count.max(1.0);
        let relative = (mean_square_error / self.deviation.variance()).sqrt();
        let relative_error = if mean_square_error == 0.0 { 0.0 } else { relative };
        Some(Comparison {
            of,
            with,
            inputs: self.inputs,
            equal: self.equal,
            largest: self.largest,
            mean_square_error,
            relative_error: Some(relative_error).filter(|error| error.is_finite()),
            classes: self.classes.as_ref().map(Classes::agreement),
            boxes: self.boxes.as_ref().map(Boxes::agreement),
            mask: self.mask.as_ref().map(Mask::agreement),
        })
    }
}

impl Comparison {
    /// Whether one class can be too near another.
    pub(super) fn has_scores(&self) -> bool {
        self.classes.is_some() || self.mask.is_some_and(|mask| mask.too_near.is_some())
    }
}

impl Classes {
    fn add(&mut self, own: &[f32], other: &[f32], standing: Option<Standing>) {
        let (mine, theirs) = (best(own), best(other));
        let before = |class: usize| {
            own.iter().enumerate().filter(move |(at, score)| {
                **score > own[class] || (**score == own[class] && *at < class)
            })
        };
        let is_same = mine == theirs;
        self.of += 1;
        self.top1 += u64::from(is_same);
        self.top5 += u64::from(before(theirs).count() < TOP);
        self.judged.add(standing, is_same);
    }

    fn agreement(&self) -> ClassAgreement {
        let Classes { of, top1, top5, judged } = *self;
        let Judged { clear, clear_same: clear_top1, too_near, disputed, beyond_fair } = judged;
        let (left_out, litert_disagrees) = (of - clear, disputed);
        ClassAgreement {
            of,
            top1,
            top5,
            clear,
            clear_top1,
            left_out,
            too_near,
            litert_disagrees,
            beyond_fair,
        }
    }
}

impl Boxes {
    fn add(&mut self, own: &[Detection], other: &[Detection], standings: &[Standing]) {
        for (at, (much, is_found)) in pairs(own, other).into_iter().enumerate() {
            self.of += 1;
            self.matched += u64::from(is_found);
            self.overlap += much;
            self.least = Some(self.least.map_or(much, |least| least.min(much)));
            self.judged.add(standings.get(at).copied(), is_found);
        }
    }

    fn agreement(&self) -> BoxAgreement {
        let mean = self.overlap / real(self.of);
        let (of, matched, least_overlap) = (self.of, self.matched, self.least);
        let Judged { clear, clear_same: clear_matched, disputed: litert_disagrees, .. } =
            self.judged;
        let mean_overlap = (of > 0).then_some(mean);
        let left_out = of - clear;
        BoxAgreement {
            of,
            matched,
            mean_overlap,
            least_overlap,
            clear,
            clear_matched,
            left_out,
            litert_disagrees,
        }
    }
}

impl Mask {
    fn add(&mut self, own: &[u16], other: &[u16], standings: &[Standing]) {
        for (at, (own, other)) in own.iter().zip(other).enumerate() {
            self.pixels += 1;
            self.judged.add(standings.get(at).copied(), own == other);
            if own == other {
                self.equal += 1;
                let class = self.classes.entry(*own).or_default();
                *class = [class[0] + 1, class[1] + 1];
            } else {
                self.classes.entry(*own).or_default()[1] += 1;
                self.classes.entry(*other).or_default()[1] += 1;
            }
        }
    }

    fn agreement(&self) -> MaskAgreement {
        let overlaps = self.classes.values().map(|[both, any]| real(*both) / real(*any));
        let of = self.pixels;
        let Judged { clear, clear_same: clear_equal, too_near, disputed, beyond_fair } =
            self.judged;
        let with_scores = |count: u64| self.has_scores.then_some(count);
        MaskAgreement {
            equal_pixels: real(self.equal) / real(of.max(1)),
            mean_overlap: overlaps.sum::<f64>() / real(self.classes.len().max(1) as u64),
            of,
            clear,
            clear_equal,
            left_out: of - clear,
            too_near: with_scores(too_near),
            litert_disagrees: disputed,
            beyond_fair: with_scores(beyond_fair),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(super) fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(scores: &[f32]) -> Answer {
        let outputs = vec![scores.iter().flat_map(|score| score.to_ne_bytes()).collect()];
        let says = Says::Classes { scores: scores.to_vec(), classes: 6 };
        Answer { outputs, values: vec![scores.to_vec()], says }
    }

    fn found(boxes: &[(usize, f32, [f32; 4])]) -> Answer {
        let detection = |(index, score, edges): &(usize, f32, [f32; 4])| Detection {
            index: *index,
            label: String::new(),
            score: *score,
            edges: *edges,
        };
        let says = Says::Boxes(boxes.iter().map(detection).collect());
        Answer { outputs: Vec::new(), values: Vec::new(), says }
    }

    fn mask(classes: &[u16]) -> Answer {
        let says = Says::Mask { mask: classes.to_vec(), scores: None };
        Answer { outputs: Vec::new(), values: Vec::new(), says }
    }

    fn compared(pairs: &[(Answer, Answer)], standings: &[Standing]) -> Comparison {
        let mut tally = Tally::default();
        for (own, other) in pairs {
            tally.add(own, other, standings);
        }
        tally.comparison("burst", "litert").unwrap()
    }

    #[test]
    fn classes_agree_by_the_best_and_by_the_five_best() {
        let own = classes(&[0.9, 0.8, 0.7, 0.6, 0.5, 0.4]);
        let second = classes(&[0.1, 0.8, 0.0, 0.0, 0.0, 0.0]);
        let last = classes(&[0.1, 0.0, 0.0, 0.0, 0.0, 0.2]);
        let all = [(own.clone(), own.clone()), (own.clone(), second), (own.clone(), last)];
        let found = compared(&all, &[Standing::Clear]);
        let agreement = found.classes.unwrap();
        let counted = (agreement.of, agreement.top1, agreement.top5, agreement.clear_top1);
        assert_eq!((counted, agreement.left_out, found.equal), ((3, 1, 2, 1), 0, 1));
        for (standings, too_near, litert_disagrees, beyond_fair) in [
            (&[Standing::TooNear][..], 3, 0, 0),
            (&[Standing::Disputed], 0, 3, 0),
            (&[Standing::DisputedBeyondFair], 0, 3, 3),
            (&[], 0, 0, 0),
        ] {
            let found = compared(&all, standings).classes.unwrap();
            assert_eq!((found.clear, found.left_out), (0, 3), "{standings:?}");
            let why = (found.too_near, found.litert_disagrees, found.beyond_fair);
            assert_eq!(why, (too_near, litert_disagrees, beyond_fair), "{standings:?}");
        }
    }

    #[test]
    fn numbers_are_compared_by_their_largest_difference_and_their_mean_square() {
        let one = classes(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
        let other = classes(&[0.0, 1.0, 0.0, 1.0, 0.5, 1.0]);
        let found = compared(&[(other, one.clone())], &[]);
        assert!((found.largest - 0.5).abs() < 1e-12, "{found:?}");
        assert!((found.mean_square_error - 0.25 / 6.0).abs() < 1e-12, "{found:?}");
        let relative = found.relative_error.unwrap();
        assert!((relative - (0.25_f64 / 6.0 / 0.25).sqrt()).abs() < 1e-9, "{found:?}");
        let broken = classes(&[0.0, 1.0, f32::NAN, 1.0, 0.0, 1.0]);
        let found = compared(&[(broken, one)], &[]);
        assert!(found.largest.is_infinite() && found.relative_error.is_none(), "{found:?}");
    }

    #[test]
    fn boxes_are_found_again_where_class_and_place_are_the_same_each_once() {
        let here = [0.1, 0.1, 0.5, 0.5];
        let near = [0.1, 0.1, 0.5, 0.505];
        let far = [0.3, 0.3, 0.7, 0.7];
        let reference = found(&[(1, 0.9, here), (2, 0.8, here), (1, 0.4, far)]);
        let both = compared(&[(found(&[(1, 0.7, near), (2, 0.3, here)]), reference.clone())], &[]);
        let boxes = both.boxes.unwrap();
        assert_eq!((boxes.of, boxes.matched), (2, 2), "one has too low a score to be looked for");
        let other = compared(&[(found(&[(1, 0.7, far), (3, 0.9, here)]), reference.clone())], &[]);
        let boxes = other.boxes.unwrap();
        assert_eq!((boxes.of, boxes.matched, boxes.least_overlap), (2, 0, Some(0.0)));
        let twice = found(&[(1, 0.9, here), (1, 0.8, here)]);
        let boxes = compared(&[(found(&[(1, 0.9, here)]), twice)], &[]).boxes.unwrap();
        assert_eq!((boxes.of, boxes.matched), (2, 1));
    }

    #[test]
    fn boxes_that_litert_disagrees_about_are_left_out_by_that_name() {
        let (here, far) = ([0.1, 0.1, 0.5, 0.5], [0.3, 0.3, 0.7, 0.7]);
        let other = found(&[(1, 0.9, here), (2, 0.9, here), (3, 0.9, here)]);
        let own = found(&[(1, 0.9, here), (2, 0.9, far), (3, 0.9, far)]);
        let standings = [Standing::Clear, Standing::Clear, Standing::Disputed];
        let boxes = compared(&[(own, other)], &standings).boxes.unwrap();
        assert_eq!((boxes.of, boxes.matched), (3, 1), "all of them, as before");
        assert_eq!((boxes.clear, boxes.clear_matched), (2, 1), "the second one is lost");
        assert_eq!((boxes.left_out, boxes.litert_disagrees), (1, 1));
    }

    #[test]
    fn masks_overlap_class_by_class() {
        let found = compared(&[(mask(&[0, 0, 1, 1]), mask(&[0, 0, 0, 1]))], &[]);
        let mask = found.mask.unwrap();
        assert!((mask.equal_pixels - 0.75).abs() < 1e-12, "{mask:?}");
        assert!((mask.mean_overlap - f64::midpoint(2.0 / 3.0, 0.5)).abs() < 1e-12, "{mask:?}");
        assert_eq!((mask.of, mask.clear, mask.left_out), (4, 0, 4), "nobody was asked");
    }

    #[test]
    fn pixels_are_judged_as_decisions_are() {
        let scored = |classes: &[u16]| {
            let says = Says::Mask { mask: classes.to_vec(), scores: Some(2) };
            Answer { outputs: Vec::new(), values: Vec::new(), says }
        };
        let standings = [
            Standing::Clear,
            Standing::Clear,
            Standing::TooNear,
            Standing::Disputed,
            Standing::DisputedBeyondFair,
        ];
        let both = |answer: &dyn Fn(&[u16]) -> Answer| {
            let pair = (answer(&[0, 1, 1, 0, 1]), answer(&[0, 0, 0, 0, 0]));
            compared(&[pair], &standings).mask.unwrap()
        };
        let found = both(&scored);
        assert_eq!((found.of, found.clear, found.clear_equal, found.left_out), (5, 2, 1, 3));
        let why = (found.too_near, found.litert_disagrees, found.beyond_fair);
        assert_eq!(why, (Some(1), 2, Some(1)));
        let bare = both(&mask);
        assert_eq!((bare.too_near, bare.beyond_fair), (None, None), "without scores");
    }
}
