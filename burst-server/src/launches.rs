//! Executions of a client that nobody waits for: asynchronous and fenced ones.
//!
//! | file | what a reader finds there |
//! |---|---|
//! | `launched.rs` | one of them, from its launch to its end |
//! | `ending.rs` | how its client hears of the end |
//! | `lane.rs` | the threads of a client that execute them, and what waits for one of them |
//!
//! None of them has a thread while it waits: for its fences (the service has one thread for those of
//! everybody), for a thread of its client's, for its run token. `docs/decisions/0020-fences-and-launches.md`.

mod ending;
mod lane;
mod launched;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use burst_hal::ExecutionInfo;
use burst_launch::FenceWatcher;
use burst_wire::{Features, WireError};

use crate::ServerError;
use crate::admission::{ClientBudgets, LimitMeters};
use crate::client::{ClientLink, Presence};
use crate::panics::lock;
use crate::scheduler::Scheduler;
use ending::Telling;
use lane::Lane;
use launched::Owner;
pub(crate) use launched::{Fences, Launched, NewLaunch};

/// Threads that one client may have for these executions at least; where there are more processors, as
/// many as there are.
const THREADS: usize = 4;

/// What the executions of all clients share.
#[derive(Debug)]
pub(crate) struct LaunchHost {
    pub(crate) watcher: Arc<FenceWatcher>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) meters: Arc<LimitMeters>,
    /// Longest wait for fences.
    pub(crate) fence_wait: Duration,
    /// Processors of the machine.
    pub(crate) cores: NonZeroUsize,
}

/// The executions of one client, by number.
pub(crate) struct Launches {
    owner: Arc<Owner>,
    presence: Arc<Presence>,
    numbers: Arc<Mutex<Numbers>>,
}

/// Which numbers are in use. An asynchronous execution leaves before its client hears of its end.
#[derive(Default)]
struct Numbers {
    /// The connection has ended: nothing is launched any more.
    is_closed: bool,
    launched: HashMap<u32, Arc<Launched>>,
}

impl Launches {
    pub(crate) fn new(
        host: &Arc<LaunchHost>,
        link: &Arc<ClientLink>,
        budgets: &Arc<ClientBudgets>,
        features: Features,
        presence: &Arc<Presence>,
    ) -> Self {
        let width = host.cores.get().max(THREADS);
        let name = format!("launch-{}", presence.client());
        let lane = Lane::new(Arc::clone(host), Arc::clone(budgets), name, width);
        let telling = Telling::new(Arc::clone(link), Arc::clone(&lane), features);
        let (host, link) = (Arc::clone(host), Arc::clone(link));
        let owner = Arc::new(Owner { host, lane, telling, link });
        Launches { owner, presence: Arc::clone(presence), numbers: Arc::default() }
    }

    /// Takes an execution in. It begins with [`Launched::start`], once its client knows of it.
    ///
    /// # Errors
    /// [`ServerError::InUse`]; a limit; [`WireError::Closed`] where the client has gone.
    pub(crate) fn enter(&self, launch: NewLaunch) -> Result<Arc<Launched>, ServerError> {
        let number = launch.number;
        let member = self.owner.lane.enlist()?;
        let mut numbers = lock(&self.numbers);
        if numbers.is_closed {
            return Err(WireError::Closed.into());
        }
        let Entry::Vacant(entry) = numbers.launched.entry(number) else {
            return Err(ServerError::InUse { what: "execution", number: number.into() });
        };
        let weak = Arc::downgrade(&self.numbers);
        let leave = Box::new(move || {
            let left = weak.upgrade().and_then(|numbers| lock(&numbers).launched.remove(&number));
            drop(left); // the lock is let go of by now
        });
        let holds = (member, Arc::clone(&self.presence));
        let launched = Launched::new(launch, &self.owner, holds, leave);
        Ok(Arc::clone(entry.insert(launched)))
    }

    /// Whether a number is free, for an execution whose number the service chooses.
    pub(crate) fn is_free(&self, number: u32) -> bool {
        !lock(&self.numbers).launched.contains_key(&number)
    }

    /// Takes back what was entered and will not start.
    pub(crate) fn withdraw(&self, number: u32) {
        let withdrawn = lock(&self.numbers).launched.remove(&number);
        drop(withdrawn); // the lock is let go of by now
    }

    /// Asks an execution to give up, where there is one.
    pub(crate) fn cancel(&self, number: u32) {
        let found = lock(&self.numbers).launched.get(&number).cloned();
        if let Some(launched) = found {
            launched.cancel();
        }
    }

    /// What came of a fenced execution.
    ///
    /// # Errors
    /// [`ServerError::Unknown`]; GENERAL_FAILURE before its end.
    pub(crate) fn info(&self, number: u32) -> Result<ExecutionInfo, ServerError> {
        let found = lock(&self.numbers).launched.get(&number).cloned();
        let info = found.as_ref().and_then(|launched| launched.info());
        Ok(info.ok_or(unknown(number))??)
    }

    /// What came of a fenced execution is no longer wanted; it goes on.
    ///
    /// # Errors
    /// [`ServerError::Unknown`].
    pub(crate) fn release(&self, number: u32) -> Result<(), ServerError> {
        let mut numbers = lock(&self.numbers);
        let is_fenced = numbers.launched.get(&number).is_some_and(|found| found.is_fenced());
        let released = if is_fenced { numbers.launched.remove(&number) } else { None };
        drop(numbers);
        released.map(drop).ok_or(unknown(number))
    }

    /// The connection has ended: what has not begun never will, and nothing is launched any more.
    pub(crate) fn close(&self) {
        let mut numbers = lock(&self.numbers);
        numbers.is_closed = true;
        let launched = std::mem::take(&mut numbers.launched);
        drop(numbers);
        launched.values().for_each(|launched| launched.call_off());
        self.owner.lane.close();
    }
}

fn unknown(number: u32) -> ServerError {
    ServerError::Unknown { what: "fenced execution", number }
}
