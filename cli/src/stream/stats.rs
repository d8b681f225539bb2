//! Latencies as distributions, over the whole run and over the last second.

use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest latency that is recorded exactly, in nanoseconds: five minutes, above every deadline in use.
const LONGEST_NS: u64 = 300_000_000_000;
/// Significant digits of a recorded latency.
const DIGITS: u8 = 3;

/// Quantiles in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Quantiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

/// A distribution of durations. Recording never allocates.
#[derive(Debug)]
pub(crate) struct Durations(Histogram<u64>);

impl Durations {
    pub(crate) fn new() -> Result<Self> {
        Ok(Durations(Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)?))
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        self.0.saturating_record(nanos(duration).max(1));
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// `None` when nothing was recorded.
    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        if self.0.is_empty() {
            return None;
        }
        Some(Quantiles {
            p50: self.micros(0.5),
            p90: self.micros(0.9),
            p99: self.micros(0.99),
            p999: self.micros(0.999),
            max: self.micros(1.0),
        })
    }

    fn micros(&self, quantile: f64) -> f64 {
        micros(self.0.value_at_quantile(quantile))
    }

    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn micros(nanos: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "three digits are recorded")]
    let nanos = nanos as f64;
    nanos / 1000.0
}

/// What one frame cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameTimes {
    /// From when the frame was due (or from the request, without a schedule) to the answer.
    pub(crate) latency: Duration,
    /// From the request to the answer.
    pub(crate) execution: Duration,
    /// The part of it that the driver measured.
    pub(crate) driver: Option<Duration>,
}

/// All distributions of a run.
#[derive(Debug)]
pub(crate) struct Stats {
    pub(crate) latency: Durations,
    pub(crate) driver: Durations,
    pub(crate) transport: Durations,
    recent: Durations,
    recent_since: Instant,
}

/// The last second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recent {
    pub(crate) fps: f64,
    pub(crate) quantiles: Quantiles,
}

impl Stats {
    pub(crate) fn new() -> Result<Self> {
        Ok(Stats {
            latency: Durations::new()?,
            driver: Durations::new()?,
            transport: Durations::new()?,
            recent: Durations::new()?,
            recent_since: Instant::now(),
        })
    }

    pub(crate) fn record(&mut self, times: FrameTimes) {
        self.latency.record(times.latency);
        self.recent.record(times.latency);
        if let Some(driver) = times.driver {
            self.driver.record(driver);
            self.transport.record(times.execution.saturating_sub(driver));
        }
    }

    /// The second that ended now, once it has.
    pub(crate) fn take_second(&mut self, now: Instant) -> Option<Recent> {
        let elapsed = now.duration_since(self.recent_since);
        if elapsed < Duration::from_secs(1) {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of frames in one second")]
        let fps = self.recent.count() as f64 / elapsed.as_secs_f64();
        let recent = self.recent.quantiles().map(|quantiles| Recent { fps, quantiles });
        self.recent.clear();
        self.recent_since = now;
        recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_microseconds_and_transport_is_the_rest() {
        let mut stats = Stats::new().unwrap();
        assert!(stats.latency.quantiles().is_none());
        for ms in 1..=100 {
            stats.record(FrameTimes {
                latency: Duration::from_millis(ms),
                execution: Duration::from_micros(70),
                driver: Some(Duration::from_micros(50)),
            });
        }
        let latency = stats.latency.quantiles().unwrap();
        assert!((latency.p50 - 50_000.0).abs() < 100.0, "{latency:?}");
        assert!((latency.max - 100_000.0).abs() < 200.0, "{latency:?}");
        let transport = stats.transport.quantiles().unwrap();
        assert!((transport.p50 - 20.0).abs() < 0.1, "{transport:?}");
    }
}
