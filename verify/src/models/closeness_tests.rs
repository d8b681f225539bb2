//! Each class of closeness, at its edges.

use super::*;
use crate::models::manifest::FairClasses;

fn judge(tolerance: &Tolerance, got: &[f64], want: &[f64]) -> Judgement {
    let mut judge = Judge::new(tolerance);
    judge.add(0, &[got.to_vec()], &[want.to_vec()]);
    judge.finish()
}

#[test]
fn floats_are_strict_up_to_their_tolerance_and_nothing_beyond_is_fair() {
    let tolerance = Tolerance::Float { abs: 0.5, rel: 0.25 };
    let near = judge(&tolerance, &[10.0, -13.0], &[10.0, -10.0]);
    assert_eq!((near.not_strict, near.not_fair, near.max_diff), (None, None, 3.0));
    let far = judge(&tolerance, &[10.0, -13.5], &[10.0, -10.0]);
    let why = far.not_strict.unwrap();
    assert!(
        why.starts_with("1 of 2 values are off, first execution 0, output 0, value 1: -13.5"),
        "{why}"
    );
    assert_eq!(far.not_fair.as_ref(), Some(&why));
    let broken = judge(&tolerance, &[f64::NAN], &[0.0]);
    assert!(broken.not_strict.is_some() && broken.max_diff.is_infinite());
}

const QUANTIZED: Tolerance =
    Tolerance::Quantized { fair: Fair { max_abs: 2.0, min_equal_fraction: 0.5 } };

#[test]
fn quantized_values_are_strict_only_when_they_are_equal() {
    let same = judge(&QUANTIZED, &[1.0, 2.0], &[1.0, 2.0]);
    assert_eq!((same.not_strict, same.max_diff), (None, 0.0));
    let fair = judge(&QUANTIZED, &[1.0, 4.0], &[1.0, 2.0]);
    assert!(fair.not_strict.is_some());
    assert_eq!((fair.not_fair, fair.max_diff), (None, 2.0));
}

#[test]
fn quantized_values_are_unfair_by_distance_by_number_and_by_best_class() {
    let not_fair = |got: &[f64], want: &[f64]| judge(&QUANTIZED, got, want).not_fair.unwrap();
    assert!(not_fair(&[1.0, 5.0], &[1.0, 2.0]).contains("off by up to 3, at most 2"));
    assert!(not_fair(&[2.0, 3.0, 5.0], &[1.0, 2.0, 5.0]).contains("0.333333 of output 0's"));
    // Five ahead in the reference, and yet another one is best.
    let moved = not_fair(&[9.0, 2.0, 8.0], &[9.0, 2.0, 14.0]);
    assert!(moved.contains("the best class is 0, in the reference 2"), "{moved}");
    let close = judge(&QUANTIZED, &[9.0, 2.0, 8.0], &[9.0, 2.0, 10.0]);
    assert_eq!(close.not_fair, None, "so close that it may change");
}

#[test]
fn classes_have_no_distance() {
    let fair = FairClasses { min_equal_fraction: 0.5 };
    let tolerance = Tolerance::ClassMap { fair };
    let half = judge(&tolerance, &[1.0, 20.0], &[1.0, 2.0]);
    assert!(half.not_strict.is_some() && half.not_fair.is_none());
    let less = judge(&tolerance, &[1.0, 20.0, 0.0], &[1.0, 2.0, 1.0]);
    assert!(less.not_fair.unwrap().contains("at least 0.5 is fair"));
}

/// Two detections: a sure one and a doubtful one.
fn found(left: f64, class: f64, score: f64) -> Vec<Vec<f64>> {
    let boxes = vec![0.0, left, 1.0, left + 1.0, 0.0, 0.0, 1.0, 1.0];
    vec![boxes, vec![class, 5.0], vec![score, 0.3], vec![2.0]]
}

#[test]
fn detections_are_fair_when_the_sure_ones_are_found_again() {
    let tolerance = Tolerance::Detections;
    let judged = |got: &[Vec<f64>]| {
        let mut judge = Judge::new(&tolerance);
        judge.add(0, got, &found(0.0, 3.0, 0.5));
        judge.finish()
    };
    assert_eq!(judged(&found(0.000_009, 3.0, 0.5)).not_strict, None);
    let near = judged(&found(0.1, 3.0, 0.41));
    assert!(near.not_strict.is_some());
    assert_eq!(near.not_fair, None);
    for wrong in [found(0.2, 3.0, 0.5), found(0.0, 4.0, 0.5), found(0.0, 3.0, 0.39)] {
        let why = judged(&wrong).not_fair.unwrap();
        assert!(why.contains("no detection of class 3 with score 0.500"), "{why}");
    }
    let mut doubtful = found(0.0, 3.0, 0.5);
    doubtful[1][1] = 7.0;
    assert_eq!(judged(&doubtful).not_fair, None, "a score of 0.3 need not be found");
}

#[test]
fn the_best_class_of_each_position_is_compared() {
    let tolerance = Tolerance::Float { abs: 1.0, rel: 0.0 };
    let map = |agreement| ClassMap { classes: vec![1, 0, 0, 1], agreement };
    let values = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    let judged = |map: &ClassMap| {
        let mut judge = Judge::new(&tolerance);
        judge.add_classes(&values, map);
        judge.finish().not_strict
    };
    assert_eq!(judged(&map(0.75)), None);
    assert!(judged(&map(1.0)).unwrap().contains("0.750000 of all positions"));
}
