//! Memories that the service knows by number, so that each crosses the socket once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use burst_hal::{Memory, Pool};
use burst_wire::control::Call;
use fmq::Deadline;

use super::Connection;
use crate::ClientError;

/// Identity of a memory object: its address, which cannot be given out again while an entry
/// keeps a weak reference to it.
pub(crate) fn key(memory: &Pool) -> usize {
    Pool::as_ptr(memory).cast::<()>().addr()
}

/// Numbers of memories, by identity.
#[derive(Debug, Default)]
pub(crate) struct SharedMemories(Mutex<Table>);

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

impl SharedMemories {
    /// The number of a memory; sends it to the service if it has none yet. `None` for memory
    /// that has no descriptor to send.
    pub(crate) fn number(
        &self,
        connection: &Connection,
        memory: &Pool,
        deadline: Deadline,
    ) -> Result<Option<u32>, ClientError> {
        if let Some(entry) = self.lock().numbers.get(&key(memory)) {
            return Ok(Some(entry.number));
        }
        let Some(descriptor) = memory.fd() else { return Ok(None) };
        connection.give_back_dropped(deadline)?;
        let number = self.reserve();
        let call = Call::ShareMemory { memory: number, length: memory.len() };
        connection.order(call, &[descriptor], deadline)?;
        self.insert(number, memory);
        Ok(Some(number))
    }

    /// A number that none has had.
    pub(crate) fn reserve(&self) -> u32 {
        let mut table = self.lock();
        table.next = table.next.wrapping_add(1);
        table.next
    }

    /// Records that the service knows `memory` under `number`.
    pub(crate) fn insert(&self, number: u32, memory: &Pool) {
        let entry = Entry { number, memory: Pool::downgrade(memory) };
        let before = self.lock().numbers.insert(key(memory), entry);
        // Two threads shared the same memory at once: the service keeps the first one until the
        // connection ends. It costs a mapping, and no harm.
        drop(before);
    }

    /// Tells the service about memories that nobody has here any more; one thread at a time.
    pub(crate) fn forget_dropped(
        &self,
        connection: &Connection,
        deadline: Deadline,
    ) -> Result<(), ClientError> {
        let dropped: Vec<(usize, u32)> = self
            .lock()
            .numbers
            .iter()
            .filter(|(_, entry)| entry.memory.strong_count() == 0)
            .map(|(key, entry)| (*key, entry.number))
            .collect();
        for (key, number) in dropped {
            connection.order(Call::ForgetMemory { memory: number }, &[], deadline)?;
            // Only now: until then the entry keeps the address from being given out again.
            self.lock().numbers.remove(&key);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
