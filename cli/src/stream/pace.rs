//! When frames are due: as soon as the last is done, or by a schedule.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// What happens to frames that are due while an earlier one is still being worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Drop {
    /// All but the newest are skipped, as a camera would.
    #[default]
    Oldest,
    /// None: every frame is worked on, later and later.
    None,
}

/// The schedule of a run.
#[derive(Debug)]
pub(crate) struct Pace {
    period: Option<Duration>,
    drop: Drop,
    start: Instant,
    next: u32,
    /// Frames whose answer came after the next frame was due.
    pub(crate) late: u64,
    /// Frames that were skipped.
    pub(crate) dropped: u64,
}

impl Pace {
    /// `fps` of 0 or `None`: no schedule.
    pub(crate) fn new(fps: Option<f64>, drop: Drop) -> Result<Self> {
        let period = match fps {
            None => None,
            Some(fps) if (0.001..=1e6).contains(&fps) => Some(Duration::from_secs_f64(1.0 / fps)),
            Some(fps) => bail!("--fps {fps}: expected 0.001 to 1000000"),
        };
        Ok(Pace { period, drop, start: Instant::now(), next: 0, late: 0, dropped: 0 })
    }

    /// Starts the clock: the first frame is due now.
    pub(crate) fn start(&mut self) {
        self.start = Instant::now();
    }

    /// Waits until the next frame is due, with `sleep`, and says when that was. `None`: it is to be skipped, as a
    /// newer one is due already. The last frame of a run has no newer one.
    pub(crate) fn due(&mut self, is_last: bool, sleep: impl FnOnce(Duration)) -> Option<Instant> {
        let Some(period) = self.period else { return Some(Instant::now()) };
        let due = self.at(self.next, period);
        self.next += 1;
        let now = Instant::now();
        if self.drop == Drop::Oldest && !is_last && now >= self.at(self.next, period) {
            self.dropped += 1;
            return None;
        }
        if let Some(wait) = due.checked_duration_since(now) {
            sleep(wait);
        }
        Some(due)
    }

    /// Takes note of when the answer to the last due frame came.
    pub(crate) fn done(&mut self, at: Instant) {
        if let Some(period) = self.period
            && at > self.at(self.next, period)
        {
            self.late += 1;
        }
    }

    fn at(&self, frame: u32, period: Duration) -> Instant {
        self.start + period * frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schedule that started so long ago that its first frames are past.
    fn started_ago(drop: Drop, ago: Duration) -> Pace {
        let mut pace = Pace::new(Some(1.0), drop).unwrap();
        pace.start = Instant::now().checked_sub(ago).unwrap();
        pace
    }

    #[test]
    fn frames_that_are_past_are_skipped_or_worked_on_as_asked() {
        let ago = Duration::from_millis(2_500);
        let mut pace = started_ago(Drop::Oldest, ago);
        assert!(pace.due(false, std::thread::sleep).is_none(), "frame 0 was followed by frame 1");
        assert!(pace.due(false, std::thread::sleep).is_none(), "frame 1 was followed by frame 2");
        let due = pace.due(false, std::thread::sleep).expect("frame 2 is the newest");
        assert_eq!(due, pace.start + Duration::from_secs(2));
        assert_eq!((pace.dropped, pace.late), (2, 0));

        let mut pace = started_ago(Drop::None, ago);
        assert_eq!(pace.due(false, std::thread::sleep), Some(pace.start));
        pace.done(Instant::now());
        assert_eq!((pace.dropped, pace.late), (0, 1));

        let mut pace = started_ago(Drop::Oldest, ago);
        assert_eq!(
            pace.due(true, std::thread::sleep),
            Some(pace.start),
            "after the last frame none is newer"
        );
        assert_eq!(pace.dropped, 0);
    }

    #[test]
    fn rates_are_checked() {
        for fps in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(Pace::new(Some(fps), Drop::Oldest).is_err(), "{fps}");
        }
    }
}
