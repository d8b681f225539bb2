//! What the watcher knows of a burst: the memories in its slots, its queues, and how it ended.

use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

use fmq::Closer;

use super::slots::SlotTable;
use crate::waiting::lock;

/// What the watcher knows of a burst.
#[derive(Debug)]
pub(crate) struct BurstWatch {
    pub(crate) slots: SlotTable,
    closers: [Closer; 2],
    /// The service's reason for ending it.
    ended: OnceLock<Box<str>>,
    lock: Mutex<()>,
    changed: Condvar,
}

impl BurstWatch {
    pub(crate) fn new(closers: [Closer; 2]) -> Self {
        BurstWatch {
            slots: SlotTable::default(),
            closers,
            ended: OnceLock::new(),
            lock: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Whether the service ended the burst.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// The service ended the burst.
    pub(crate) fn end(&self, detail: &str) {
        self.ended.get_or_init(|| detail.into());
        self.close();
    }

    /// The service's reason for ending the burst, waiting for it at most `patience`; `None` when the
    /// connection turns out to be dead or no reason comes.
    pub(super) fn wait_for_reason(
        &self,
        patience: Duration,
        is_dead: impl Fn() -> bool,
    ) -> Option<Box<str>> {
        let unknown = |(): &mut ()| !is_dead() && self.ended.get().is_none();
        drop(self.changed.wait_timeout_while(lock(&self.lock), patience, unknown));
        self.ended.get().cloned()
    }

    /// Closes the burst's queues, which ends every wait at them.
    pub(super) fn close(&self) {
        self.closers.iter().for_each(Closer::close);
        // Notified under the lock, so that `wait_for_reason` cannot miss it between its check
        // and its wait.
        let _guard = lock(&self.lock);
        self.changed.notify_all();
    }
}
