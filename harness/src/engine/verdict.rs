//! Which rounds count, and what is said about those that do.
//!
//! Machines have moods: the host moves a virtual CPU away and every line takes four times as long,
//! or a poll loop falls into step with its line and is twice as fast for a while. A ratio means
//! something only where the floor was the same right before and right after the peer. So a round is
//! three runs (floor, peer, floor), and it is thrown away where the floors tell that the mood
//! changed.

use serde::{Deserialize, Serialize};

/// Floors of one round may differ by so much.
pub const FLOORS_APART_MAX: f64 = 0.15;
/// A floor below so much of the run's median floor is another mode of the machine.
pub const FLOOR_TOO_FAST: f64 = 0.6;

/// What becomes of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts.
    Keep,
    /// The machine changed while it ran.
    FloorsDisagree,
    /// The floor ran in its fast mode, in which most runs are not.
    FloorTooFast,
    /// An end of the peer had a part of its core only. Counts where too few others do.
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

/// Median and range of something measured once per round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Half of the rounds had less.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// `None` without values.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Some(Spread { median: median_of(&values)?, min: *values.first()?, max: *values.last()? })
    }
}

/// The median; of an even number of values the mean of the two in the middle.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

fn median_of(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(sorted.len() / 2 - 1)?, upper))
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

    #[test]
    fn medians_and_ranges() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0]), Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0, 2.0]).map(|s| s.median), Some(2.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).map(|s| s.median), Some(2.5));
    }
}
