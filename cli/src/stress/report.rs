//! What became of every test: lines, page and JSON.

use std::path::Path;

use burst_harness::machine::Machine;
use burst_harness::report::{Cell, Column, Page, Table, dash};
use serde::Serialize;

use super::outcome::Outcome;
use super::tally::Tally;
use crate::out;

/// What became of every test.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) minutes: f64,
    pub(super) succeeded: usize,
    pub(super) tests: Vec<Row>,
}

/// What became of one.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) test: &'static str,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    pub(super) seed: u64,
    pub(super) seconds: f64,
    /// How often workers got on.
    pub(super) steps: u64,
    /// Processes that were killed on purpose.
    pub(super) killed: u64,
    /// What happened, and how often.
    pub(super) counts: Tally,
    /// The command that repeats it.
    pub(super) repeat: String,
}

impl Row {
    /// The row for people: one line, and more where something is wrong.
    pub(super) fn text(&self) -> String {
        let Row { test, outcome, seconds, steps, killed, repeat, .. } = self;
        let killed = if *killed == 0 { String::new() } else { format!(", {killed} killed") };
        let mut line = format!(
            "{:<8} {test}: {} in {seconds:.1} s{killed}",
            outcome.verdict.word(),
            out::counted(*steps, "step")
        );
        if let Some(what) = &outcome.what {
            line += &format!("\n         {what}\n         repeat: {repeat}");
        }
        line
    }
}

impl Report {
    pub(super) fn page(&self) -> String {
        let how = format!("{} minutes in all, seed {}.", self.minutes, self.seed);
        let mut page = Page::new("Crash tests", "Crash tests", &Machine::detect(), &how);
        let words = ["test", "outcome", "what", "process", "signal"].map(Column::text);
        let numbers = ["seed", "steps", "seconds", "killed"].map(Column::number);
        let mut table = Table::new(words.into_iter().chain(numbers).collect());
        for row in &self.tests {
            let word = |text: &Option<String>| Cell::from(text.clone().unwrap_or_else(dash));
            let Outcome { verdict, what, process, signal } = &row.outcome;
            table.add([
                Cell::from(row.test.to_owned()),
                Cell::judged(verdict.word(), Some(row.outcome.is_success())),
                word(what),
                word(process),
                word(signal),
                Cell::from(row.seed.to_string()),
                Cell::from(row.steps.to_string()),
                Cell::from(format!("{:.1}", row.seconds)),
                Cell::from(row.killed.to_string()),
            ]);
        }
        page.table(&table);
        page.heading("What happened");
        let happened = |row: &Row| format!("{}: {}", row.test, row.counts.text());
        page.list(&self.tests.iter().map(happened).collect::<Vec<_>>());
        page.heading("To repeat a test");
        page.list(&self.tests.iter().map(|row| row.repeat.clone()).collect::<Vec<_>>());
        page.finish()
    }
}

/// The command that repeats a test as it was run here.
pub(super) fn repeat(
    test: &str,
    seed: u64,
    minutes: f64,
    patience: u64,
    devices: &[String],
    service: Option<&Path>,
) -> String {
    let mut words = vec![format!("burst stress --test {test} --seed {seed}")];
    words.push(format!("--minutes {minutes} --patience {patience}"));
    if !devices.is_empty() {
        words.push(format!("--device {}", quoted(&devices.join(","))));
    }
    if let Some(service) = service {
        words.push(format!("--service {}", quoted(&service.display().to_string())));
    }
    words.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_a_test_has_all_that_it_was_given_and_a_shell_takes_it() {
        let plain = repeat("mixed", 7, 0.5, 30, &[], None);
        assert_eq!(plain, "burst stress --test mixed --seed 7 --minutes 0.5 --patience 30");
        let service = Path::new("/opt/my driver's/serve");
        let devices = ["cpu", "cpu-quant"].map(str::to_owned);
        let all = repeat("mixed", 7, 0.5, 30, &devices, Some(service));
        let rest = r" --device cpu,cpu-quant --service '/opt/my driver'\''s/serve'";
        assert_eq!(all, plain + rest);
    }
}
