//! Bursts: what each did between two looks, and what is wrong with it.

use serde::Serialize;

use super::look::{Burst, Counts, Look, as_f64};
use super::shares::{Shares, Work};
use super::times::Times;
use super::wanted::{SortBy, Trouble, Wanted};

#[derive(Debug, Serialize)]
pub(super) struct BurstFigures {
    pub(super) client: u64,
    pub(super) pid: Option<u32>,
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
    /// Of the time between the looks: waiting for its turn, and at work on requests otherwise.
    pub(super) waiting_share: Option<f64>,
    pub(super) busy_share: Option<f64>,
    /// Of all computing that was done for clients.
    pub(super) computing_share: f64,
    pub(super) trouble: Vec<Trouble>,
    #[serde(flatten)]
    pub(super) times: Times,
}

/// A burst and what changed about it.
pub(super) struct Change<'l> {
    pub(super) now: &'l Burst,
    pub(super) counts: Counts,
    waited_ns: u64,
    /// Of both looks; `None` where there is only one.
    pub(super) seconds: Option<f64>,
    was_stuck: bool,
}

impl<'l> Change<'l> {
    pub(super) fn new(before: Option<&Look>, burst: &'l Burst, seconds: Option<f64>) -> Self {
        let is_it = |other: &&Burst| key(other) == key(burst);
        let was = before.and_then(|before| before.bursts.iter().find(is_it));
        let waited_before = was.map_or(0, |was| was.waited_for_turn_ns);
        Change {
            now: burst,
            counts: burst.counts.since(was.map(|was| &was.counts)),
            waited_ns: burst.waited_for_turn_ns.saturating_sub(waited_before),
            seconds,
            was_stuck: before.is_none() || was.is_some_and(has_full_queue),
        }
    }

    /// What was computed for it: the time of its requests without waiting for their turn.
    fn computed_ns(&self) -> u64 {
        self.counts.nanos.saturating_sub(self.waited_ns)
    }

    pub(super) fn work(&self) -> Work {
        Work {
            client: self.now.client,
            uid: self.now.uid,
            computed_ns: self.computed_ns(),
            waited_ns: self.waited_ns,
        }
    }
}

fn key(burst: &Burst) -> (u64, u64, u32) {
    (burst.client, burst.model, burst.burst)
}

/// Whether one of its queues is more than half full: where it holds one packet, another of that length does not fit.
fn has_full_queue(burst: &Burst) -> bool {
    let is_full = |queued: usize, room: usize| room > 0 && queued * 2 > room;
    burst.state == "results-full"
        || (burst.state != "idle" && is_full(burst.requests_queued, burst.requests_room))
}

impl BurstFigures {
    pub(super) fn new(
        change: &Change<'_>,
        pid: Option<u32>,
        shares: &Shares,
        bounds: &[u64],
    ) -> Self {
        let Change { now, counts, waited_ns, seconds, .. } = change;
        let seconds_of_life = seconds.unwrap_or(as_f64(now.age_ns) / 1e9);
        let part = |ns: u64| (seconds_of_life > 0.0).then(|| as_f64(ns) / 1e9 / seconds_of_life);
        let mut trouble = Vec::new();
        // A queue may be full for an instant: at both looks, with nothing answered in between, it is stuck.
        let answered = seconds.is_some() && counts.requests > 0;
        if has_full_queue(now) && change.was_stuck && !answered {
            trouble.push(Trouble::FullQueue);
        }
        if now.polls {
            trouble.push(Trouble::Spins);
        }
        if shares.is_over(now.client) && change.computed_ns() > 0 {
            trouble.push(Trouble::OverShare);
        }
        BurstFigures {
            client: now.client,
            pid,
            uid: now.uid,
            model: now.model,
            burst: now.burst,
            device: now.device.clone(),
            state: now.state.clone(),
            wait: now.wait.clone(),
            polls: now.polls,
            depth: now.depth,
            requests_queued: now.requests_queued,
            requests_room: now.requests_room,
            results_queued: now.results_queued,
            results_room: now.results_room,
            waiting_share: part(*waited_ns),
            busy_share: part(change.computed_ns()),
            computing_share: shares.part(change.computed_ns()),
            trouble,
            times: Times::new(counts, *seconds, bounds),
        }
    }

    pub(super) fn is_wanted(&self, wanted: &Wanted) -> bool {
        match wanted.trouble {
            None => true,
            Some(Trouble::Any) => !self.trouble.is_empty(),
            Some(one) => self.trouble.contains(&one),
        }
    }
}

pub(super) fn sort(bursts: &mut [BurstFigures], by: SortBy) {
    let figure = |burst: &BurstFigures| match by {
        SortBy::Busy => burst.computing_share,
        SortBy::Rate => {
            let requests = as_f64(burst.times.requests);
            burst.times.requests_per_second.unwrap_or(requests)
        }
        SortBy::P99 => burst.times.p99_us.unwrap_or(0.0),
        SortBy::Queue => as_f64((burst.requests_queued + burst.results_queued) as u64),
        SortBy::Client => 0.0,
    };
    bursts.sort_by(|a, b| {
        let by_number = (a.client, a.model, a.burst).cmp(&(b.client, b.model, b.burst));
        figure(b).total_cmp(&figure(a)).then(by_number)
    });
}
