//! How often what happened in a test: workers tell it, each what is new, and who watches sums it up.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

/// Different things of one test that are counted at most: names of devices are the service's.
const NAMES_MAX: usize = 200;
/// Longest name.
const NAME_MAX: usize = 60;

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Tally(BTreeMap<String, u64>);

impl Tally {
    /// It happened so often more. Names that are new when there are too many are left out.
    pub(super) fn add(&mut self, name: &str, count: u64) {
        let name: String = name.chars().take(NAME_MAX).map(plain).collect();
        if self.0.len() < NAMES_MAX || self.0.contains_key(&name) {
            *self.0.entry(name).or_default() += count;
        }
    }

    pub(super) fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// What is known of, and has not happened.
    pub(super) fn without(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name.as_str())
    }

    /// Everything, in one line of words; and begins anew.
    pub(super) fn take_line(&mut self) -> String {
        let mut line = String::new();
        for (name, count) in std::mem::take(&mut self.0) {
            let _ = write!(line, " {name}={count}");
        }
        line
    }

    /// Adds what such a line says.
    pub(super) fn add_line(&mut self, line: &str) {
        let words = line.split_whitespace().filter_map(|word| word.split_once('='));
        for (name, count) in words {
            self.add(name, count.parse().unwrap_or(0));
        }
    }

    /// For people: what is counted with its count, the names in words.
    pub(super) fn text(&self) -> String {
        let word = |(name, count): (&String, &u64)| format!("{count} {}", name.replace('_', " "));
        self.0.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

/// Whatever a name is made of, it is one word of a line.
fn plain(c: char) -> char {
    if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_') { c } else { '_' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_tells_another_sums_up() {
        let (mut told, mut heard) = (Tally::default(), Tally::default());
        told.add("answers", 2);
        told.add("on:a device=1\nstep", 1);
        heard.add_line(&told.take_line());
        assert_eq!(told, Tally::default(), "each is told once");
        told.add("answers", 1);
        heard.add_line(&told.take_line());
        assert_eq!((heard.of("answers"), heard.of("on:a_device_1_step")), (3, 1));
        assert_eq!(heard.text(), "3 answers, 1 on:a device 1 step");
    }

    #[test]
    fn names_are_bounded_in_number_and_length() {
        let mut tally = Tally::default();
        tally.add("first", 1);
        for n in 0..2 * NAMES_MAX {
            tally.add(&format!("{n}{}", "x".repeat(1000)), 1);
        }
        tally.add("first", 1);
        assert_eq!((tally.0.len(), tally.of("first")), (NAMES_MAX, 2));
        assert!(tally.0.keys().all(|name| name.len() <= NAME_MAX));
    }
}
