//! Whether our answers are not worse than TFLite's: no farther from its reference kernels than its own fast kernels
//! are, and the same wherever these two say the same and are sure (`fair.rs`).

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
        let beside = find(BURST, LITERT)?;
        let mut judged = vec![values(ours, theirs)];
        judged.extend(decisions([ours, beside], theirs, accuracy.duel));
        judged.extend(places([ours, beside]));
        judged.extend(pixels([ours, beside], theirs));
        let not_worse = judged.iter().all(|(holds, _)| *holds);
        // Of a verdict "worse" only what speaks against it.
        let because = judged.into_iter().filter(|(holds, _)| not_worse || !holds);
        Some(Verdict { not_worse, because: because.map(|(_, text)| text).collect() })
    }
}

/// Whether this holds, and what was seen.
type Judged = (bool, String);

fn values(ours: &Comparison, theirs: &Comparison) -> Judged {
    if ours.equal == ours.inputs {
        let inputs = ours.inputs;
        let text =
            format!("all bytes of all {inputs} inputs are those of TFLite's reference kernels");
        return (true, text);
    }
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

/// Ours, beside the reference kernels and beside the fast ones.
fn decisions(ours: [&Comparison; 2], theirs: &Comparison, duel: Duel) -> Option<Judged> {
    let ([mine, beside], others) = (both(ours, |one| one.classes)?, theirs.classes?);
    let holds = mine.clear_top1 == mine.clear
        && beside.clear_top1 == beside.clear
        && chance(duel.litert_alone, duel.burst_alone) > CHANCE;
    let text = format!(
        "the best class is that of the reference kernels {} of {} times, TFLite's {} times; of those that can be judged it \
         is theirs {} of {} times and that of TFLite's fast kernels {} times",
        mine.top1, mine.of, others.top1, mine.clear_top1, mine.clear, beside.clear_top1
    );
    Some((holds, text))
}

/// Ours, beside the reference kernels and beside the fast ones, each of which has boxes of its own.
fn places(ours: [&Comparison; 2]) -> Option<Judged> {
    let [mine, beside] = both(ours, |one| one.boxes)?;
    let holds = mine.clear_matched == mine.clear && beside.clear_matched == beside.clear;
    let text = format!(
        "of the boxes that can be judged {} of {} are found again of the reference kernels, {} of {} of TFLite's fast ones",
        mine.clear_matched, mine.clear, beside.clear_matched, beside.clear
    );
    Some((holds, text))
}

fn both<T>(ours: [&Comparison; 2], of: impl Fn(&Comparison) -> Option<T>) -> Option<[T; 2]> {
    Some([of(ours[0])?, of(ours[1])?])
}

/// Ours, beside the reference kernels and beside the fast ones.
fn pixels(ours: [&Comparison; 2], theirs: &Comparison) -> Option<Judged> {
    let ([mine, beside], others) = (both(ours, |one| one.mask)?, theirs.mask?);
    let text = format!(
        "classes overlap with those of the reference kernels by {:.5}, TFLite's by {:.5}; of the pixels that can be judged the \
         class is theirs {} of {} times and that of TFLite's fast kernels {} times",
        mine.mean_overlap, others.mean_overlap, mine.clear_equal, mine.clear, beside.clear_equal
    );
    let holds = mine.mean_overlap >= others.mean_overlap - ROUNDING
        && mine.clear_equal == mine.clear
        && beside.clear_equal == beside.clear;
    Some((holds, text))
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

    /// Beside the fast kernels ours are as beside the reference ones.
    fn judge(ours: Comparison, theirs: Comparison, duel: Duel) -> Verdict {
        let beside = Comparison { with: LITERT, ..ours };
        judge_all([ours, beside, theirs], duel)
    }

    fn judge_all(comparisons: [Comparison; 3], duel: Duel) -> Verdict {
        let accuracy = Accuracy {
            task: Task::Numbers,
            inputs: 10,
            referred: 10,
            damaged: Vec::new(),
            comparisons: comparisons.into(),
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

    /// Of 100 decisions 80 are clear.
    fn classes(of: &'static str, with: &'static str, clear_top1: u64) -> Comparison {
        let classes = ClassAgreement {
            of: 100,
            top1: 90,
            top5: 99,
            clear: 80,
            clear_top1,
            left_out: 20,
            too_near: 9,
            litert_disagrees: 11,
            beyond_fair: 1,
        };
        Comparison { with, classes: Some(classes), ..comparison(of, 1e-6) }
    }

    #[test]
    fn clear_decisions_must_not_be_lost_and_others_only_as_chance_has_it() {
        let duel = |burst_alone, litert_alone| Duel { burst_alone, litert_alone };
        let holds = |mine, beside, duel| {
            let ours = [classes(BURST, REFERENCE, mine), classes(BURST, LITERT, beside)];
            let [ours, beside] = ours;
            judge_all([ours, beside, classes(LITERT, REFERENCE, 80)], duel).not_worse
        };
        assert!(holds(80, 80, duel(3, 5)));
        assert!(!holds(79, 80, duel(5, 5)), "a clear one is lost");
        assert!(!holds(80, 79, duel(5, 5)), "one of the fast kernels too");
        assert!(!holds(80, 80, duel(0, 10)), "ten against none is no chance");
    }

    #[test]
    fn equal_bytes_do_not_excuse_what_the_fast_kernels_say_too() {
        let equal = |with, clear_top1| Comparison { equal: 10, ..classes(BURST, with, clear_top1) };
        let judged = |beside| {
            let theirs = classes(LITERT, REFERENCE, 80);
            judge_all([equal(REFERENCE, 80), equal(LITERT, beside), theirs], Duel::default())
        };
        let (good, bad) = (judged(80), judged(79));
        assert!(good.not_worse && good.because[0].starts_with("all bytes of all 10"), "{good:?}");
        assert!(!bad.not_worse && bad.because[0].contains("fast kernels 79 times"), "{bad:?}");
    }

    #[test]
    fn boxes_and_pixels_are_judged_too() {
        let boxes = |of, with, clear_matched| Comparison {
            with,
            boxes: Some(BoxAgreement {
                of: 9,
                matched: clear_matched,
                mean_overlap: None,
                least_overlap: None,
                clear: 8,
                clear_matched,
                left_out: 1,
                litert_disagrees: 1,
            }),
            ..comparison(of, 1e-6)
        };
        let holds = |mine, beside| {
            let ours = [boxes(BURST, REFERENCE, mine), boxes(BURST, LITERT, beside)];
            let [ours, beside] = ours;
            let all = [ours, beside, boxes(LITERT, REFERENCE, 8)];
            judge_all(all, Duel::default()).not_worse
        };
        assert!(holds(8, 8), "the ninth, which only one kind of kernels finds, judges nobody");
        assert!(!holds(7, 8), "one of the reference kernels is lost");
        assert!(!holds(8, 7), "one of the fast kernels is lost");
        let mask = |of, with, mean_overlap, clear_equal| Comparison {
            with,
            mask: Some(MaskAgreement {
                equal_pixels: 1.0,
                mean_overlap,
                of: 10,
                clear: 8,
                clear_equal,
                left_out: 2,
                too_near: Some(1),
                litert_disagrees: 1,
                beyond_fair: Some(0),
            }),
            ..comparison(of, 1e-6)
        };
        let holds = |overlap, mine, beside| {
            let ours =
                [mask(BURST, REFERENCE, overlap, mine), mask(BURST, LITERT, overlap, beside)];
            let [ours, beside] = ours;
            let all = [ours, beside, mask(LITERT, REFERENCE, 0.8, 8)];
            judge_all(all, Duel::default()).not_worse
        };
        assert!(holds(0.9, 8, 8));
        assert!(!holds(0.7, 8, 8));
        assert!(!holds(0.9, 7, 8), "a pixel of the reference kernels is lost");
        assert!(!holds(0.9, 8, 7), "one of the fast kernels is lost");
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
