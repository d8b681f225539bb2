//! CPU affinity of helpers: each runs on another CPU than the thread it helps.
//!
//! A scheduler may leave the two on one CPU for a long time, if something else is busy on the others,
//! however little that matters. There a helper that polls only takes time from the thread it waits
//! for. So it asks to run elsewhere, within the CPUs it was given; where there is no other, it
//! sleeps.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The CPUs that a helper may run on.
#[derive(Debug)]
pub(super) struct Affinity {
    /// Those that others set.
    given: Option<CpuSet>,
    /// Those that it set last, or that others had set before.
    asked: Option<CpuSet>,
}

impl Affinity {
    /// That of the calling thread.
    pub(super) fn of_this_thread() -> Self {
        let given = sched_getaffinity(None).ok();
        Affinity { given, asked: given }
    }

    /// The CPU that the calling thread is on at this moment.
    pub(super) fn current() -> usize {
        sched_getcpu()
    }

    /// Has the calling thread, whose affinity this is, run on any of its CPUs but `cpu`. Says whether
    /// it does.
    pub(super) fn avoid(&mut self, cpu: usize) -> bool {
        let Ok(now) = sched_getaffinity(None) else { return false };
        if self.asked != Some(now) {
            // Something else has set the affinity since.
            self.given = Some(now);
        }
        let Some(mut wanted) = self.given.filter(|_| cpu < CpuSet::MAX_CPU) else { return false };
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
            let given = sched_getaffinity(None).unwrap();
            let mut affinity = Affinity::of_this_thread();
            let first = Affinity::current();
            assert_eq!(affinity.avoid(first), given.count() > 1);
            if given.count() > 1 {
                let second = Affinity::current();
                assert_ne!(second, first);
                assert!(affinity.avoid(second));
                assert_ne!(Affinity::current(), second);
                assert_eq!(sched_getaffinity(None).unwrap().count(), given.count() - 1);
                // Told from outside to stay on one CPU: it is not left.
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
