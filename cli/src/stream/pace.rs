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
    /// The next frame had to be waited for: there is no newer one that it could be skipped for.
    is_newest: bool,
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
        Ok(Pace {
            period,
            drop,
            start: Instant::now(),
            next: 0,
            is_newest: false,
            late: 0,
            dropped: 0,
        })
    }

    /// No schedule, whatever was asked for: frames come as they come.
    pub(crate) fn without_schedule(self) -> Self {
        Pace { period: None, ..self }
    }

    /// Takes note of how long the source took for the next frame. Frames are skipped where the driver does not keep up; what the
    /// source takes beyond the schedule is not the driver's, and moves the schedule. Where frames come by themselves, one
    /// that had to be waited for as long as a period is the newest there is, whatever was missed before.
    pub(crate) fn source_took(&mut self, asked: Instant, came: Instant, by_itself: bool) {
        let Some(period) = self.period else { return };
        let due = self.at(self.next, period);
        if came <= due {
            return;
        }
        self.is_newest = by_itself && came.duration_since(asked) >= period;
        self.start += came - if self.is_newest { due } else { due.max(asked) };
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
        let is_newest = std::mem::take(&mut self.is_newest) || is_last;
        if self.drop == Drop::Oldest && !is_newest && now >= self.at(self.next, period) {
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

    /// A schedule of one frame per second at its beginning, and moments after that.
    fn begun() -> (Pace, impl Fn(u64) -> Instant) {
        let pace = started_ago(Drop::Oldest, Duration::from_secs(100));
        let start = pace.start;
        (pace, move |millis| start + Duration::from_millis(millis))
    }

    #[test]
    fn what_the_source_takes_is_not_held_against_the_driver() {
        // A picture takes 40 periods to read, the driver next to nothing: each is due when it is there.
        let (mut pace, at) = begun();
        pace.source_took(at(0), at(40_000), false);
        assert_eq!(pace.at(0, Duration::from_secs(1)), at(40_000));
        // The driver was late by two and a half periods; reading took half of one.
        let (mut pace, at) = begun();
        pace.next = 1;
        pace.source_took(at(3_500), at(4_000), false);
        assert_eq!(pace.at(1, Duration::from_secs(1)), at(1_500), "still late by as much");
        // The source was in time.
        let (mut pace, at) = begun();
        pace.next = 1;
        pace.source_took(at(100), at(900), true);
        assert_eq!(pace.at(1, Duration::from_secs(1)), at(1_000));
    }

    #[test]
    fn a_frame_that_had_to_be_waited_for_is_the_newest_there_is() {
        let (mut pace, at) = begun();
        pace.next = 1;
        pace.source_took(at(50_000), at(51_000), true);
        assert_eq!(pace.at(1, Duration::from_secs(1)), at(51_000), "due when it came");
        let due = pace.due(false, |_| panic!("it is past"));
        assert_eq!(due, Some(at(51_000)), "not skipped, however much later that is");
        let (mut pace, at) = begun();
        pace.next = 1;
        pace.source_took(at(50_000), at(50_999), true);
        assert_eq!(pace.at(1, Duration::from_secs(1)), at(1_999), "one of those that piled up");
    }

    #[test]
    fn rates_are_checked() {
        for fps in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(Pace::new(Some(fps), Drop::Oldest).is_err(), "{fps}");
        }
    }
}
