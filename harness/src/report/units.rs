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

/// A number with its noun, in the plural where need be.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// So many KiB as MiB with a tenth.
#[must_use]
pub fn mib(kib: u64) -> String {
    let tenths = kib.saturating_mul(10).saturating_add(512) / 1024;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_thing_is_no_plural() {
        let said =
            [counted(1, "frame"), counted(0, "frame"), counted(2, "retry"), counted(1, "retry")];
        assert_eq!(said, ["1 frame", "0 frames", "2 retries", "1 retry"]);
    }

    #[test]
    fn memory_is_read_in_mib_with_a_tenth() {
        let said = [0, 51, 52, 2048, 30_771, 1 << 20].map(mib);
        assert_eq!(said, ["0.0 MiB", "0.0 MiB", "0.1 MiB", "2.0 MiB", "30.0 MiB", "1024.0 MiB"]);
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
