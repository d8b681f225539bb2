//! When two answers say the same: the best class, a box that is found again.

use burst_tasks::Detection;

/// Things with a lower score are not looked for.
const SCORE_MIN: f32 = 0.5;
/// A box is found again where it overlaps so far.
const IOU_MIN: f64 = 0.95;

/// The first of the highest scores; the place of the best class.
pub(super) fn best(scores: &[f32]) -> usize {
    let ahead =
        |best: usize, (at, score): (usize, &f32)| if *score > scores[best] { at } else { best };
    scores.iter().enumerate().fold(0, ahead)
}

/// Of each box of `other` that is looked for, whether it is found again in `own`.
pub(super) fn found_again(own: &[Detection], other: &[Detection]) -> Vec<bool> {
    pairs(own, other).into_iter().map(|(_, is_found)| is_found).collect()
}

/// Of each box of `other` that is looked for, the overlap with the best one of its class in `own`, each of which is
/// found once, and whether that is it.
pub(super) fn pairs(own: &[Detection], other: &[Detection]) -> Vec<(f64, bool)> {
    let mut free: Vec<&Detection> = own.iter().collect();
    let looked_for = other.iter().filter(|one| one.score >= SCORE_MIN);
    let pair = |wanted: &Detection| {
        let overlaps = free.iter().enumerate().filter(|(_, one)| one.index == wanted.index);
        let overlaps = overlaps.map(|(at, one)| (at, overlap(one.edges, wanted.edges)));
        let Some((at, much)) = overlaps.max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return (0.0, false);
        };
        let is_found = much >= IOU_MIN;
        if is_found {
            free.remove(at);
        }
        (much, is_found)
    };
    looked_for.map(pair).collect()
}

/// The part that two boxes have in common of what they cover together.
fn overlap(one: [f32; 4], other: [f32; 4]) -> f64 {
    let [one, other] = [one, other].map(|edges| edges.map(f64::from));
    let side =
        |from: usize| (one[from + 2].min(other[from + 2]) - one[from].max(other[from])).max(0.0);
    let area = |edges: [f64; 4]| (edges[2] - edges[0]).max(0.0) * (edges[3] - edges[1]).max(0.0);
    let common = side(0) * side(1);
    let all = area(one) + area(other) - common;
    if all > 0.0 { common / all } else { 0.0 }
}
