//! How numbers are written.

/// A time with three digits.
#[must_use]
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    match value {
        // Clocks know no hundredths of a nanosecond.
        value if value < 10.0 && unit == "ns" => format!("{value:.1} ns"),
        value if value < 10.0 => format!("{value:.2} {unit}"),
        value if value < 100.0 && unit != "ns" => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

/// What stands where a value is missing.
#[must_use]
pub fn dash() -> String {
    "-".to_owned()
}

/// Quantiles as nines: 0.9 is one, 0.999 is three, so that the tail is as wide as the middle.
#[must_use]
pub fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// A quantile in nines as a percentage, with as many digits as tell it from its neighbours.
#[must_use]
pub fn nines_label(nines: &f64) -> String {
    let share = 100.0 * (1.0 - 10_f64.powf(-nines));
    let digits = (1_u8..).take_while(|digit| f64::from(*digit) < *nines).count();
    let text = format!("{share:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.to_owned() + "%"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_are_written_as_percentages() {
        let labels = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0].map(|nines| nines_label(&nines));
        assert_eq!(labels, ["0%", "68%", "90%", "96.8%", "99%", "99.68%", "99.9%", "99.99%"]);
    }

    #[test]
    fn times_have_three_digits_and_the_unit_they_are_read_in() {
        for (ns, expected) in [
            (1.25, "1.2 ns"),
            (42.0, "42 ns"),
            (999.0, "999 ns"),
            (1234.0, "1.23 us"),
            (56_780.0, "56.8 us"),
            (432_100.0, "432 us"),
            (8_125_434.0, "8.13 ms"),
            (84_855_690.0, "84.9 ms"),
            (1.5e9, "1.50 s"),
        ] {
            assert_eq!(time(ns), expected);
        }
    }
}
