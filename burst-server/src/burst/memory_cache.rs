//! A burst's slots: which memory each stands for, mapped once, or which buffer of the driver.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use burst_hal::{Pool, RequestPool};

use crate::ServerError;
use crate::admission::Charge;
use crate::buffers::BufferEntry;
use crate::panics::lock;

/// Slots of one burst. An execution clones references out of it, so that freeing a slot neither
/// waits for the execution nor unmaps the memory that it uses.
#[derive(Debug, Default)]
pub(crate) struct MemoryCache {
    slots: Mutex<BTreeMap<i32, Slot>>,
}

/// What a slot stands for.
#[derive(Debug)]
enum Slot {
    Memory(Pool),
    /// Nothing any more once the client has released the buffer. One buffer may lie in any number of slots, each
    /// of which pays for itself.
    Buffer {
        buffer: Weak<BufferEntry>,
        _paid: Charge,
    },
}

/// What a slot with a buffer is charged: its place in the table, the charge itself, and what is left of a buffer that was
/// released, whose room goes with the last slot that refers to it.
pub(crate) const BUFFER_SLOT_BYTES: usize = 512;

/// A table may be filled by half.
const _: () = assert!(
    2 * (size_of::<i32>() + size_of::<Slot>()) + size_of::<BufferEntry>() + 4 * size_of::<Charge>()
        <= BUFFER_SLOT_BYTES
);

impl MemoryCache {
    /// Fills a slot with a memory.
    ///
    /// # Errors
    /// A negative slot, or one that is in use.
    pub(crate) fn insert(&self, slot: i32, memory: Pool) -> Result<(), ServerError> {
        self.fill(slot, Slot::Memory(memory))
    }

    /// Fills a slot with a buffer, for [`BUFFER_SLOT_BYTES`] that its client pays.
    ///
    /// # Errors
    /// As [`MemoryCache::insert`].
    pub(crate) fn insert_buffer(
        &self,
        slot: i32,
        buffer: &Arc<BufferEntry>,
        paid: Charge,
    ) -> Result<(), ServerError> {
        self.fill(slot, Slot::Buffer { buffer: Arc::downgrade(buffer), _paid: paid })
    }

    fn fill(&self, slot: i32, content: Slot) -> Result<(), ServerError> {
        if slot < 0 {
            return Err(ServerError::NegativeSlot { slot });
        }
        let mut slots = self.lock();
        if slots.contains_key(&slot) {
            return Err(ServerError::InUse { what: "slot", number: i64::from(slot) });
        }
        slots.insert(slot, content);
        Ok(())
    }

    /// Empties a slot; one that is empty already stays so.
    pub(crate) fn remove(&self, slot: i32) {
        let removed = self.lock().remove(&slot);
        drop(removed); // after the lock is let go of: unmapping takes its time
    }

    /// Puts what `slots` stand for into `pools`, in order. Buffers are what their tokens say for as long as
    /// they are in `kept`.
    ///
    /// # Errors
    /// The first slot that is empty, or whose buffer was released; `pools` then holds those before it.
    pub(crate) fn resolve(
        &self,
        slots: &[i32],
        pools: &mut Vec<RequestPool>,
        kept: &mut Vec<Arc<BufferEntry>>,
    ) -> Result<(), i32> {
        pools.clear();
        kept.clear();
        pools.reserve_exact(slots.len()); // no more than is paid for
        let cached = self.lock();
        for slot in slots {
            pools.push(match cached.get(slot).ok_or(*slot)? {
                Slot::Memory(memory) => RequestPool::Memory(Pool::clone(memory)),
                Slot::Buffer { buffer, .. } => {
                    let buffer = buffer.upgrade().ok_or(*slot)?;
                    let token = RequestPool::Token(buffer.token());
                    kept.push(buffer);
                    token
                }
            });
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i32, Slot>> {
        lock(&self.slots)
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::{Buffer, Failure, HeapMemory};

    use super::*;
    use crate::admission::{Budget, Limit, LimitMeters};

    struct Seven;

    impl Buffer for Seven {
        fn token(&self) -> u32 {
            7
        }

        fn copy_to(&self, _: &Pool) -> Result<(), Failure> {
            Ok(())
        }

        fn copy_from(&self, _: &Pool, _: &[u32]) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn a_buffer_is_its_token_until_it_is_released_and_stays_for_who_resolved_it() {
        let meters = Arc::new(LimitMeters::default());
        let budget = Budget::new(Limit::Buffers, 1, &meters);
        let charge = budget.charge(1).unwrap();
        let bytes = BUFFER_SLOT_BYTES as u64;
        let memory = Budget::new(Limit::MemoryBytes, bytes, &meters);
        let buffer = Arc::new(BufferEntry::new(Arc::new(Seven), "fake", charge));
        let cache = MemoryCache::default();
        cache.insert_buffer(2, &buffer, memory.charge(bytes).unwrap()).unwrap();
        let (mut pools, mut kept) = (Vec::new(), Vec::new());
        assert_eq!(cache.resolve(&[2, 2], &mut pools, &mut kept), Ok(()));
        assert!(pools.iter().all(|pool| matches!(pool, RequestPool::Token(7))));
        drop(buffer);
        assert_eq!(meters.used(Limit::Buffers), 1, "an execution has it");
        assert_eq!(cache.resolve(&[2], &mut pools, &mut kept), Err(2));
        assert_eq!(meters.used(Limit::Buffers), 0);
        assert!(cache.missing(&[2]).is_empty(), "the client is not asked for it");
        assert!(memory.charge(1).is_err(), "what is left of it is paid for with its slot");
        cache.remove(2);
        assert!(memory.charge(1).is_ok());
    }

    fn memory() -> Pool {
        Arc::new(HeapMemory::new(vec![1]))
    }

    #[test]
    fn slots_are_filled_resolved_in_order_and_freed() {
        let cache = MemoryCache::default();
        cache.insert(3, memory()).unwrap();
        cache.insert(i32::MAX, memory()).unwrap();
        let (mut pools, mut kept) = (Vec::new(), Vec::new());
        assert_eq!(cache.resolve(&[i32::MAX, 3, 3], &mut pools, &mut kept), Ok(()));
        assert_eq!(pools.len(), 3);
        cache.remove(3);
        cache.remove(3);
        cache.remove(-1);
        assert_eq!(cache.resolve(&[3], &mut pools, &mut kept), Err(3));
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
        cache.resolve(&[0], &mut pools, &mut Vec::new()).unwrap();
        cache.remove(0);
        assert_eq!(Arc::strong_count(&memory), 2, "ours and the execution's");
        let RequestPool::Memory(held) = &pools[0] else { panic!("not a memory") };
        assert_eq!(held.len(), 1);
    }
}
