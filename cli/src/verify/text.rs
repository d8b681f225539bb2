//! A report for people.

use std::io::{Result, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use burst_harness::report::{Column, Table};
use burst_verify::Report;
use indicatif::ProgressBar;

use crate::out::{columns, counted};

/// Failures that are written out; all of them are in the JSON object.
const MAX_FAILURES: usize = 40;

/// Counts of the live line.
#[derive(Default)]
pub(super) struct Live {
    tests: AtomicU64,
    failed: AtomicU64,
}

impl Live {
    /// Takes note of a file that is done.
    pub(super) fn advance(&self, bar: &ProgressBar, tests: u64, failed: u64) {
        let tests = self.tests.fetch_add(tests, Ordering::Relaxed) + tests;
        let failed = self.failed.fetch_add(failed, Ordering::Relaxed) + failed;
        bar.set_message(format!("{}, {failed} failed", counted(tests, "test")));
        bar.inc(1);
    }
}

pub(super) fn write(out: &mut impl Write, report: &Report, took: Duration) -> Result<()> {
    writeln!(out, "{}", per_operation(report).fitted(columns()))?;
    for failure in report.failures.iter().take(MAX_FAILURES) {
        let burst_verify::Finding { test, suite, mode, what } = failure;
        writeln!(out, "{test} ({suite}, {mode}): {what}")?;
    }
    if let Some(more) = report.failures.len().checked_sub(MAX_FAILURES).filter(|more| *more > 0) {
        writeln!(out, "and {more} more; --json says all")?;
    }
    writeln!(out, "{}", per_suite(report).fitted(columns()))?;
    for (rule, why) in &report.left_out {
        writeln!(out, "left out {} x {rule}: {why}", left_out(report, rule))?;
    }
    writeln!(
        out,
        "{}: {} passed, {} failed, {} skipped; {} in {:.1} s",
        counted(report.tests, "test"),
        report.passed,
        report.failed,
        report.skipped,
        counted(report.executions, "execution"),
        took.as_secs_f64()
    )
}

/// How often something was left out by a rule, over all suites and modes.
fn left_out(report: &Report, rule: &str) -> u64 {
    let cells = report.per_suite.values().flat_map(|suite| suite.modes.values().flatten());
    cells.filter_map(|cell| cell.left_out.get(rule)).sum()
}

/// Executions per suite and mode; a dash where the suite has no such mode. Under `model` what was refused
/// or prepared without being executed.
fn per_suite(report: &Report) -> Table {
    let modes: Vec<&str> = report
        .per_suite
        .values()
        .next()
        .map_or(Vec::new(), |one| one.modes.keys().copied().collect());
    let numbers = ["tests"].into_iter().chain(modes.iter().copied()).map(Column::number);
    let mut table = Table::new([Column::text("suite")].into_iter().chain(numbers).collect());
    for (suite, counts) in &report.per_suite {
        let cell = |mode: &&str| match counts.modes.get(*mode) {
            Some(Some(cell)) => cell.executions.to_string(),
            _ => "-".to_owned(),
        };
        let row = [(*suite).to_owned(), counts.tests.to_string()].into_iter();
        table.add(row.chain(modes.iter().map(cell)));
    }
    table
}

fn per_operation(report: &Report) -> Table {
    let numbers = ["passed", "failed", "skipped"].map(Column::number);
    let mut table = Table::new([&[Column::text("operation")][..], &numbers].concat());
    for (op, tally) in &report.per_op {
        let counts = [tally.passed, tally.failed, tally.skipped].map(|count| count.to_string());
        let [passed, failed, skipped] = counts;
        table.add([op.clone(), passed, failed, skipped]);
    }
    table
}
