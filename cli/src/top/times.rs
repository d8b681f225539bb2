//! How many requests, how often, and how long they took.

use serde::Serialize;

use super::look::{Counts, as_f64};

/// Requests and their times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Times {
    pub(super) requests: u64,
    pub(super) failed: u64,
    pub(super) requests_per_second: Option<f64>,
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
}

impl Times {
    pub(super) fn new(counts: &Counts, seconds: Option<f64>, bounds: &[u64]) -> Times {
        let us = |q| counts.quantile_ns(q, bounds).map(|ns| ns / 1e3);
        Times {
            requests: counts.requests,
            failed: counts.failed,
            requests_per_second: rate(counts, seconds),
            p50_us: us(0.5),
            p99_us: us(0.99),
        }
    }
}

pub(super) fn rate(counts: &Counts, seconds: Option<f64>) -> Option<f64> {
    Some(as_f64(counts.requests) / seconds?)
}
