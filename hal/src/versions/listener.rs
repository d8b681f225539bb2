//! Who is told of what is lost: the log, and whoever asked for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::loss::Loss;
use crate::log_tags::DRIVER;
use crate::{ErrorStatus, Failure, HalVersion};

/// Told of each loss between a caller and one driver. Copies are one listener.
#[derive(Clone)]
pub(super) struct Listener(Arc<Inner>);

struct Inner {
    /// The driver's name.
    driver: String,
    listen: Option<Box<Listening>>,
    /// The kinds that were logged as warnings, one bit each.
    warned: AtomicU32,
}

/// Is told of each loss.
type Listening = dyn Fn(&Loss) + Send + Sync;

impl Listener {
    /// The log alone.
    pub(super) fn new(driver: &str) -> Self {
        Listener::with(driver, None)
    }

    /// The log, and this function.
    pub(super) fn calling(driver: &str, listen: impl Fn(&Loss) + Send + Sync + 'static) -> Self {
        Listener::with(driver, Some(Box::new(listen)))
    }

    fn with(driver: &str, listen: Option<Box<Listening>>) -> Self {
        let (driver, warned) = (driver.to_owned(), AtomicU32::new(0));
        Listener(Arc::new(Inner { driver, listen, warned }))
    }

    /// Tells of what was lost. The first loss of each kind is a warning; as most come back with every
    /// request, the others are for who switches on the tag `driver`.
    pub(super) fn tell(&self, losses: &[Loss]) {
        let Inner { driver, listen, warned } = &*self.0;
        for loss in losses {
            let kind = 1 << loss.kind();
            // Relaxed: it tells nothing but itself.
            match warned.fetch_or(kind, Ordering::Relaxed) & kind {
                0 => {
                    tracing::warn!(target: DRIVER, driver, %loss, "lost on the way to an older version")
                }
                _ => {
                    tracing::debug!(target: DRIVER, driver, %loss, "lost on the way to an older version")
                }
            }
            if let Some(listen) = listen {
                listen(loss);
            }
        }
    }

    /// What a caller of this version is told in place of a status, and tells of what is lost.
    pub(super) fn status(&self, status: ErrorStatus, version: HalVersion) -> ErrorStatus {
        let told = status.for_version(version);
        if told != status {
            self.tell(&[Loss::Status(status)]);
        }
        told
    }

    /// The same of a failure, whose cause stays.
    pub(super) fn failure(&self, failure: Failure, version: HalVersion) -> Failure {
        Failure { status: self.status(failure.status, version), ..failure }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.listen.is_some() { "Listener" } else { "nobody" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::events;

    #[test]
    fn what_is_lost_is_logged_once_as_a_warning_and_then_with_its_tag() {
        let listener = Listener::new("old");
        let lost = events(|| {
            for _ in 0..2 {
                listener.tell(&[Loss::Deadline, Loss::LoopTimeout]);
            }
            listener.clone().tell(&[Loss::Deadline]);
        });
        let text = "nn::driver lost on the way to an older version driver=\"old\"";
        let deadline = format!("{text} loss=the deadline, once the call has begun");
        let timeout = format!("{text} loss=the time-out of loops");
        let want = [
            format!("WARN {deadline}"),
            format!("WARN {timeout}"),
            format!("DEBUG {deadline}"),
            format!("DEBUG {timeout}"),
            format!("DEBUG {deadline}"),
        ];
        assert_eq!(lost, want);
        // Another driver's losses are its own.
        let other = events(|| Listener::new("other").tell(&[Loss::Deadline]));
        assert!(other[0].starts_with("WARN "), "{other:?}");
    }

    #[test]
    fn a_status_of_1_3_is_lost_before_and_logged() {
        let listener = Listener::new("old");
        let (old, new) = (HalVersion::V1_2, HalVersion::V1_3);
        let status = ErrorStatus::ResourceExhaustedTransient;
        let lost = events(|| {
            assert_eq!(listener.status(status, new), status);
            assert_eq!(listener.status(ErrorStatus::InvalidArgument, old).code(), 4);
        });
        assert!(lost.is_empty(), "{lost:?}");
        let lost = events(|| {
            let failure = listener.failure(Failure::new(status, "full"), old);
            assert_eq!(failure.to_string(), "GENERAL_FAILURE: full");
        });
        assert!(lost[0].ends_with("loss=the status RESOURCE_EXHAUSTED_TRANSIENT"), "{lost:?}");
    }
}
