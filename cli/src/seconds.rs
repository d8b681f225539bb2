//! Times that are given in seconds.

use std::time::Duration;

use anyhow::{Context, Result};

/// The time that an option was given.
pub(crate) fn seconds(option: &str, seconds: f64) -> Result<Duration> {
    // In `{:?}` large numbers have an exponent, not hundreds of digits.
    let said = seconds.to_string();
    let said = if said.len() > 20 { format!("{seconds:?}") } else { said };
    Duration::try_from_secs_f64(seconds)
        .with_context(|| format!("{option} {said} is no number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_is_told_in_a_few_characters() {
        assert_eq!(seconds("--grace", 0.5).unwrap(), Duration::from_millis(500));
        let told = |value| seconds("--grace", value).unwrap_err().to_string();
        assert_eq!(told(-1.0), "--grace -1 is no number of seconds");
        assert_eq!(told(1e300), "--grace 1e300 is no number of seconds");
        assert_eq!(told(f64::NAN), "--grace NaN is no number of seconds");
    }
}
