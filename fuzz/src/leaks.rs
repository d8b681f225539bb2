//! Whether a stretch of code gave back every descriptor it took.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long threads may take over giving back what nobody uses any more.
const SOON: Duration = Duration::from_secs(20);

static ALONE: AtomicBool = AtomicBool::new(false);

/// From now on targets look for descriptors that are not given back. To be called where no other
/// thread of the process opens or closes any: they would be mistaken for leaks.
pub fn look_for_leaks() {
    // Relaxed: it tells nothing but itself.
    ALONE.store(true, Ordering::Relaxed);
}

/// Asks for the lowest free descriptor: one that stays open moves it up.
#[derive(Debug)]
pub(crate) struct Leaks {
    before: Option<RawFd>,
}

impl Leaks {
    /// Looks before anything was taken.
    pub(crate) fn watch() -> Leaks {
        Leaks { before: ALONE.load(Ordering::Relaxed).then(lowest_free).flatten() }
    }

    /// Looks again.
    pub(crate) fn check(&self) {
        if let Some(before) = self.before {
            assert_eq!(lowest_free(), Some(before), "a descriptor was kept");
        }
    }

    /// The same where threads may be about to give something back.
    pub(crate) fn check_soon(&self) {
        let begun = Instant::now();
        while self.before.is_some() && lowest_free() != self.before && begun.elapsed() < SOON {
            std::thread::yield_now();
        }
        self.check();
    }
}

fn lowest_free() -> Option<RawFd> {
    let other: OwnedFd = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 3).ok()?;
    Some(other.as_raw_fd())
}
