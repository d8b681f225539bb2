//! Which rounds count.
//!
//! A machine does not run at one speed: the host moves a virtual CPU away and every cache line takes
//! four times as long, or a poll loop falls into step with its line and is twice as fast for a while.
//! A ratio to a floor means something only where the floor took the same time right before and right
//! after the subject. So a round with a floor is three trials (floor, subject, floor), and it does not
//! count where the floors show that the machine changed in between.

/// The floors of one round may differ by this part of the smaller one.
pub const FLOORS_APART_MAX: f64 = 0.15;
/// A floor below this part of the run's median floor shows the machine in a mode that is not its usual one.
pub const FLOOR_TOO_FAST: f64 = 0.6;

/// What becomes of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts.
    Keep,
    /// The machine changed while the subject ran.
    FloorsDisagree,
    /// The floor ran in its fast mode, in which most runs are not.
    FloorTooFast,
    /// An end of the subject shared its core with a thread of somebody else. Counts where too few
    /// other rounds do.
    CoreShared,
}

/// Judges a round by its two floors, the median of all floors of its kind in this run, and whether an
/// end had to share its core.
#[must_use]
pub fn judge([before, after]: [f64; 2], median_floor: f64, core_shared: bool) -> Verdict {
    let (less, more) = (before.min(after), before.max(after));
    // `min` and `max` skip a NaN; a floor that was not measured agrees with nothing.
    let measured = before > 0.0 && after > 0.0;
    if !measured || more > less * (1.0 + FLOORS_APART_MAX) {
        return Verdict::FloorsDisagree;
    }
    if f64::midpoint(before, after) < median_floor * FLOOR_TOO_FAST {
        return Verdict::FloorTooFast;
    }
    if core_shared {
        return Verdict::CoreShared;
    }
    Verdict::Keep
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_counts_only_between_floors_that_agree_and_are_usual() {
        use Verdict::{FloorTooFast, FloorsDisagree, Keep};
        for (floors, median, expected, why) in [
            ([120.0, 120.0], 120.0, Keep, "the same"),
            ([120.0, 137.0], 120.0, Keep, "14 % apart"),
            ([137.0, 120.0], 120.0, Keep, "either way round"),
            ([120.0, 139.0], 120.0, FloorsDisagree, "16 % apart"),
            ([139.0, 120.0], 120.0, FloorsDisagree, "either way round"),
            ([540.0, 120.0], 120.0, FloorsDisagree, "the host moved a CPU"),
            ([540.0, 545.0], 120.0, Keep, "far away, but all the time"),
            ([48.0, 50.0], 120.0, FloorTooFast, "the fast mode of the poll loop"),
            ([73.0, 73.0], 120.0, Keep, "0.61 of the median"),
            ([71.0, 71.0], 120.0, FloorTooFast, "0.59 of the median"),
            ([50.0, 120.0], 120.0, FloorsDisagree, "both faults: the first one is named"),
            ([0.0, 0.0], 120.0, FloorsDisagree, "no floor at all"),
            ([f64::NAN, 120.0], 120.0, FloorsDisagree, "nothing measured"),
        ] {
            assert_eq!(judge(floors, median, false), expected, "{floors:?} of {median}: {why}");
        }
    }
}
