//! Memories that the service knows by number, so that each crosses the socket once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use burst_hal::{Memory, Pool};

/// Identity of a memory object: its address, which cannot be given out again while an entry
/// keeps a weak reference to it.
pub(super) fn key(memory: &Pool) -> usize {
    Pool::as_ptr(memory).cast::<()>().addr()
}

/// Numbers of memories, by identity.
#[derive(Debug, Default)]
pub(super) struct MemoryRegistry(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    next: u32,
    numbers: HashMap<usize, Entry>,
}

#[derive(Debug)]
struct Entry {
    number: u32,
    memory: Weak<dyn Memory>,
}

impl MemoryRegistry {
    /// The number of a memory, if it has one.
    pub(super) fn number(&self, memory: &Pool) -> Option<u32> {
        self.lock().numbers.get(&key(memory)).map(|entry| entry.number)
    }

    /// A number that none has had.
    pub(super) fn reserve(&self) -> u32 {
        let mut table = self.lock();
        table.next = table.next.wrapping_add(1);
        table.next
    }

    /// Records that the service knows `memory` under `number`.
    pub(super) fn insert(&self, number: u32, memory: &Pool) {
        let entry = Entry { number, memory: Pool::downgrade(memory) };
        let before = self.lock().numbers.insert(key(memory), entry);
        // Two threads shared the same memory at once: the service keeps the first one until the
        // connection ends. It costs a mapping, and no harm.
        drop(before);
    }

    /// Identity and number of every memory that the program dropped. They stay registered until
    /// they are removed: until then the entry keeps the address from being given out again.
    pub(super) fn dropped(&self) -> Vec<(usize, u32)> {
        let table = self.lock();
        let dropped = table.numbers.iter().filter(|(_, entry)| entry.memory.strong_count() == 0);
        dropped.map(|(key, entry)| (*key, entry.number)).collect()
    }

    /// Forgets a memory, once the service has acknowledged that it let go of it.
    pub(super) fn remove(&self, key: usize) {
        self.lock().numbers.remove(&key);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
