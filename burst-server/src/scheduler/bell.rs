//! Wakes a thread that waits for its turn, on the core of whoever wakes it.
//!
//! Who hands its token over is about to sleep: its core is the one that becomes free. A futex does not
//! tell the kernel so. With all cores busy the woken thread is then often queued behind another computing
//! thread until the next tick of the kernel, milliseconds later, while the core of the giver idles. A
//! pipe does tell: its reader is woken "in step" with the writer. `docs/decisions/0035` has the figures.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::panics::lock;

/// Threads that wait with a bell; those beyond wait without one. Each bell has two descriptors.
const BELLS_MAXIMUM: usize = 32;

/// What one thread waits for, and others ring.
#[derive(Debug)]
pub(super) struct Bell {
    read: OwnedFd,
    write: OwnedFd,
}

impl Bell {
    fn new() -> Option<Bell> {
        // Not blocking: whoever rings waits for nobody, and whoever waits takes what is there.
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        Some(Bell { read, write })
    }

    /// Ends the waiting of whoever waits, or is about to.
    pub(super) fn ring(&self) {
        // It fails only where the pipe is full, and then it has been rung.
        let _ = rustix::io::write(&self.write, &[1]);
    }

    /// Waits until it is rung, or that long, or for no reason.
    pub(super) fn wait(&self, at_most: Duration) {
        let mut polled = [PollFd::new(&self.read, PollFlags::IN)];
        // What a clock cannot count to is for ever.
        let at_most = Timespec::try_from(at_most).ok();
        if poll(&mut polled, at_most.as_ref()) == Ok(1) {
            let mut rung = [0; 16];
            let _ = rustix::io::read(&self.read, &mut rung);
        }
    }
}

/// The bells that nobody waits with. They are made as they are needed, and kept.
#[derive(Debug, Default)]
pub(super) struct Bells(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    made: usize,
    free: Vec<Arc<Bell>>,
}

impl Bells {
    /// A bell for the calling thread until this is dropped; `None` where too many threads have one, or the
    /// process has no descriptor left.
    pub(super) fn take(&self) -> Option<Taken<'_>> {
        let mut kept = lock(&self.0);
        let bell = match kept.free.pop() {
            Some(bell) => bell,
            None if kept.made < BELLS_MAXIMUM => {
                let bell = Arc::new(Bell::new()?);
                kept.made += 1;
                bell
            }
            None => return None,
        };
        Some(Taken { bell, of: self })
    }
}

/// A bell of one thread.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    bell: Arc<Bell>,
    of: &'a Bells,
}

impl Taken<'_> {
    pub(super) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // It may still be rung for the thread that had it: the next one wakes for no reason, once.
        lock(&self.of.0).free.push(Arc::clone(&self.bell));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_bell_that_was_rung_before_is_heard_and_once() {
        let bells = Bells::default();
        let taken = bells.take().unwrap();
        taken.bell().ring();
        taken.bell().ring();
        taken.bell().wait(Duration::MAX);
        let began = Instant::now();
        taken.bell().wait(Duration::from_millis(1));
        assert!(began.elapsed() >= Duration::from_millis(1));
    }

    #[test]
    fn a_ring_from_another_thread_ends_the_waiting() {
        let bells = Bells::default();
        let taken = bells.take().unwrap();
        let bell = Arc::clone(taken.bell());
        std::thread::scope(|scope| {
            scope.spawn(move || bell.ring());
            taken.bell().wait(Duration::MAX);
        });
    }

    #[test]
    fn no_more_bells_than_the_limit_are_made_and_those_given_back_serve_again() {
        let bells = Bells::default();
        let mut taken: Vec<_> = (0..BELLS_MAXIMUM).map(|_| bells.take().unwrap()).collect();
        assert!(bells.take().is_none());
        taken.pop();
        assert!(bells.take().is_some());
    }
}
