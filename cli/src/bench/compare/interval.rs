//! By which factor one sample lies above another, and how sure that is.
//!
//! The factor is the median of all ratios of one value of B over one of A, after Hodges and Lehmann; the
//! interval ends at two of these ratios, whose ranks are those at which the test of Mann and Whitney would
//! just not tell the samples apart. Nothing is assumed of how the values are distributed, and a few that lie
//! far out change nothing.

use serde::Serialize;

/// In so many of a hundred comparisons of samples that differ by one factor, that factor lies outside.
const OUTSIDE: f64 = 0.05;
/// Products of the numbers of values up to which ranks are counted; beyond, their normal distribution is near enough.
const COUNTED_MAX: usize = 2500;
/// How many standard deviations hold all but [`OUTSIDE`] of a normal distribution.
const DEVIATIONS: f64 = 1.959_963_984_540_054;

/// A factor, and the interval in which it lies with a probability of at least 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Interval {
    pub(super) ratio: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Interval {
    pub(super) fn text(&self) -> String {
        let Interval { ratio, low, high } = self;
        format!("{ratio:.3} ({low:.3} - {high:.3})")
    }
}

/// The factor from `a` to `b`; `None` where there are too few values to tell.
pub(super) fn of_ratio(a: &[f64], b: &[f64]) -> Option<Interval> {
    let rank = rank(a.len(), b.len())?;
    let mut ratios: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| b / a)).collect();
    ratios.sort_by(f64::total_cmp);
    Some(Interval {
        ratio: burst_harness::engine::median(ratios.iter().copied())?,
        low: *ratios.get(rank)?,
        high: *ratios.get(ratios.len().checked_sub(rank + 1)?)?,
    })
}

/// How many ratios are left out at either end; `None` where even all of them are too few.
fn rank(a: usize, b: usize) -> Option<usize> {
    let all = a.checked_mul(b)?;
    if all > COUNTED_MAX {
        #[expect(clippy::cast_precision_loss, reason = "numbers of rounds")]
        let (all, both) = (all as f64, (a + b) as f64);
        let least = all / 2.0 - DEVIATIONS * (all * (both + 1.0) / 12.0).sqrt();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and all"
        )]
        return Some(least.floor().max(0.0) as usize);
    }
    let ways = ways(a, b);
    let total: f64 = ways.iter().sum();
    let mut below = 0.0;
    let mut rank = None;
    for (left_out, ways) in ways.iter().enumerate() {
        below += ways;
        if below / total > OUTSIDE / 2.0 {
            break;
        }
        rank = Some(left_out);
    }
    rank
}

/// In how many orders of `a` and `b` values exactly so many pairs stand the other way round: coefficients of
/// the Gaussian polynomial, the product of (1 - x^(b+i)) / (1 - x^i) over i from 1 to a.
fn ways(a: usize, b: usize) -> Vec<f64> {
    let mut ways = vec![0.0; a * b + 1];
    ways[0] = 1.0;
    for i in 1..=a {
        for at in (b + i..ways.len()).rev() {
            ways[at] -= ways[at - b - i];
        }
        for at in i..ways.len() {
            ways[at] += ways[at - i];
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_counted() {
        assert_eq!(ways(1, 1), [1.0, 1.0]);
        assert_eq!(ways(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(ways(5, 5).iter().sum::<f64>(), 252.0);
        assert_eq!(ways(2, 3), ways(3, 2));
    }

    #[test]
    fn ranks_are_those_of_published_tables_of_mann_and_whitney() {
        // The critical value of U at 5 %, two-sided; so many pairs are left out.
        for (a, b, critical) in
            [(4, 4, 0), (5, 5, 2), (6, 6, 5), (8, 8, 13), (10, 10, 23), (5, 10, 8), (20, 20, 127)]
        {
            assert_eq!(rank(a, b), Some(critical), "{a} and {b}");
        }
        for few in [(0, 5), (1, 30), (2, 5), (3, 3)] {
            assert_eq!(rank(few.0, few.1), None, "{few:?}");
        }
    }

    #[test]
    fn many_values_have_nearly_the_rank_that_counting_gives() {
        let counted = rank(50, 50).unwrap();
        let near = rank(50, 51).unwrap();
        assert!(near.abs_diff(counted) < 40, "{counted} and {near}");
    }

    #[test]
    fn a_factor_is_found_and_values_far_out_do_not_move_it() {
        let a = [100.0, 101.0, 99.0, 102.0, 98.0, 500.0];
        let b = a.map(|value| value * 1.25);
        let found = of_ratio(&a, &b).unwrap();
        assert!((found.ratio - 1.25).abs() < 0.02, "{found:?}");
        assert!(found.low > 1.15 && found.high < 1.35 || found.high > found.ratio, "{found:?}");
        assert_eq!(of_ratio(&a[..3], &b[..3]), None);
        let same = of_ratio(&a, &a).unwrap();
        assert!(same.low < 1.0 && same.high > 1.0, "{same:?}");
        assert_eq!(Interval { ratio: 1.0, low: 0.98, high: 1.021 }.text(), "1.000 (0.980 - 1.021)");
    }
}
