//! When something was measured, by which version and which command.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Now, in UTC: `2026-11-23 21:54:07 UTC`.
pub(crate) fn now() -> String {
    utc(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// The time so long after the beginning of 1970.
fn utc(since: Duration) -> String {
    let seconds = since.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month and day so many days after the beginning of 1970, in the calendar of Gregory.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

/// The command line of this process, as a shell would take it.
pub(crate) fn command() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let mut words: Vec<String> = words.map(|word| quoted(&word)).collect();
    if let Some(program) = words.first_mut()
        && let Some((_, name)) = program.rsplit_once('/')
    {
        *program = name.to_owned(); // where it lies says nothing of what was measured
    }
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, want) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_078_012_800, "2004-02-29 00:00:00 UTC"),
            (1_798_761_599, "2026-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(Duration::from_secs(seconds)), want);
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let said = ["--rounds", "a b", "it's", ""].map(quoted);
        assert_eq!(said, ["--rounds", "'a b'", "'it'\\''s'", "''"]);
    }
}
