//! Which process is this? A mark that `fork` wipes, for objects that a child must not use.
//!
//! `fork` copies a process's memory, but none of its threads, and leaves sockets and shared
//! mappings in the hands of both. An object that is more than its bytes (a connection with a
//! thread that reads it, an end of a queue) takes a [`ForkMark`] when it is made and checks it
//! before it does anything. The check is one load from a page that the kernel zeroes in a child
//! (`MADV_WIPEONFORK`): no system call, as asking for the process id would be.

#![allow(unsafe_code, reason = "maps a page of its own and keeps it for the process's life")]

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::error::ShmError;

/// Length of the page; the kernel rounds it up where pages are longer.
const PAGE_BYTES: usize = 4096;

/// The process that took it. A copy of it in a forked child says that it is not there.
#[derive(Debug, Clone, Copy)]
pub struct ForkMark {
    page: &'static AtomicU64,
    generation: u64,
}

impl ForkMark {
    /// The mark of this process.
    ///
    /// # Errors
    /// [`ShmError::System`]: no memory for the page, or a kernel before 4.14.
    pub fn take() -> Result<ForkMark, ShmError> {
        /// Copied by `fork`, so that a child's own mark differs from those it inherited.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let page = page()?;
        // Relaxed, here and below: the word guards no other memory. Threads agree on its value
        // because it changes from zero once; a child begins with one thread and a zero.
        let fresh = NEXT.fetch_add(1, Ordering::Relaxed);
        let generation = match page.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed)
        {
            Ok(_) => fresh,
            Err(current) => current,
        };
        Ok(ForkMark { page, generation })
    }

    /// Whether this is still the process that took the mark, and not a child of it.
    #[inline]
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.page.load(Ordering::Relaxed) == self.generation
    }
}

/// The word that is zero in a child until it takes a mark of its own.
fn page() -> Result<&'static AtomicU64, ShmError> {
    static PAGE: OnceLock<&'static AtomicU64> = OnceLock::new();
    if let Some(page) = PAGE.get() {
        return Ok(page);
    }
    let page = map_page()?;
    // Two threads may both have mapped one: the second page stays, unused.
    Ok(PAGE.get_or_init(|| page))
}

fn map_page() -> Result<&'static AtomicU64, ShmError> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a null address lets the kernel choose, so that no mapping of ours is replaced.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), PAGE_BYTES, protection, MapFlags::PRIVATE) }
        .map_err(ShmError::system("mmap"))?;
    // SAFETY: `at..at + PAGE_BYTES` is the mapping made above, which nothing refers to yet; the
    // advice changes what a child sees there, and nothing here.
    unsafe { madvise(at, PAGE_BYTES, Advice::LinuxWipeOnFork) }
        .map_err(ShmError::system("madvise"))?;
    // SAFETY: aligned to a page, readable and writable, zeroed by the kernel (a value of
    // `AtomicU64`), never unmapped, and reached through this type alone.
    Ok(unsafe { &*at.cast::<AtomicU64>() })
}

#[cfg(test)]
mod tests {
    use burst_testing::run_in_forked_child;

    use super::*;

    #[test]
    fn a_child_knows_that_it_is_one_and_its_own_marks_hold() {
        let ours = ForkMark::take().unwrap();
        assert!(ours.is_here() && ForkMark::take().unwrap().is_here());
        let status = run_in_forked_child(|| {
            let inherited = ours.is_here();
            let own = ForkMark::take().is_ok_and(|mark| mark.is_here());
            // Nor does the new mark bring the old one to life.
            u8::from(inherited) | u8::from(!own) << 1 | u8::from(ours.is_here()) << 2
        });
        assert_eq!(status.unwrap(), 0);
        assert!(ours.is_here(), "the parent is not changed by its child");
    }
}
