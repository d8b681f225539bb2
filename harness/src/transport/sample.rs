//! Times of round trips, and what is kept of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::{nearest_rank, to_f64};

/// Times of one run, in nanoseconds. Recording is one store to memory that is there already.
#[derive(Debug)]
pub struct Recorder(Vec<u32>);

impl Recorder {
    /// Room for so many, touched, so that no page fault falls into the measured part.
    #[must_use]
    pub fn with_capacity(trips: usize) -> Recorder {
        let mut times = vec![u32::MAX; trips];
        times.clear();
        Recorder(times)
    }

    /// One more. Times above four seconds count as four seconds.
    #[inline]
    pub fn push(&mut self, time: Duration) {
        self.0.push(u32::try_from(time.as_nanos()).unwrap_or(u32::MAX));
    }

    /// What is kept of a run that took `elapsed` in all.
    #[must_use]
    pub fn into_sample(mut self, elapsed: Duration) -> Sample {
        self.0.sort_unstable();
        let times = &self.0;
        let quantile = |q: f64| f64::from(nearest_rank(times, q).unwrap_or(0));
        Sample {
            trips: times.len() as u64,
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            p50_ns: middle(times),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: quantile(1.0),
            curve: CURVE.iter().map(|q| (*q, quantile(*q))).collect(),
        }
    }
}

/// Quantiles of the curve that a report draws: dense where the tail is.
const CURVE: [f64; 18] = [
    0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999,
    1.0,
];

/// One run as a distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Round trips.
    pub trips: u64,
    /// How long all of them took.
    pub elapsed_ns: u64,
    /// The median, finer than the clock's step: the mean of the middle fifth.
    pub p50_ns: f64,
    /// 90 %.
    pub p90_ns: f64,
    /// 99 %.
    pub p99_ns: f64,
    /// 99.9 %.
    pub p999_ns: f64,
    /// The longest.
    pub max_ns: f64,
    /// Quantile and time, for drawing.
    pub curve: Vec<(f64, f64)>,
}

/// The mean of the middle fifth. A clock that ticks in steps of 10 ns says "110" or "120" for the
/// plain median of most runs here; the mean of what lies around it tells apart what the clock alone
/// cannot. No outlier comes near it.
fn middle(sorted: &[u32]) -> f64 {
    let len = sorted.len();
    let (from, to) = (len * 2 / 5, len - len * 2 / 5);
    let part = &sorted[from..to];
    if part.is_empty() {
        return f64::NAN;
    }
    let sum: u64 = part.iter().map(|ns| u64::from(*ns)).sum();
    to_f64(sum) / to_f64(part.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ns: impl IntoIterator<Item = u64>) -> Sample {
        let mut times = Recorder::with_capacity(8);
        ns.into_iter().for_each(|ns| times.push(Duration::from_nanos(ns)));
        times.into_sample(Duration::from_micros(1))
    }

    #[test]
    fn quantiles_of_a_thousand_times() {
        let sample = sample((1..=1000).rev());
        assert_eq!(sample.trips, 1000);
        assert!((sample.p50_ns - 500.5).abs() < 1e-9, "{}", sample.p50_ns);
        let quantiles = [sample.p90_ns, sample.p99_ns, sample.p999_ns, sample.max_ns];
        assert_eq!(quantiles, [900.0, 990.0, 999.0, 1000.0]);
    }

    #[test]
    fn the_median_is_finer_than_the_clock() {
        // Six of ten in the middle fifth say 110, four say 120.
        let mut times = vec![110; 560];
        times.resize(1000, 120);
        let fine = sample(times).p50_ns;
        assert!((fine - 112.0).abs() < 1e-9, "{fine}");
    }

    #[test]
    fn few_and_long_times_are_no_special_case() {
        let one = sample([7]);
        assert_eq!((one.p50_ns, one.max_ns), (7.0, 7.0));
        assert_eq!(sample([u64::MAX]).max_ns, f64::from(u32::MAX));
        assert!(sample([]).p50_ns.is_nan());
    }
}
