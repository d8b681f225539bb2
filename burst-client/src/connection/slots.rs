//! A burst's slots: numbers that stand for memories, and for buffers of the driver, in its packets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use burst_hal::{Memory, Pool};

use super::buffers::RemoteToken;
use super::memory_registry::key;

/// Slots of one burst, both ways. Numbers only grow and are never used twice, so a request can
/// never meet the memory that had its slot before.
///
/// Its lock is held for look-ups only, never across a call: the watcher needs it to answer the
/// service while the burst's own thread waits for that service.
#[derive(Debug, Default)]
pub(crate) struct SlotTable(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    next: i32,
    /// By the address of the memory or of the buffer's token, which a weak reference keeps from being given
    /// out again.
    by_address: BTreeMap<usize, i32>,
    by_slot: BTreeMap<i32, Entry>,
}

#[derive(Debug)]
enum Entry {
    Memory { key: usize, memory: Weak<dyn Memory> },
    Buffer { key: usize, buffer: Weak<RemoteToken> },
}

impl Entry {
    fn key(&self) -> usize {
        match self {
            Entry::Memory { key, .. } | Entry::Buffer { key, .. } => *key,
        }
    }

    /// The memory, where it is one that the program still holds.
    fn memory(&self) -> Option<Pool> {
        match self {
            Entry::Memory { memory, .. } => memory.upgrade(),
            Entry::Buffer { .. } => None,
        }
    }

    fn is_dropped(&self) -> bool {
        match self {
            Entry::Memory { memory, .. } => memory.strong_count() == 0,
            Entry::Buffer { buffer, .. } => buffer.strong_count() == 0,
        }
    }
}

fn key_of(buffer: &Arc<RemoteToken>) -> usize {
    Arc::as_ptr(buffer).addr()
}

impl SlotTable {
    /// The slot of a memory, if it has one.
    pub(crate) fn slot(&self, memory: &Pool) -> Option<i32> {
        self.lock().by_address.get(&key(memory)).copied()
    }

    /// The slot of a buffer, if it has one.
    pub(crate) fn slot_of_buffer(&self, buffer: &Arc<RemoteToken>) -> Option<i32> {
        self.lock().by_address.get(&key_of(buffer)).copied()
    }

    /// A slot that none has had; `None` when all 2^31 were used.
    pub(crate) fn reserve(&self) -> Option<i32> {
        let mut table = self.lock();
        let slot = table.next;
        table.next = slot.checked_add(1)?;
        Some(slot)
    }

    /// Puts a memory into a slot from [`SlotTable::reserve`].
    pub(crate) fn insert(&self, slot: i32, memory: &Pool) {
        let mut table = self.lock();
        let (key, memory) = (key(memory), Pool::downgrade(memory));
        table.by_address.insert(key, slot);
        table.by_slot.insert(slot, Entry::Memory { key, memory });
    }

    /// Puts a buffer into a slot from [`SlotTable::reserve`].
    pub(crate) fn insert_buffer(&self, slot: i32, buffer: &Arc<RemoteToken>) {
        let mut table = self.lock();
        let (key, buffer) = (key_of(buffer), Arc::downgrade(buffer));
        table.by_address.insert(key, slot);
        table.by_slot.insert(slot, Entry::Buffer { key, buffer });
    }

    /// The memory in a slot, for the service's question; `None` for a slot that is not in use.
    pub(crate) fn memory(&self, slot: i32) -> Option<Pool> {
        self.lock().by_slot.get(&slot)?.memory()
    }

    /// Forgets a slot, once the service has acknowledged that it is free.
    pub(crate) fn remove(&self, slot: i32) {
        let mut table = self.lock();
        if let Some(entry) = table.by_slot.remove(&slot) {
            table.by_address.remove(&entry.key());
        }
    }

    /// All memories that the program still holds, in the order in which they got their slots.
    pub(crate) fn memories(&self) -> Vec<Pool> {
        let table = self.lock();
        table.by_slot.values().filter_map(Entry::memory).collect()
    }

    /// Slots whose memory or buffer the program dropped. They stay taken until they are removed.
    pub(crate) fn dropped(&self) -> Vec<i32> {
        let table = self.lock();
        let dropped = table.by_slot.iter().filter(|(_, entry)| entry.is_dropped());
        dropped.map(|(slot, _)| *slot).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use burst_hal::HeapMemory;

    use super::*;

    fn memory() -> Pool {
        Arc::new(HeapMemory::new(vec![1]))
    }

    #[test]
    fn slots_are_never_used_twice() {
        let table = SlotTable::default();
        let pool = memory();
        let first = table.reserve().unwrap();
        table.insert(first, &pool);
        assert_eq!(table.slot(&pool), Some(first));
        assert!(table.memory(first).is_some());
        table.remove(first);
        table.remove(first);
        assert_eq!((table.slot(&pool), table.memory(first).is_none()), (None, true));
        assert_ne!(table.reserve().unwrap(), first);
        table.lock().next = i32::MAX;
        assert_eq!(table.reserve(), None);
    }

    #[test]
    fn a_dropped_memory_is_noticed_and_its_address_stays_taken_until_removed() {
        let table = SlotTable::default();
        let pool = memory();
        let slot = table.reserve().unwrap();
        table.insert(slot, &pool);
        let old = key(&pool);
        assert!(table.dropped().is_empty());
        drop(pool);
        assert_eq!(table.dropped(), [slot]);
        let others: Vec<Pool> = (0..100).map(|_| memory()).collect();
        assert!(others.iter().all(|other| key(other) != old), "the weak reference keeps it");
        assert!(table.memory(slot).is_none());
    }
}
