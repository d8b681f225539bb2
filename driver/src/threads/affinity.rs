//! Where a helper runs: on another CPU than the thread it helps.
//!
//! A scheduler may leave the two on one CPU for a long time, if something else is busy on the others,
//! however little that matters. There a helper that polls only takes time from the thread it waits
//! for. So it asks to run elsewhere, within the CPUs it was given; where there is no other, it
//! sleeps.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The CPUs of a helper.
#[derive(Debug)]
pub(super) struct Place {
    /// Those it was given from outside.
    given: Option<CpuSet>,
    /// Those it asked for last, or was given.
    asked: Option<CpuSet>,
}

impl Place {
    /// The place of the calling thread.
    pub(super) fn of_this_thread() -> Self {
        let given = sched_getaffinity(None).ok();
        Place { given, asked: given }
    }

    /// The CPU that the calling thread is on at this moment.
    pub(super) fn current() -> usize {
        sched_getcpu()
    }

    /// Has the calling thread, whose place this is, run on any of its CPUs but `cpu`. Says whether
    /// it does.
    pub(super) fn avoid(&mut self, cpu: usize) -> bool {
        let Ok(now) = sched_getaffinity(None) else { return false };
        if self.asked != Some(now) {
            // Somebody else has said where it is to run.
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
            let mut place = Place::of_this_thread();
            let first = Place::current();
            assert_eq!(place.avoid(first), given.count() > 1);
            if given.count() > 1 {
                let second = Place::current();
                assert_ne!(second, first);
                assert!(place.avoid(second));
                assert_ne!(Place::current(), second);
                assert_eq!(sched_getaffinity(None).unwrap().count(), given.count() - 1);
                // Told from outside to stay on one CPU: it is not left.
                let mut only = CpuSet::new();
                only.set(second);
                sched_setaffinity(None, &only).unwrap();
                assert!(!place.avoid(second));
                assert_eq!(Place::current(), second);
            }
            assert!(!place.avoid(usize::MAX));
        })
        .join()
        .unwrap();
    }
}
