//! From the slots of a request to its memories, asking the client for those it has not pushed.

use std::sync::Arc;

use burst_hal::{ErrorStatus, RequestPool};
use burst_wire::control::MEMORIES_MAX;

use super::memory_cache::MemoryCache;
use super::queues::Closers;
use crate::buffers::BufferEntry;
use crate::client::ClientLink;

/// The memories of one burst's client, by slot; each is mapped once. Cheap to clone.
#[derive(Clone)]
pub struct BurstMemories {
    number: u32,
    link: Arc<ClientLink>,
    cache: Arc<MemoryCache>,
    closers: Closers,
}

/// The buffers of the driver that a request names, kept for as long as it is executed.
#[derive(Debug, Default)]
pub struct KeptBuffers(Vec<Arc<BufferEntry>>);

impl std::fmt::Debug for BurstMemories {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BurstMemories").field("burst", &self.number).finish_non_exhaustive()
    }
}

impl BurstMemories {
    pub(super) fn new(
        number: u32,
        link: Arc<ClientLink>,
        cache: Arc<MemoryCache>,
        closers: Closers,
    ) -> Self {
        BurstMemories { number, link, cache, closers }
    }

    /// The burst's number.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The burst's client.
    pub(super) fn link(&self) -> &ClientLink {
        &self.link
    }

    /// Puts the memories of `slots` into `pools`, in order. What lies in `pools` stays usable
    /// when the client frees its slot meanwhile.
    ///
    /// Waits, for a second at most, where the client has to be asked; never on the thread that
    /// reads that client's socket.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a slot that stays empty or stands for a buffer, or what the client answered;
    /// `pools` then is empty.
    pub fn resolve(&self, slots: &[i32], pools: &mut Vec<RequestPool>) -> Result<(), ErrorStatus> {
        let mut kept = KeptBuffers::default();
        self.resolve_with_buffers(slots, pools, &mut kept)?;
        if !kept.0.is_empty() {
            pools.clear();
            return Err(ErrorStatus::InvalidArgument);
        }
        Ok(())
    }

    /// As [`resolve`](BurstMemories::resolve), also for buffers of the driver. They are in `kept` then, in
    /// place of those before: as long as they are, the device gives their tokens to no other buffer.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a slot that stays empty, or what the client answered; `pools` then is empty.
    pub fn resolve_with_buffers(
        &self,
        slots: &[i32],
        pools: &mut Vec<RequestPool>,
        kept: &mut KeptBuffers,
    ) -> Result<(), ErrorStatus> {
        self.resolve_after(slots, pools, &mut kept.0, || ())
    }

    /// The same, also for buffers of the driver, whose tokens are theirs as long as they are `kept`;
    /// `before_asking` is called where the client has to be asked, and so may have to be waited for.
    pub(super) fn resolve_after(
        &self,
        slots: &[i32],
        pools: &mut Vec<RequestPool>,
        kept: &mut Vec<Arc<BufferEntry>>,
        before_asking: impl FnOnce(),
    ) -> Result<(), ErrorStatus> {
        if self.cache.resolve(slots, pools, kept).is_ok() {
            return Ok(());
        }
        pools.clear();
        before_asking();
        self.ask(slots)?;
        self.cache.resolve(slots, pools, kept).map_err(|slot| {
            pools.clear();
            kept.clear();
            tracing::debug!(burst = self.number, slot, "slot stays empty");
            ErrorStatus::InvalidArgument
        })
    }

    /// Asks the client for those memories that it has not pushed.
    fn ask(&self, slots: &[i32]) -> Result<(), ErrorStatus> {
        let missing = self.cache.missing(slots);
        for slots in missing.chunks(MEMORIES_MAX) {
            let burst = self.number;
            let memories = self.link.ask_for_memories(burst, slots, || self.closers.is_closed())?;
            match ErrorStatus::from_code(memories.status) {
                Some(ErrorStatus::None) => {}
                Some(status) => return Err(status),
                None => return Err(ErrorStatus::GeneralFailure),
            }
            let counts = [memories.lengths.len(), memories.descriptors.len()];
            if counts != [slots.len(); 2] {
                return Err(ErrorStatus::GeneralFailure);
            }
            let given = memories.descriptors.into_iter().zip(memories.lengths);
            for (slot, (descriptor, length)) in slots.iter().zip(given) {
                // A memory that cannot be used leaves its slot empty; the execution then fails.
                let opened = (self.link.open_memory(descriptor, length))
                    .and_then(|memory| self.cache.insert(*slot, Arc::new(memory)));
                if let Err(error) = opened {
                    tracing::debug!(burst, slot, %error, "memory refused");
                }
            }
        }
        Ok(())
    }
}
