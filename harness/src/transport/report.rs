//! What a run found: a table for people, an object for programs.

use std::io::Write;

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

use crate::engine::verdict::Spread;
use crate::error::HarnessError;
use crate::machine::Machine;
use crate::transport::case::{Placement, WaitKind};
use crate::transport::checks::Check;

/// A whole run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Rounds that were asked for.
    pub rounds: u32,
    /// Where.
    pub machine: Machine,
    /// One per peer and case.
    pub rows: Vec<Row>,
    /// What must be reached, and what was.
    pub checks: Vec<Check>,
    /// Runs that failed: measured ones were repeated, counts of system calls left out.
    #[serde(skip)]
    pub failures: Vec<String>,
}

/// One peer in one case. Times are medians over the rounds that count, `max_ns` is the longest of
/// all.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The peer, and what sets the case apart from a plain ping-pong.
    pub name: String,
    /// Bytes of a request.
    pub request_bytes: usize,
    /// How both ends wait.
    pub wait: WaitKind,
    /// Where they run.
    pub placement: Placement,
    /// Median round trip.
    pub p50_ns: f64,
    /// 90 %.
    pub p90_ns: f64,
    /// 99 %.
    pub p99_ns: f64,
    /// 99.9 %.
    pub p999_ns: f64,
    /// The longest.
    pub max_ns: f64,
    /// p50 over that of the floor of the same seconds.
    pub ratio_to_floor: Spread,
    /// Round trips per second.
    pub round_trips_per_s: f64,
    /// CPU time of both processes.
    pub cpu_ns_per_round_trip: f64,
    /// System calls of both processes over messages (two per round trip); `None` where they were
    /// not counted.
    pub syscalls_per_message: Option<f64>,
    /// As `ratio_to_floor`, over the rounds in which an end had to share its core with a thread of
    /// somebody else; `None` where there were none, or where that is not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_on_shared_cores: Option<Spread>,
    /// What only the text and the drawings use.
    #[serde(skip)]
    pub more: More,
}

/// What a row has besides the fields of its JSON.
#[derive(Debug, Clone, Default)]
pub struct More {
    /// Rounds that count.
    pub kept: usize,
    /// Rounds that were thrown away.
    pub dropped: usize,
    /// Rounds in which an end had to share its core.
    pub shared: usize,
    /// Whether these do not count; they do where there were too few others.
    pub is_quiet: bool,
    /// The peer's name alone.
    pub peer: &'static str,
    /// How long the server worked on each request.
    pub service_ns: u64,
    /// Time between two requests.
    pub period_ns: u64,
    /// p50 less the service time, over the same of the floor.
    pub overhead_ratio: Option<f64>,
    /// Quantiles and times, for drawing.
    pub curve: Vec<(f64, f64)>,
}

impl Report {
    /// One JSON object.
    ///
    /// # Errors
    /// Writing.
    pub fn write_json(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        serde_json::to_writer(&mut *out, self)?;
        Ok(writeln!(out)?)
    }

    /// A line for each run that failed.
    ///
    /// # Errors
    /// Writing.
    pub fn write_failures(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        for failure in &self.failures {
            writeln!(out, "a run failed: {failure}")?;
        }
        Ok(())
    }

    /// Tables.
    ///
    /// # Errors
    /// Writing.
    pub fn write_text(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        let Machine { processor, cpus, kernel, clock_step_ns, load, keep_awake } = &self.machine;
        writeln!(out, "{processor}, {cpus} CPUs, Linux {kernel}, clock step {clock_step_ns} ns")?;
        writeln!(
            out,
            "{} rounds asked for, peers taking turns; load at the start {load:.2}",
            self.rounds
        )?;
        writeln!(out, "keeping CPUs awake while a burst lives: {keep_awake}")?;
        let dropped: usize = self.rows.iter().map(|row| row.more.dropped).sum();
        let kept: usize = self.rows.iter().map(|row| row.more.kept).sum();
        let quiet = self.rows.iter().filter(|row| row.more.is_quiet);
        let shared: usize = quiet.map(|row| row.more.shared).sum();
        writeln!(
            out,
            "{kept} rounds count, {dropped} were dropped: {} for their floors, {shared} because an end \
             shared its core with somebody else's thread",
            dropped.saturating_sub(shared)
        )?;
        if self.rows.iter().any(|row| !row.more.is_quiet) {
            writeln!(
                out,
                "in rows marked {MARK} such rounds count too, there were too few others"
            )?;
        }
        writeln!(out)?;
        self.write_failures(out)?;
        let mut groups: Vec<(WaitKind, Placement)> = Vec::new();
        for row in &self.rows {
            let group = (row.wait, row.placement);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        for (wait, placement) in groups {
            writeln!(out, "{}, {}", wait.name(), placement.name())?;
            let rows = self.rows.iter().filter(|r| (r.wait, r.placement) == (wait, placement));
            writeln!(out, "{}\n", table(rows))?;
        }
        self.write_checks(out)
    }

    fn write_checks(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        let mut table = new_table(&["what", "value", "must", "reach", ""]);
        for check in &self.checks {
            table.add_row([
                Cell::new(&check.what),
                right(check.value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))),
                right(check.must.to_string()),
                right(check.reach.to_string()),
                Cell::new(check.verdict()),
            ]);
        }
        Ok(writeln!(out, "{table}")?)
    }
}

/// At the rounds of a row that had to count those on shared cores.
const MARK: &str = "*";

/// Rounds that count, with the mark where it belongs, and those that were dropped.
pub(crate) fn rounds(more: &More) -> String {
    let mark = if more.is_quiet { "" } else { MARK };
    match more.dropped {
        0 => format!("{}{mark}", more.kept),
        dropped => format!("{}{mark} (-{dropped})", more.kept),
    }
}

const HEADER: [&str; 13] = [
    "peer",
    "B",
    "p50 : floor",
    "min - max",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "RT/s",
    "CPU/RT",
    "calls/msg",
    "rounds",
];

fn table<'r>(rows: impl Iterator<Item = &'r Row>) -> Table {
    let mut table = new_table(&HEADER);
    for row in rows {
        let Spread { median, min, max } = row.ratio_to_floor;
        let calls = row.syscalls_per_message;
        table.add_row([
            Cell::new(&row.name),
            right(row.request_bytes.to_string()),
            right(format!("{median:.3}")),
            right(format!("{min:.3} - {max:.3}")),
            right(time(row.p50_ns)),
            right(time(row.p90_ns)),
            right(time(row.p99_ns)),
            right(time(row.p999_ns)),
            right(time(row.max_ns)),
            right(format!("{:.0}", row.round_trips_per_s)),
            right(time(row.cpu_ns_per_round_trip)),
            right(calls.map_or_else(|| "-".to_owned(), |calls| format!("{calls:.3}"))),
            right(rounds(&row.more)),
        ]);
    }
    table
}

pub(crate) fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.iter().map(Cell::new));
    table
}

pub(crate) fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_was_not_quiet_is_marked() {
        let rounds = |is_quiet, dropped| {
            super::rounds(&More { kept: 15, dropped, is_quiet, ..More::default() })
        };
        assert_eq!((rounds(true, 0), rounds(true, 3)), ("15".to_owned(), "15 (-3)".to_owned()));
        assert_eq!((rounds(false, 0), rounds(false, 3)), ("15*".to_owned(), "15* (-3)".to_owned()));
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
