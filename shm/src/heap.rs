//! Freed memory of the heap, given back to the system.
#![allow(unsafe_code, reason = "asks the heap of the C library, which has no safe form here")]

use crate::stretch::release_freed;

/// Gives the system back what the process keeps of freed memory: of [`PageRoom`](crate::PageRoom)s, and what the heap of the C
/// library keeps in all of its arenas, where that is GNU's. Takes some milliseconds where that is much, in which threads that
/// allocate may wait; says whether any was given back.
pub fn give_back_freed_memory() -> bool {
    let of_rooms = release_freed();
    trim_heap() || of_rooms
}

fn trim_heap() -> bool {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: may be called at any time, from any thread; it takes the heap's own locks and touches no memory that
        // is in use.
        unsafe { libc::malloc_trim(0) != 0 }
    }
    #[cfg(not(target_env = "gnu"))]
    {
        false
    }
}
