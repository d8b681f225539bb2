//! A burst's slots: which memory each stands for, mapped once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use burst_hal::{Pool, RequestPool};

use crate::ServerError;
use crate::panics::lock;

/// Slots of one burst. An execution clones references out of it, so that freeing a slot neither
/// waits for the execution nor unmaps the memory that it uses.
#[derive(Debug, Default)]
pub(crate) struct MemoryCache {
    slots: Mutex<HashMap<i32, Pool>>,
}

impl MemoryCache {
    /// Fills a slot.
    ///
    /// # Errors
    /// A negative slot, or one that is in use.
    pub(crate) fn insert(&self, slot: i32, memory: Pool) -> Result<(), ServerError> {
        if slot < 0 {
            return Err(ServerError::NegativeSlot { slot });
        }
        let mut slots = self.lock();
        if slots.contains_key(&slot) {
            return Err(ServerError::InUse { what: "slot", number: i64::from(slot) });
        }
        slots.insert(slot, memory);
        Ok(())
    }

    /// Empties a slot; one that is empty already stays so.
    pub(crate) fn remove(&self, slot: i32) {
        let removed = self.lock().remove(&slot);
        drop(removed); // after the lock is let go of: unmapping takes its time
    }

    /// Puts the memories of `slots` into `pools`, in order.
    ///
    /// # Errors
    /// The first slot that is empty; `pools` then holds those before it.
    pub(crate) fn resolve(&self, slots: &[i32], pools: &mut Vec<RequestPool>) -> Result<(), i32> {
        pools.clear();
        let cached = self.lock();
        for slot in slots {
            let memory = cached.get(slot).ok_or(*slot)?;
            pools.push(RequestPool::Memory(Pool::clone(memory)));
        }
        Ok(())
    }

    /// Those of `slots` that are empty, each once.
    pub(crate) fn missing(&self, slots: &[i32]) -> Vec<i32> {
        let cached = self.lock();
        let mut missing: Vec<i32> =
            slots.iter().copied().filter(|slot| !cached.contains_key(slot)).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Pool>> {
        lock(&self.slots)
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
    fn slots_are_filled_resolved_in_order_and_freed() {
        let cache = MemoryCache::default();
        cache.insert(3, memory()).unwrap();
        cache.insert(i32::MAX, memory()).unwrap();
        let mut pools = Vec::new();
        assert_eq!(cache.resolve(&[i32::MAX, 3, 3], &mut pools), Ok(()));
        assert_eq!(pools.len(), 3);
        cache.remove(3);
        cache.remove(3);
        cache.remove(-1);
        assert_eq!(cache.resolve(&[3], &mut pools), Err(3));
        assert_eq!(cache.missing(&[9, 3, 9, i32::MAX]), [3, 9]);
    }

    #[test]
    fn a_slot_in_use_and_a_negative_one_are_refused() {
        let cache = MemoryCache::default();
        cache.insert(0, memory()).unwrap();
        assert!(matches!(cache.insert(0, memory()), Err(ServerError::InUse { .. })));
        assert!(matches!(cache.insert(-1, memory()), Err(ServerError::NegativeSlot { .. })));
    }

    #[test]
    fn an_execution_keeps_its_memory_when_the_slot_is_freed() {
        let cache = MemoryCache::default();
        let memory = memory();
        cache.insert(0, Pool::clone(&memory)).unwrap();
        let mut pools = Vec::new();
        cache.resolve(&[0], &mut pools).unwrap();
        cache.remove(0);
        assert_eq!(Arc::strong_count(&memory), 2, "ours and the execution's");
        let RequestPool::Memory(held) = &pools[0] else { panic!("not a memory") };
        assert_eq!(held.len(), 1);
    }
}
