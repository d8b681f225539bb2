//! How long executions take: windows in turn until they agree, and where asked for without a pause for minutes.

use std::time::{Duration, Instant};

use anyhow::Result;
use burst_harness::engine::{Quantiles, Times, median};
use serde::Serialize;

use super::contest::{Other, Way};
use super::tally::real;

/// A window lasts so long, but for executions that take longer.
const WINDOW: Duration = Duration::from_millis(300);
/// Executions of a window at the least.
const WINDOW_MIN: u32 = 5;
/// And at the most.
const WINDOW_MAX: u32 = 2000;
/// So many windows one after the other have to agree.
const AGREEING: usize = 3;
/// Their medians differ by no more than this part.
const APART_MAX: f64 = 0.1;
/// A time is an outlier where it is farther from the median than so many times the distance of half of all.
const OUTLIER: f64 = 10.0;
/// Parts of a long run whose medians are told.
const PARTS: u32 = 10;

/// What was measured of one who computes.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Latency {
    pub(super) latency_us: Quantiles,
    /// Answers per second, one request after the other.
    pub(super) per_second: f64,
    pub(super) executions: usize,
    /// The median of each window, without the one that warmed up.
    pub(super) windows_p50_us: Vec<f64>,
    /// Whether the last windows agree.
    pub(super) is_stable: bool,
    pub(super) outliers: Outliers,
    /// Shares of executions and times in nanoseconds, for drawing.
    #[serde(skip)]
    pub(super) curve: Vec<(f64, f64)>,
}

/// Executions that took much longer than others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Outliers {
    pub(super) count: usize,
    /// The least time that is one, in microseconds.
    pub(super) from_us: Option<f64>,
}

/// Executions without a pause.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Sustained {
    pub(super) seconds: f64,
    pub(super) executions: usize,
    pub(super) latency_us: Quantiles,
    /// The median of each tenth of the time.
    pub(super) parts_p50_us: Vec<f64>,
    /// The last tenth over the first.
    pub(super) last_to_first: Option<f64>,
}

/// Somebody who computes one model.
pub(super) enum Computes<'c> {
    /// A driver, over one of the ways to it, with inputs in turn.
    Way(&'c mut Way, &'c [Vec<u8>]),
    /// LiteRT, with the input that it was given.
    Other(&'c Other),
}

impl Computes<'_> {
    /// So many executions, one after the other: how long each took.
    fn run(&mut self, count: u32) -> Result<Vec<u64>> {
        match self {
            Computes::Way(way, inputs) => {
                let inputs = inputs.iter().cycle().take(count as usize);
                let took = inputs.map(|input| way.run(input, false));
                took.map(|took| Ok(nanos(took?))).collect()
            }
            Computes::Other(other) => other.run(count),
        }
    }
}

/// Windows of one who computes.
struct Track<'c> {
    who: Computes<'c>,
    count: u32,
    windows: Vec<Times>,
}

/// Measures everybody in turn, window by window, until for each the last windows agree or there were so many.
pub(super) fn measure(
    all: Vec<Computes<'_>>,
    windows_max: u32,
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<Option<Latency>>> {
    let mut tracks = Vec::with_capacity(all.len());
    for mut who in all {
        // What it takes shows how many fit into a window, and warms up.
        let first = who.run(WINDOW_MIN)?;
        let typical = median(first.iter().map(|ns| real(*ns))).unwrap_or(1.0);
        tracks.push(Track { who, count: fitting(typical), windows: Vec::new() });
    }
    for _ in 0..windows_max {
        for track in tracks.iter_mut().filter(|track| !track.agrees()) {
            if !go_on() {
                break;
            }
            let times = track.who.run(track.count)?;
            track.windows.push(Times::new(times));
        }
    }
    Ok(tracks.iter().map(Track::latency).collect())
}

/// How many executions of this length fill a window.
fn fitting(ns: f64) -> u32 {
    let fitting = WINDOW.as_secs_f64() * 1e9 / ns.max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let fitting = fitting as u32;
    fitting.clamp(WINDOW_MIN, WINDOW_MAX)
}

impl Track<'_> {
    fn agrees(&self) -> bool {
        agree(&self.medians())
    }

    fn medians(&self) -> Vec<f64> {
        self.windows.iter().filter_map(Times::p50).map(|ns| ns / 1e3).collect()
    }

    /// Of the windows that agree, or of the last ones where none do.
    fn latency(&self) -> Option<Latency> {
        let mut times = Times::default();
        for window in self.windows.iter().rev().take(AGREEING) {
            times.extend(window);
        }
        let mean = times.mean()?;
        Some(Latency {
            latency_us: times.quantiles_us()?,
            per_second: 1e9 / mean.max(1.0),
            executions: times.len(),
            windows_p50_us: self.medians(),
            is_stable: self.agrees(),
            outliers: outliers(&times),
            curve: times.curve(),
        })
    }
}

/// Whether the last windows have about the same median.
fn agree(medians: &[f64]) -> bool {
    let Some(last) = medians.len().checked_sub(AGREEING).map(|from| &medians[from..]) else {
        return false;
    };
    let mean = last.iter().sum::<f64>() / real(AGREEING as u64);
    last.iter().all(|one| (one - mean).abs() <= APART_MAX * mean)
}

fn outliers(times: &Times) -> Outliers {
    let Some(middle) = times.p50() else { return Outliers::default() };
    let apart = times.ns().iter().map(|ns| (real(*ns) - middle).abs());
    let Some(usual) = median(apart).filter(|usual| *usual > 0.0) else {
        return Outliers::default();
    };
    let from = middle + OUTLIER * usual;
    let count = times.ns().iter().filter(|ns| real(**ns) > from).count();
    Outliers { count, from_us: (count > 0).then_some(from / 1e3) }
}

/// Executions without a pause for so long.
pub(super) fn sustain(
    who: &mut Computes<'_>,
    length: Duration,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Sustained>> {
    let typical = median(who.run(WINDOW_MIN)?.iter().map(|ns| real(*ns))).unwrap_or(1.0);
    let count = fitting(typical);
    let (started, mut parts) = (Instant::now(), vec![Vec::new(); PARTS as usize]);
    while started.elapsed() < length && go_on() {
        let share = started.elapsed().as_secs_f64() / length.as_secs_f64() * f64::from(PARTS);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10")]
        let part = (share as usize).min(parts.len() - 1);
        parts[part].extend(who.run(count)?);
    }
    let parts: Vec<Times> = parts.into_iter().map(Times::new).collect();
    let mut all = Times::default();
    parts.iter().for_each(|part| all.extend(part));
    let medians: Vec<f64> = parts.iter().filter_map(Times::p50).map(|ns| ns / 1e3).collect();
    let ends = medians.first().copied().zip(medians.last().copied());
    Ok(all.quantiles_us().map(|latency_us| Sustained {
        seconds: started.elapsed().as_secs_f64(),
        executions: all.len(),
        latency_us,
        last_to_first: ends.filter(|_| medians.len() > 1).map(|(first, last)| last / first),
        parts_p50_us: medians,
    }))
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_agree_where_the_last_three_are_within_a_tenth() {
        assert!(!agree(&[100.0, 100.0]), "two are too few");
        assert!(agree(&[100.0, 105.0, 98.0]));
        assert!(agree(&[500.0, 100.0, 105.0, 98.0]), "the first one warmed up");
        assert!(!agree(&[100.0, 105.0, 150.0]));
    }

    #[test]
    fn outliers_are_far_from_the_median_by_what_is_usual_here() {
        let mut times: Vec<u64> = (0..100).map(|n| 10_000 + n * 10).collect();
        assert_eq!(outliers(&Times::new(times.clone())).count, 0);
        times.extend([80_000, 90_000]);
        let found = outliers(&Times::new(times));
        assert_eq!(found.count, 2);
        assert!(found.from_us.is_some_and(|us| us > 11.0 && us < 80.0), "{found:?}");
        assert_eq!(outliers(&Times::new(vec![5; 9])), Outliers::default(), "all the same");
    }

    #[test]
    fn windows_have_as_many_executions_as_fit() {
        assert_eq!(fitting(1e6), 300);
        assert_eq!(fitting(1e9), WINDOW_MIN);
        assert_eq!(fitting(10.0), WINDOW_MAX);
    }
}
