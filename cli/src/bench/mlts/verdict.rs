//! Whether our answers are not worse than TFLite's: no farther from its reference kernels than its own fast kernels
//! are.

use serde::Serialize;

use super::accuracy::{Accuracy, BURST, Duel, LITERT, REFERENCE};
use super::tally::{Comparison, real};

/// Differences of floats that are rounding alone: relative to the spread of what they are compared with.
const ROUNDING: f64 = 1e-4;
/// So improbable a result of chance is none.
const CHANCE: f64 = 0.05;

/// The answer, and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Verdict {
    pub(super) not_worse: bool,
    pub(super) because: Vec<String>,
}

impl Verdict {
    /// `None` where nothing was compared with reference kernels.
    pub(super) fn of(accuracy: &Accuracy) -> Option<Verdict> {
        let find =
            |of, with| accuracy.comparisons.iter().find(|one| one.of == of && one.with == with);
        let (ours, theirs) = (find(BURST, REFERENCE)?, find(LITERT, REFERENCE)?);
        if ours.equal == ours.inputs {
            let because = format!(
                "all bytes of all {} inputs are those of TFLite's reference kernels",
                ours.inputs
            );
            return Some(Verdict { not_worse: true, because: vec![because] });
        }
        let mut judged = vec![values(ours, theirs)];
        judged.extend(decisions(ours, theirs, accuracy.duel));
        judged.extend(places(ours, theirs));
        judged.extend(pixels(ours, theirs));
        let not_worse = judged.iter().all(|(holds, _)| *holds);
        // Of a verdict "worse" only what speaks against it.
        let because = judged.into_iter().filter(|(holds, _)| not_worse || !holds);
        Some(Verdict { not_worse, because: because.map(|(_, text)| text).collect() })
    }
}

/// Whether this holds, and what was seen.
type Judged = (bool, String);

fn values(ours: &Comparison, theirs: &Comparison) -> Judged {
    let holds = match ours.relative_error {
        Some(error) => error <= ROUNDING || ours.mean_square_error <= theirs.mean_square_error,
        None => false,
    };
    let text = |one: &Comparison| match one.relative_error {
        Some(error) => format!("{error:.1e}"),
        None => "without measure".to_owned(),
    };
    let (mine, others) = (text(ours), text(theirs));
    (holds, format!("numbers are off the reference kernels by {mine}, TFLite's by {others}"))
}

fn decisions(ours: &Comparison, theirs: &Comparison, duel: Duel) -> Option<Judged> {
    let (mine, others) = (ours.classes?, theirs.classes?);
    let lost = mine.clear - mine.clear_top1;
    let holds = lost <= others.clear - others.clear_top1
        && chance(duel.litert_alone, duel.burst_alone) > CHANCE;
    let text = format!(
        "the best class is that of the reference kernels {} of {} times, TFLite's {} times",
        mine.top1, mine.of, others.top1
    );
    Some((holds, text))
}

fn places(ours: &Comparison, theirs: &Comparison) -> Option<Judged> {
    let (mine, others) = (ours.boxes?, theirs.boxes?);
    let text = format!(
        "{} of {} boxes are found again, by TFLite {}",
        mine.matched, mine.of, others.matched
    );
    Some((mine.matched >= others.matched, text))
}

fn pixels(ours: &Comparison, theirs: &Comparison) -> Option<Judged> {
    let (mine, others) = (ours.mask?, theirs.mask?);
    let text = format!(
        "classes overlap with those of the reference kernels by {:.5}, TFLite's by {:.5}",
        mine.mean_overlap, others.mean_overlap
    );
    Some((mine.mean_overlap >= others.mean_overlap - ROUNDING, text))
}

/// How probable it is that of so many differences at least `against` go against one side by chance (the sign test).
fn chance(against: u64, in_favour: u64) -> f64 {
    let all = against + in_favour;
    if against <= in_favour {
        return 1.0;
    }
    // Sums of logarithms: numbers of ways grow beyond what a float holds.
    let mut ways = 0.0;
    let mut sum = 0.0;
    for count in 0..=in_favour {
        if count > 0 {
            ways += (real(all - count + 1) / real(count)).ln();
        }
        sum += (ways - real(all) * std::f64::consts::LN_2).exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::answers::Task;
    use super::super::tally::{BoxAgreement, ClassAgreement, MaskAgreement};
    use super::*;

    fn comparison(of: &'static str, relative: f64) -> Comparison {
        Comparison {
            of,
            with: REFERENCE,
            inputs: 10,
            equal: 3,
            largest: 1.0,
            mean_square_error: relative * relative,
            relative_error: Some(relative),
            classes: None,
            boxes: None,
            mask: None,
        }
    }

    fn judge(ours: Comparison, theirs: Comparison, duel: Duel) -> Verdict {
        let accuracy = Accuracy {
            task: Task::Numbers,
            inputs: 10,
            referred: 10,
            damaged: Vec::new(),
            comparisons: vec![ours, theirs],
            truth: None,
            duel,
        };
        Verdict::of(&accuracy).unwrap()
    }

    #[test]
    fn numbers_may_be_as_far_off_as_tflites_or_by_rounding() {
        for (ours, theirs, holds) in
            [(0.1, 0.2, true), (0.2, 0.1, false), (1e-5, 1e-7, true), (0.1, 0.1, true)]
        {
            let found = judge(comparison(BURST, ours), comparison(LITERT, theirs), Duel::default());
            assert_eq!(found.not_worse, holds, "{ours} beside {theirs}: {found:?}");
        }
        let broken = Comparison { relative_error: None, ..comparison(BURST, 0.0) };
        assert!(!judge(broken, comparison(LITERT, 0.1), Duel::default()).not_worse);
        let equal = Comparison { equal: 10, ..comparison(BURST, 9.0) };
        assert!(judge(equal, comparison(LITERT, 0.1), Duel::default()).not_worse);
    }

    #[test]
    fn clear_decisions_must_not_be_lost_and_others_only_as_chance_has_it() {
        let with = |of, clear_top1| Comparison {
            classes: Some(ClassAgreement {
                of: 100,
                top1: 90,
                top5: 99,
                clear: 80,
                clear_top1,
                left_out: 20,
            }),
            ..comparison(of, 1e-6)
        };
        let duel = |burst_alone, litert_alone| Duel { burst_alone, litert_alone };
        let holds =
            |mine, others, duel| judge(with(BURST, mine), with(LITERT, others), duel).not_worse;
        assert!(holds(80, 80, duel(3, 5)));
        assert!(!holds(79, 80, duel(5, 5)), "a clear one is lost");
        assert!(!holds(80, 80, duel(0, 10)), "ten against none is no chance");
    }

    #[test]
    fn boxes_and_pixels_are_judged_too() {
        let boxes = |of, matched| Comparison {
            boxes: Some(BoxAgreement { of: 9, matched, mean_overlap: None, least_overlap: None }),
            ..comparison(of, 1e-6)
        };
        assert!(judge(boxes(BURST, 8), boxes(LITERT, 8), Duel::default()).not_worse);
        assert!(!judge(boxes(BURST, 7), boxes(LITERT, 8), Duel::default()).not_worse);
        let mask = |of, mean_overlap| Comparison {
            mask: Some(MaskAgreement { equal_pixels: 1.0, mean_overlap }),
            ..comparison(of, 1e-6)
        };
        assert!(judge(mask(BURST, 0.9), mask(LITERT, 0.8), Duel::default()).not_worse);
        assert!(!judge(mask(BURST, 0.7), mask(LITERT, 0.8), Duel::default()).not_worse);
    }

    #[test]
    fn the_sign_test_has_its_textbook_values() {
        for (against, in_favour, want) in
            [(1, 0, 0.5), (5, 0, 0.031_25), (8, 2, 56.0 / 1024.0), (3, 3, 1.0), (0, 9, 1.0)]
        {
            let found = chance(against, in_favour);
            assert!((found - want).abs() < 1e-12, "{against} to {in_favour}: {found}");
        }
    }
}
