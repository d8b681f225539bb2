//! Median and range of what is measured once per round.

use serde::{Deserialize, Serialize};

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

    /// The ratio of each pair, the first over the second: one pair per round, so that a change of the
    /// machine from round to round acts on both. `None` without pairs.
    #[must_use]
    pub fn of_ratios(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Spread> {
        Spread::of(pairs.into_iter().map(|(value, base)| value / base))
    }

    /// The median with the range in brackets.
    #[must_use]
    pub fn text(&self, digits: usize) -> String {
        let Spread { median, min, max } = self;
        format!("{median:.digits$} ({min:.digits$} - {max:.digits$})")
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
    fn medians_and_ranges() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0]), Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0, 2.0]).map(|s| s.median), Some(2.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).map(|s| s.median), Some(2.5));
    }

    #[test]
    fn a_ratio_is_taken_within_each_pair() {
        // Of the medians it would be 2.0; every pair says otherwise.
        let ratios = Spread::of_ratios([(2.0, 2.0), (4.0, 1.0), (9.0, 2.0)]);
        assert_eq!(ratios, Some(Spread { median: 4.0, min: 1.0, max: 4.5 }));
        assert_eq!(ratios.map(|spread| spread.text(2)).as_deref(), Some("4.00 (1.00 - 4.50)"));
        assert_eq!(Spread::of_ratios([]), None);
    }
}
