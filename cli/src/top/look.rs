//! What the admin socket answers to `GET /sessions`: `docs/SERVICE.md` has the keys.

use serde::Deserialize;

/// The form that this understands.
pub(super) const SCHEMA: u32 = 1;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Look {
    pub(super) schema: u32,
    pub(super) version: String,
    /// On a clock of the service's.
    pub(super) time_ns: u64,
    /// Upper bounds of all buckets but the last.
    pub(super) bounds_ns: Vec<u64>,
    pub(super) waiting_for_turn: u64,
    pub(super) computing_beside: u64,
    pub(super) users: Vec<User>,
    pub(super) sessions: Vec<Session>,
    pub(super) models: Vec<Model>,
    pub(super) bursts: Vec<Burst>,
    pub(super) left_out: usize,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) accounts: Vec<Account>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Account {
    pub(super) resource: String,
    pub(super) used: u64,
    pub(super) limit: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Session {
    pub(super) client: u64,
    pub(super) pid: Option<u32>,
    pub(super) uid: u32,
    pub(super) program: String,
    pub(super) connected_ns: u64,
}

/// A model, with what was executed over the socket.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Model {
    pub(super) client: u64,
    pub(super) uid: u32,
    pub(super) model: u64,
    pub(super) device: String,
    // A service that was built earlier does not say these.
    #[serde(default)]
    pub(super) memory_bytes: u64,
    #[serde(default)]
    pub(super) waited_for_turn_ns: u64,
    #[serde(default)]
    pub(super) computed_ns: u64,
    #[serde(flatten)]
    pub(super) counts: Counts,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Burst {
    pub(super) client: u64,
    pub(super) uid: u32,
    pub(super) model: u64,
    pub(super) burst: u32,
    pub(super) device: String,
    pub(super) state: String,
    pub(super) wait: String,
    pub(super) polls: bool,
    pub(super) depth: u16,
    pub(super) requests_queued: usize,
    pub(super) requests_room: usize,
    pub(super) results_queued: usize,
    pub(super) results_room: usize,
    pub(super) waited_for_turn_ns: u64,
    pub(super) age_ns: u64,
    #[serde(flatten)]
    pub(super) counts: Counts,
}

/// Counters that only grow.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Counts {
    pub(super) requests: u64,
    pub(super) failed: u64,
    /// From arrival to answer.
    pub(super) nanos: u64,
    /// Requests by how long they took.
    pub(super) buckets: Vec<u64>,
}

impl Counts {
    /// What was counted since an earlier look.
    pub(super) fn since(&self, before: Option<&Counts>) -> Counts {
        let Some(before) = before else { return self.clone() };
        let earlier = before.buckets.iter().copied().chain(std::iter::repeat(0));
        Counts {
            requests: self.requests.saturating_sub(before.requests),
            failed: self.failed.saturating_sub(before.failed),
            nanos: self.nanos.saturating_sub(before.nanos),
            buckets: self
                .buckets
                .iter()
                .zip(earlier)
                .map(|(now, was)| now.saturating_sub(was))
                .collect(),
        }
    }

    /// The time, in nanoseconds, that a share `q` of the requests did not exceed, as far as buckets with these
    /// bounds tell: within one it counts as evenly spread.
    pub(super) fn quantile_ns(&self, q: f64, bounds: &[u64]) -> Option<f64> {
        let all: u64 = self.buckets.iter().sum();
        if all == 0 {
            return None;
        }
        let rank = as_f64(all) * q;
        let mut below = 0.0;
        for (at, count) in self.buckets.iter().enumerate() {
            let count = as_f64(*count);
            if count > 0.0 && below + count >= rank {
                let low = at.checked_sub(1).and_then(|at| bounds.get(at)).copied().unwrap_or(0);
                // Beyond the last bound nothing is known but that.
                let high = bounds.get(at).copied().unwrap_or(low);
                return Some(as_f64(low) + as_f64(high - low) * (rank - below) / count);
            }
            below += count;
        }
        None
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 2^53, which is 104 days in nanoseconds"
)]
pub(super) fn as_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_their_bucket() {
        let bounds = [1000, 2000, 5000];
        let counts = |buckets: [u64; 4]| Counts { buckets: buckets.into(), ..Counts::default() };
        assert_eq!(counts([0; 4]).quantile_ns(0.5, &bounds), None);
        assert_eq!(counts([0, 10, 0, 0]).quantile_ns(0.5, &bounds), Some(1500.0));
        assert_eq!(counts([50, 49, 1, 0]).quantile_ns(0.5, &bounds), Some(1000.0));
        assert_eq!(counts([98, 0, 2, 0]).quantile_ns(0.99, &bounds), Some(3500.0));
        assert_eq!(counts([0, 0, 0, 7]).quantile_ns(0.99, &bounds), Some(5000.0), "that, or more");
    }

    #[test]
    fn what_was_counted_since_is_the_difference() {
        let was = Counts { requests: 5, failed: 1, nanos: 100, buckets: vec![1, 4] };
        let now = Counts { requests: 8, failed: 1, nanos: 400, buckets: vec![1, 7] };
        let since = now.since(Some(&was));
        assert_eq!((since.requests, since.failed, since.nanos), (3, 0, 300));
        assert_eq!(since.buckets, [0, 3]);
        assert_eq!(was.since(Some(&now)).requests, 0, "another one with the same number");
        assert_eq!(now.since(None).requests, 8);
    }
}
