//! Freed memory of the heap, given back to the system.
#![allow(unsafe_code, reason = "asks the heap of the C library, which has no safe form here")]

/// Gives the system back what the heap of the C library keeps of freed memory, in all of its arenas. Takes some
/// milliseconds where that is much, in which threads that allocate may wait; says whether any was given back, which
/// where the C library is not GNU's is never.
pub fn give_back_freed_memory() -> bool {
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
