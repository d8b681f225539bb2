//! Memories for roles, as the HAL sees buffers.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use burst_hal::{Buffer, Failure, Pool};

use super::objects::{DeviceHandle, Memory};
use crate::{Error, Result};

/// The buffers of a device that live, by their tokens.
#[derive(Default)]
pub(super) struct Buffers {
    live: Mutex<BTreeMap<u32, Weak<NdkBuffer>>>,
}

impl Buffers {
    /// The buffer with a token.
    pub(super) fn find(&self, token: u32) -> Result<Arc<NdkBuffer>> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let found = live.get(&token).and_then(Weak::upgrade);
        found.ok_or_else(|| Error::bad_data(format!("no buffer has the token {token}")))
    }

    /// A buffer over a memory, with a token of its own.
    pub(super) fn add(&self, memory: Memory, device: DeviceHandle) -> Arc<NdkBuffer> {
        /// Above 0, and unique over all devices of this process.
        static NEXT: AtomicU32 = AtomicU32::new(1);
        // Relaxed: the number alone matters.
        let token = NEXT.fetch_add(1, Ordering::Relaxed);
        let buffer = Arc::new(NdkBuffer { token, memory, device });
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.retain(|_, buffer| buffer.strong_count() > 0);
        live.insert(token, Arc::downgrade(&buffer));
        buffer
    }
}

/// A memory for roles.
pub(super) struct NdkBuffer {
    token: u32,
    pub(super) memory: Memory,
    device: DeviceHandle,
}

impl NdkBuffer {
    /// A memory of all of a pool.
    fn whole(&self, pool: &Pool) -> Result<Memory> {
        let fd = pool.fd().ok_or_else(|| Error::bad_data("a pool without a descriptor"))?;
        let size = usize::try_from(pool.len()).map_err(|_| Error::bad_data("a pool that long"))?;
        self.device.memory(fd.as_fd(), size)
    }
}

impl Buffer for NdkBuffer {
    fn token(&self) -> u32 {
        self.token
    }

    fn copy_to(&self, destination: &Pool) -> std::result::Result<(), Failure> {
        let copied = self.whole(destination).and_then(|memory| self.memory.copy_to(&memory));
        copied.map_err(|error| Failure::new(error.code.into(), error.to_string()))
    }

    /// The C API has no dimensions for a copy: they are those of the description.
    fn copy_from(&self, source: &Pool, _: &[u32]) -> std::result::Result<(), Failure> {
        let copied = self.whole(source).and_then(|memory| memory.copy_to(&self.memory));
        copied.map_err(|error| Failure::new(error.code.into(), error.to_string()))
    }
}
