//! Who computes when. Whatever computes for clients - executions of bursts and over the socket,
//! preparations, surveys - holds a *run token* meanwhile, and there are as many tokens as cores to compute
//! on. Who finds none waits for its turn: `claims.rs` says whose it is.
//!
//! | file | what a reader finds there |
//! |---|---|
//! | `run.rs` | a thread that computes: begins, gives way, ends, waits |
//! | `turns.rs` | each of these steps, without the waiting: tokens and claims together |
//! | `tokens.rs` | the tokens that nobody holds, in one word |
//! | `claims.rs` | fair shares of users and connections |
//! | `urgent.rs` | cores for the threads of more urgent bursts |
//! | `beside.rs` | who computes without a token, because none moves |
//! | `waiter.rs`, `bell.rs` | what a run is given, and how the thread that waits learns of it |
//! | `meter.rs` | what of it is counted |
//!
//! A token is held by the thread that computes and by no other. An execution that its client does not
//! wait for waits without a thread, and is given one with its token ([`Run::begin_later`]). The thread gives it back before it waits
//! for a client: for memories that it has to ask for, for room in a result queue, for a file that is no
//! shared memory ([`without_token`]). A driver gives way between steps
//! ([`Turn::give_way`](burst_hal::Turn)); one that does not keeps its token until the execution ends. Who
//! waits for one of those longer than [`Patience`] says computes beside it, within bounds. A
//! panic ends the execution like anything else. Why it is so: `docs/decisions/0014-run-tokens.md`.

mod bell;
mod beside;
mod claims;
mod meter;
mod run;
mod tokens;
mod turns;
mod urgent;
mod waiter;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use burst_hal::{CancelWord, TimePoint};
use burst_launch::{FenceWatcher, WaitEnd};

use crate::panics::lock;
use bell::Bells;
pub(crate) use claims::Claimant;
pub(crate) use meter::TurnMeter;
pub(crate) use run::{Entered, Run, Work, without_token};
use turns::Turns;
use urgent::Users;
pub(crate) use waiter::NoToken;
use waiter::Waiter;

/// The shortest patience: alarms are no more punctual.
const PATIENCE_MIN: Duration = Duration::from_millis(1);

/// How long whoever's turn it is waits for a run that does not give way, and what looks after that.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// `None` for as long as that takes.
    pub(crate) time: Option<Duration>,
    /// Has a thread that sleeps until it is over.
    pub(crate) watcher: Arc<FenceWatcher>,
    /// Counts who waits, and who computes beside such a run.
    pub(crate) meter: Arc<TurnMeter>,
}

/// Hands out run tokens.
#[derive(Debug)]
pub(crate) struct Scheduler {
    turns: Turns<Arc<Waiter>>,
    runs: Mutex<Runs>,
    watcher: Arc<FenceWatcher>,
    bells: Bells,
    users: Users,
}

/// Every run there is, to cancel it and to name it.
#[derive(Debug, Default)]
struct Runs {
    next: u64,
    alive: BTreeMap<u64, Weak<Run>>,
    /// Whatever comes now is cancelled from the start.
    is_stopped: bool,
}

impl Scheduler {
    /// A scheduler with so many tokens; `None` for as many as are asked for.
    pub(crate) fn new(tokens: Option<NonZeroUsize>, patience: Patience) -> Arc<Self> {
        // With every thread of a process at work this many are never taken.
        let unlimited = u32::MAX / 2;
        let tokens = tokens.map(|tokens| u32::try_from(tokens.get()).unwrap_or(unlimited));
        let Patience { time, watcher, meter } = patience;
        let nanos = |time: Duration| u64::try_from(time.max(PATIENCE_MIN).as_nanos());
        // What is longer than a clock of 64 bits is for ever.
        let patience_ns = time.and_then(|time| nanos(time).ok());
        let tokens = tokens.unwrap_or(unlimited).min(unlimited);
        let turns = Turns::new(tokens, patience_ns, meter);
        Arc::new(Scheduler {
            turns,
            runs: Mutex::default(),
            watcher,
            bells: Bells::default(),
            users: Users::default(),
        })
    }

    /// Somebody who is going to compute for a client, until the word is set.
    pub(crate) fn run(self: &Arc<Self>, of: Claimant, work: Work, cancel: &CancelWord) -> Arc<Run> {
        let mut runs = lock(&self.runs);
        let is_stopped = runs.is_stopped;
        let number = runs.next;
        runs.next += 1;
        let run = Arc::new(Run::new(Arc::clone(self), number, of, work, cancel));
        runs.alive.insert(number, Arc::downgrade(&run));
        drop(runs);
        if is_stopped {
            // With no lock held: what it ends may be a run, which asks for this one.
            cancel.cancel();
        }
        run
    }

    /// Ends the waiting of those that were cancelled or called off. To be called after that.
    pub(crate) fn wake_called_off(&self) {
        let mut waiting = Vec::new();
        self.turns.for_each_waiting(|waiter| {
            if waiter.is_called_off() {
                waiting.push(Arc::clone(waiter));
            }
        });
        waiting.iter().for_each(|waiter| waiter.look_again());
    }

    /// Has somebody look after those that wait, at this time.
    fn watch_at(self: &Arc<Self>, nanos: u64) {
        let weak = Arc::downgrade(self);
        let alarm = self.watcher.alarm(TimePoint { nanos }, move |end| {
            // Otherwise the watcher is gone, and with it the service.
            if let (WaitEnd::MissedDeadline, Some(scheduler)) = (end, weak.upgrade()) {
                scheduler.watch();
            }
        });
        if let Err(error) = alarm {
            tracing::warn!(%error, "nobody looks after runs that wait for one that does not give way");
            self.turns.note_unwatched();
        }
    }

    /// Lets those compute whose turn it has been for too long.
    fn watch(self: &Arc<Self>) {
        let now = TimePoint::now().nanos;
        let watched = self.turns.watch(now);
        if !watched.granted.is_empty() {
            tracing::debug!(holders = ?self.computing(), "these do not give way: others compute beside");
        }
        watched.granted.iter().for_each(|waiter| waiter.grant(now, true));
        if let Some(at) = watched.again_at {
            self.watch_at(at);
        }
    }

    /// Cancels whatever computes, now and later.
    pub(crate) fn cancel_all(&self) {
        lock(&self.runs).is_stopped = true;
        self.alive().iter().for_each(|run| run.cancel());
        self.wake_called_off();
    }

    /// What computes just now, in words.
    pub(crate) fn computing(&self) -> Vec<String> {
        let runs = self.alive();
        runs.iter().filter(|run| run.computes()).map(ToString::to_string).collect()
    }

    fn alive(&self) -> Vec<Arc<Run>> {
        let runs = lock(&self.runs);
        // A run that is dropped meanwhile asks for the lock: so its last reference is not dropped here.
        runs.alive.values().filter_map(Weak::upgrade).collect()
    }

    fn forget(&self, number: u64) {
        lock(&self.runs).alive.remove(&number);
    }
}

#[cfg(test)]
#[path = "scheduler/tests.rs"]
mod tests;
