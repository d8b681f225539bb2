//! The highest rate of requests at which nearly all answers come soon enough.

use std::time::{Duration, Instant};

use anyhow::Result;
use burst_harness::engine::Times;
use serde::Serialize;

use super::contest::Way;
use super::latency::nanos;

/// A trial lasts so long, but for rates at which that would be too few or too many requests.
const TRIAL_SECONDS: f64 = 1.0;
const REQUESTS: std::ops::RangeInclusive<f64> = 100.0..=20_000.0;
/// How often the span in which the rate lies is halved.
const HALVINGS: u32 = 7;
/// A trial whose answers are late by so many times what is wanted has been lost.
const LOST: u32 = 20;
/// The system wakes a sleeper late by about so much; the rest is waited for awake.
const WAKE: Duration = Duration::from_micros(200);

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Rate {
    /// What p99 has to keep below.
    pub(super) p99_below_us: f64,
    /// Requests per second; `null` where not even the lowest rate that was tried will do.
    pub(super) per_second: Option<f64>,
    pub(super) trials: Vec<Trial>,
}

/// Requests at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Trial {
    pub(super) per_second: f64,
    /// From when a request was due to its answer; `null` where the trial was given up.
    pub(super) p99_us: Option<f64>,
}

/// Looks for the rate below `most` requests per second.
pub(super) fn highest(
    way: &mut Way,
    inputs: &[Vec<u8>],
    (limit, most): (Duration, f64),
    go_on: &dyn Fn() -> bool,
) -> Result<Rate> {
    let mut trials = Vec::new();
    let limit_us = limit.as_secs_f64() * 1e6;
    let per_second = search(most, |rate| {
        if !go_on() {
            return Ok(false);
        }
        let p99_us = trial(way, inputs, rate, limit)?;
        trials.push(Trial { per_second: rate, p99_us });
        Ok(p99_us.is_some_and(|p99| p99 < limit_us))
    })?;
    Ok(Rate { p99_below_us: limit_us, per_second, trials })
}

/// The highest rate below `most` that holds, as far as halving tells it.
fn search(most: f64, mut holds: impl FnMut(f64) -> Result<bool>) -> Result<Option<f64>> {
    let (mut low, mut high) = (None, most);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low.unwrap_or(0.0), high);
        if holds(middle)? {
            low = Some(middle);
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// Requests at this rate, whether or not the last one was answered by then: the time that 99 of 100 answers did not
/// exceed, counted from when each was due. `None` where they fell behind too far.
fn trial(way: &mut Way, inputs: &[Vec<u8>], rate: f64, limit: Duration) -> Result<Option<f64>> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "100 to 20000")]
    let requests = (rate * TRIAL_SECONDS).clamp(*REQUESTS.start(), *REQUESTS.end()) as u32;
    let mut times = Vec::with_capacity(requests as usize);
    let started = Instant::now();
    for (number, input) in (0..requests).zip(inputs.iter().cycle()) {
        let due = started + Duration::from_secs_f64(f64::from(number) / rate);
        wait_until(due);
        way.run(input, false)?;
        let late = due.elapsed();
        if late > limit * LOST {
            return Ok(None);
        }
        times.push(nanos(late));
    }
    Ok(Times::new(times).quantile(0.99).map(|ns| ns / 1e3))
}

fn wait_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > WAKE {
        std::thread::sleep(left - WAKE);
    }
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_found_to_a_hundredth_of_what_is_looked_through() {
        for edge in [1.0, 37.0, 500.0, 990.0] {
            let found = search(1000.0, |rate| Ok(rate <= edge)).unwrap();
            let found = found.unwrap_or(0.0);
            assert!(found <= edge && edge - found < 10.0, "{edge}: {found}");
        }
        assert_eq!(search(1000.0, |_| Ok(false)).unwrap(), None);
        assert!(search(1000.0, |_| anyhow::bail!("gone")).is_err());
    }
}
