//! Where an axis is marked, and what the marks are called.

use super::units::{nines, time};

/// A mark.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Its value.
    pub(super) at: f64,
    /// What it is called.
    pub(super) name: String,
}

/// First digits of marks, from the coarsest choice to the finest.
const DIGITS: [&[f64]; 4] =
    [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0], &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0]];
/// So many marks are enough.
const ENOUGH: usize = 3;

/// Quantiles in nines: p50 is one, and each further nine.
pub(super) fn shares(range: (f64, f64)) -> Vec<Tick> {
    let all = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.999_99];
    let names = ["min", "p50", "p90", "p99", "p99.9", "p99.99", "p99.999"];
    let ticks =
        all.iter().zip(names).map(|(q, name)| Tick { at: nines(*q), name: name.to_owned() });
    ticks.filter(|tick| within(tick.at, range)).collect()
}

/// Times in nanoseconds on a logarithmic axis.
pub(super) fn times(range: (f64, f64)) -> Vec<Tick> {
    let named = |at| Tick { at, name: time(at).replace(".00 ", " ").replace(".0 ", " ") };
    round(range).into_iter().map(named).collect()
}

/// Numbers per second on a logarithmic axis.
pub(super) fn rates(range: (f64, f64)) -> Vec<Tick> {
    let named = |at: f64| {
        let (value, unit) = match at {
            at if at < 1e3 => (at, ""),
            at if at < 1e6 => (at / 1e3, " k"),
            at if at < 1e9 => (at / 1e6, " M"),
            at => (at / 1e9, " G"),
        };
        Tick { at, name: plain(value) + unit }
    };
    round(range).into_iter().map(named).collect()
}

/// Numbers of which the axis has the logarithms.
pub(super) fn decades(range: (f64, f64)) -> Vec<Tick> {
    let numbers = round((10_f64.powf(range.0), 10_f64.powf(range.1)));
    numbers.into_iter().map(|number| Tick { at: number.log10(), name: plain(number) }).collect()
}

/// Numbers: steps of 1, 2 or 5 times a power of ten, about six of them.
pub(super) fn numbers(range: (f64, f64)) -> Vec<Tick> {
    let rough = (range.1 - range.0) / 6.0;
    if rough.is_nan() || rough <= 0.0 {
        return Vec::new();
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let first = (range.0 / step).ceil();
    let all = (0..20).map(|count| (first + f64::from(count)) * step);
    let ticks = all.map(|at| Tick { at, name: plain(at) });
    ticks.filter(|tick| within(tick.at, range)).collect()
}

/// Round numbers of a logarithmic axis: as coarse as still gives enough of them.
fn round(range: (f64, f64)) -> Vec<f64> {
    let mut found = Vec::new();
    for digits in DIGITS {
        found = with(digits, range);
        if found.len() >= ENOUGH {
            break;
        }
    }
    if found.len() >= 2 {
        return found;
    }
    // Less than from one digit to the next: as on an axis that is not logarithmic.
    numbers(range).into_iter().map(|tick| tick.at).collect()
}

fn with(digits: &[f64], range: (f64, f64)) -> Vec<f64> {
    let mut found = Vec::new();
    let mut power = 10_f64.powf(range.0.max(1e-9).log10().floor());
    while power <= range.1 {
        found.extend(digits.iter().map(|digit| digit * power).filter(|at| within(*at, range)));
        power *= 10.0;
    }
    found
}

fn within(value: f64, (low, high): (f64, f64)) -> bool {
    let room = (high - low) * 1e-9;
    (low - room..=high + room).contains(&value)
}

/// A number without digits that say nothing.
fn plain(number: f64) -> String {
    let text = format!("{number:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().map(|tick| tick.name).collect()
    }

    #[test]
    fn quantiles_that_people_speak_of_are_marked() {
        assert_eq!(names(shares((0.0, 3.2))), ["min", "p50", "p90", "p99", "p99.9"]);
        assert_eq!(names(shares((0.3, 1.9))), ["p50", "p90"]);
    }

    #[test]
    fn times_have_as_many_marks_as_there_is_room_for() {
        assert_eq!(names(times((80.0, 2e6))), ["100 ns", "1 us", "10 us", "100 us", "1 ms"]);
        assert_eq!(names(times((900.0, 40e3))), ["1 us", "3 us", "10 us", "30 us"]);
        assert_eq!(names(times((900.0, 9e3))), ["1 us", "2 us", "5 us"].to_vec());
        assert_eq!(names(times((101e3, 119e3))), ["105 us", "110 us", "115 us"]);
    }

    #[test]
    fn rates_are_marked_with_their_thousands() {
        assert_eq!(names(rates((8e8, 3e11))), ["1 G", "10 G", "100 G"]);
        assert_eq!(names(rates((0.5, 2e4))), ["1", "10", "100", "1 k", "10 k"]);
    }

    #[test]
    fn numbers_are_marked_in_round_steps() {
        assert_eq!(names(numbers((0.0, 1000.0))), ["0", "200", "400", "600", "800", "1000"]);
        assert_eq!(names(numbers((1.0, 3.0))), ["1", "1.5", "2", "2.5", "3"]);
        assert_eq!(names(decades((1.0, 5.0))), ["10", "100", "1000", "10000", "100000"]);
        assert!(numbers((1.0, 1.0)).is_empty());
    }
}
