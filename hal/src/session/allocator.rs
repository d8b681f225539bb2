//! Allocators for the memory of a session.

use std::sync::Arc;

use crate::{Failure, HeapMemory, Pool};

/// Makes the pools of a session. A driver in another process takes part in a burst only with
/// memory that both processes can map.
pub trait PoolAllocator: Send + Sync {
    /// A pool of at least `bytes` bytes, all 0.
    ///
    /// # Errors
    /// There is no memory left.
    fn allocate(&self, bytes: usize) -> Result<Pool, Failure>;
}

/// Memory of this process: for devices that are in it too.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeapAllocator;

impl PoolAllocator for HeapAllocator {
    fn allocate(&self, bytes: usize) -> Result<Pool, Failure> {
        Ok(Arc::new(HeapMemory::new(vec![0; bytes])))
    }
}
