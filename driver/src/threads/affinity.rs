//! CPU affinity of helpers: each runs on another CPU than the thread it helps.
//!
//! A scheduler may leave the two on one CPU for a long time if other processes keep the other CPUs even
//! slightly busy. A helper that polls there only takes CPU time from the thread it waits for. So it sets
//! its affinity to the other CPUs that it may run on; where there is none, it sleeps.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The CPUs that a helper may run on.
#[derive(Debug)]
pub(super) struct Affinity {
    /// The affinity that others set (the process's, or an administrator's).
    allowed: Option<CpuSet>,
    /// The affinity in force as last seen: set here, or by others before.
    asked: Option<CpuSet>,
}

impl Affinity {
    /// The affinity of the calling thread.
    pub(super) fn of_this_thread() -> Self {
        let allowed = sched_getaffinity(None).ok();
        Affinity { allowed, asked: allowed }
    }

    /// The CPU that the calling thread is on at this moment.
    pub(super) fn current() -> usize {
        sched_getcpu()
    }

    /// Restricts the calling thread, whose affinity this is, to its CPUs other than `cpu`. Returns
    /// whether it now runs elsewhere.
    pub(super) fn avoid(&mut self, cpu: usize) -> bool {
        let Ok(now) = sched_getaffinity(None) else { return false };
        if self.asked != Some(now) {
            // Something else has set the affinity since.
            self.allowed = Some(now);
        }
        let Some(mut wanted) = self.allowed.filter(|_| cpu < CpuSet::MAX_CPU) else { return false };
        wanted.unset(cpu);
        if wanted.count() == 0 || sched_setaffinity(None, &wanted).is_err() {
            return false;
        }
        self.asked = Some(wanted);
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_a_cpu_and_may_come_back_to_it_when_it_leaves_another() {
        std::thread::spawn(|| {
            let allowed = sched_getaffinity(None).unwrap();
            let mut affinity = Affinity::of_this_thread();
            let first = Affinity::current();
            assert_eq!(affinity.avoid(first), allowed.count() > 1);
            if allowed.count() > 1 {
                let second = Affinity::current();
                assert_ne!(second, first);
                assert!(affinity.avoid(second));
                assert_ne!(Affinity::current(), second);
                assert_eq!(sched_getaffinity(None).unwrap().count(), allowed.count() - 1);
                // Others restricted the thread to one CPU: it stays there.
                let mut only = CpuSet::new();
                only.set(second);
                sched_setaffinity(None, &only).unwrap();
                assert!(!affinity.avoid(second));
                assert_eq!(Affinity::current(), second);
            }
            assert!(!affinity.avoid(usize::MAX));
        })
        .join()
        .unwrap();
    }
}
