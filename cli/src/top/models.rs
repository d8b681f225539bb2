//! Models of clients: what they hold, what is executed with them over the socket and on bursts.

use serde::Serialize;

use super::bursts::Change;
use super::look::{Counts, Look, Model, as_f64};
use super::shares::{Shares, Work};
use super::times::{Times, rate};
use super::wanted::SortBy;

#[derive(Debug, Serialize)]
pub(super) struct ModelFigures {
    pub(super) client: u64,
    pub(super) pid: Option<u32>,
    pub(super) uid: u32,
    pub(super) model: u64,
    pub(super) device: String,
    /// What is held for it.
    pub(super) memory_bytes: u64,
    /// Bursts on it.
    pub(super) bursts: usize,
    pub(super) burst_requests: u64,
    pub(super) burst_requests_per_second: Option<f64>,
    /// Of all computing that was done for clients: what was computed over the socket.
    pub(super) computing_share: f64,
    /// Executions over the socket.
    #[serde(flatten)]
    pub(super) times: Times,
}

/// A model and what changed about it.
pub(super) struct ModelChange<'l> {
    pub(super) now: &'l Model,
    /// Over the socket.
    pub(super) counts: Counts,
    /// Of both looks; `None` where there is only one.
    pub(super) seconds: Option<f64>,
    waited_ns: u64,
    computed_ns: u64,
}

impl<'l> ModelChange<'l> {
    pub(super) fn new(before: Option<&Look>, model: &'l Model, seconds: Option<f64>) -> Self {
        let is_it = |other: &&Model| (other.client, other.model) == (model.client, model.model);
        let was = before.and_then(|before| before.models.iter().find(is_it));
        let (waited, computed) =
            was.map_or((0, 0), |was| (was.waited_for_turn_ns, was.computed_ns));
        ModelChange {
            now: model,
            counts: model.counts.since(was.map(|was| &was.counts)),
            seconds,
            waited_ns: model.waited_for_turn_ns.saturating_sub(waited),
            computed_ns: model.computed_ns.saturating_sub(computed),
        }
    }

    pub(super) fn work(&self) -> Work {
        Work {
            client: self.now.client,
            uid: self.now.uid,
            computed_ns: self.computed_ns,
            waited_ns: self.waited_ns,
        }
    }

    pub(super) fn figures(
        &self,
        bursts: &[Change<'_>],
        pid: Option<u32>,
        shares: &Shares,
        now: &Look,
    ) -> ModelFigures {
        let Model { client, model, .. } = *self.now;
        let own = || bursts.iter().filter(|one| (one.now.client, one.now.model) == (client, model));
        ModelFigures {
            client,
            pid,
            uid: self.now.uid,
            model,
            device: self.now.device.clone(),
            memory_bytes: self.now.memory_bytes,
            bursts: own().count(),
            burst_requests: own().map(|one| one.counts.requests).sum(),
            burst_requests_per_second: self
                .seconds
                .and_then(|_| own().map(|one| rate(&one.counts, self.seconds)).sum()),
            computing_share: shares.part(self.computed_ns),
            times: Times::new(&self.counts, self.seconds, &now.bounds_ns),
        }
    }
}

/// In the order that is asked for: with what they do over the socket, as bursts have lines of their own.
pub(super) fn figures(models: impl Iterator<Item = ModelFigures>, by: SortBy) -> Vec<ModelFigures> {
    let figure = |model: &ModelFigures| match by {
        SortBy::Busy => model.computing_share,
        SortBy::Rate => as_f64(model.times.requests),
        SortBy::P99 => model.times.p99_us.unwrap_or(0.0),
        SortBy::Queue | SortBy::Client => 0.0,
    };
    let mut models: Vec<ModelFigures> = models.collect();
    models.sort_by(|a, b| {
        let by_number = (a.client, a.model).cmp(&(b.client, b.model));
        figure(b).total_cmp(&figure(a)).then(by_number)
    });
    models
}
