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
//!
//! A token is held by the thread that computes and by no other. An execution that its client does not
//! wait for waits without a thread, and is given one with its token ([`Run::begin_later`]). The thread gives it back before it waits
//! for a client: for memories that it has to ask for, for room in a result queue, for a file that is no
//! shared memory ([`without_token`]). A driver gives way between steps
//! ([`Turn::give_way`](burst_hal::Turn)); one that does not keeps its token until the execution ends. A
//! panic ends the execution like anything else. Why it is so: `docs/decisions/0014-run-tokens.md`.

mod claims;
mod run;
mod tokens;
mod turns;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, Weak};

use burst_hal::CancelWord;

use crate::panics::lock;
pub(crate) use claims::Claimant;
use run::Waiter;
pub(crate) use run::{Entered, NoToken, Run, Work, without_token};
use turns::Turns;

/// Hands out run tokens.
#[derive(Debug)]
pub(crate) struct Scheduler {
    turns: Turns<Arc<Waiter>>,
    runs: Mutex<Runs>,
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
    pub(crate) fn new(tokens: Option<NonZeroUsize>) -> Arc<Self> {
        // With every thread of a process at work this many are never taken.
        let unlimited = u32::MAX / 2;
        let tokens = tokens.map(|tokens| u32::try_from(tokens.get()).unwrap_or(unlimited));
        let turns = Turns::new(tokens.unwrap_or(unlimited).min(unlimited));
        Arc::new(Scheduler { turns, runs: Mutex::default() })
    }

    /// Somebody who is going to compute for a client, until the word is set.
    pub(crate) fn run(self: &Arc<Self>, of: Claimant, work: Work, cancel: &CancelWord) -> Arc<Run> {
        let mut runs = lock(&self.runs);
        if runs.is_stopped {
            cancel.cancel();
        }
        let number = runs.next;
        runs.next += 1;
        let run = Arc::new(Run::new(Arc::clone(self), number, of, work, cancel));
        runs.alive.insert(number, Arc::downgrade(&run));
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
