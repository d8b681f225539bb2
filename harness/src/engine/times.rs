//! Times of executions: any number, any length.

use serde::{Deserialize, Serialize};

/// Quantiles that are drawn, as far as there are enough executions to tell them.
const CURVE: [f64; 17] = [
    0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999,
];

/// Times in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times(Vec<u64>);

impl Times {
    /// These times, in any order.
    #[must_use]
    pub fn new(mut ns: Vec<u64>) -> Times {
        ns.sort_unstable();
        Times(ns)
    }

    /// More of them.
    pub fn extend(&mut self, more: &Times) {
        self.0.extend_from_slice(&more.0);
        self.0.sort_unstable();
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The time that a share `q` of all executions did not exceed, in nanoseconds; `None` where
    /// there are none.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        nearest_rank(&self.0, q).map(to_f64)
    }

    /// The median, in nanoseconds; of an even number of times the mean of the two in the middle.
    #[must_use]
    pub fn p50(&self) -> Option<f64> {
        let upper = to_f64(*self.0.get(self.0.len() / 2)?);
        if self.0.len() % 2 == 1 {
            return Some(upper);
        }
        Some(f64::midpoint(to_f64(*self.0.get(self.0.len() / 2 - 1)?), upper))
    }

    /// Their mean, in nanoseconds; `None` where there are none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().map(|ns| to_f64(*ns)).sum();
        (!self.0.is_empty()).then(|| sum / to_f64(self.0.len() as u64))
    }

    /// All of them in nanoseconds, ascending.
    #[must_use]
    pub fn ns(&self) -> &[u64] {
        &self.0
    }

    /// Quantiles in microseconds.
    #[must_use]
    pub fn quantiles_us(&self) -> Option<Quantiles> {
        let us = |q| self.quantile(q).map(|ns| ns / 1e3);
        Some(Quantiles {
            p50: self.p50()? / 1e3,
            p90: us(0.9)?,
            p99: us(0.99)?,
            p999: us(0.999)?,
            max: us(1.0)?,
        })
    }

    /// Quantiles and times in nanoseconds, for drawing.
    #[must_use]
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let last = 1.0 - 1.0 / to_f64(self.0.len().max(1) as u64);
        let points = CURVE.iter().filter(|q| **q <= last);
        points.filter_map(|q| Some((*q, self.quantile(*q)?))).collect()
    }
}

/// Quantiles of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// The value that a share `q` of all did not exceed; `None` where there are none.
#[must_use]
pub fn nearest_rank<T: Copy>(sorted: &[T], q: f64) -> Option<T> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between zero and the number of values"
    )]
    let rank = (q * to_f64(sorted.len() as u64)).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).or(sorted.last()).copied()
}

/// Exact up to 2^53, which is 104 days in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "see above")]
pub(crate) fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_and_of_many() {
        assert_eq!(Times::default().p50(), None);
        assert_eq!(Times::default().quantiles_us(), None);
        assert_eq!(Times::new(vec![7]).p50(), Some(7.0));
        assert_eq!(Times::new(vec![4, 1, 3, 2]).p50(), Some(2.5));
        let mut times = Times::new((1..=500).collect());
        times.extend(&Times::new((501..=1000).rev().collect()));
        let expected = Quantiles { p50: 0.5005, p90: 0.9, p99: 0.99, p999: 0.999, max: 1.0 };
        assert_eq!(times.quantiles_us(), Some(expected));
    }

    #[test]
    fn a_curve_ends_where_executions_are_too_few_to_go_on() {
        let last = |count| Times::new((0..count).collect()).curve().last().map(|point| point.0);
        assert_eq!(last(1), Some(0.0));
        assert_eq!(last(10), Some(0.9));
        assert_eq!(last(1000), Some(0.999));
        assert_eq!(last(100_000), Some(0.9999));
    }
}
