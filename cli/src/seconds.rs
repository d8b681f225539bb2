//! Times that are given in seconds.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};

/// The time that an option was given.
pub(crate) fn seconds(option: &str, seconds: f64) -> Result<Duration> {
    // In `{:?}` large numbers have an exponent, not hundreds of digits.
    let said = seconds.to_string();
    let said = if said.len() > 20 { format!("{seconds:?}") } else { said };
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| anyhow!("{option} {said} is no number of seconds, from 0 on"))
}

/// The same of a time that something has to fit into.
pub(crate) fn time(option: &str, given: f64) -> Result<Duration> {
    let time = seconds(option, given)?;
    if time.is_zero() {
        bail!("{option} {given}: nothing is done in no time");
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_is_told_in_a_few_characters() {
        assert_eq!(seconds("--grace", 0.5).unwrap(), Duration::from_millis(500));
        let told = |value| seconds("--grace", value).unwrap_err().to_string();
        assert_eq!(told(-1.0), "--grace -1 is no number of seconds, from 0 on");
        assert_eq!(told(1e300), "--grace 1e300 is no number of seconds, from 0 on");
        assert_eq!(told(f64::NAN), "--grace NaN is no number of seconds, from 0 on");
        assert_eq!(time("--deadline", 0.5).unwrap(), Duration::from_millis(500));
        let told = time("--deadline", 0.0).unwrap_err().to_string();
        assert_eq!(told, "--deadline 0: nothing is done in no time");
    }
}
