//! A report for people.

use std::io::{Result, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use burst_verify::Report;
use comfy_table::{CellAlignment, Table};
use indicatif::ProgressBar;

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
        bar.set_message(format!("{tests} tests, {failed} failed"));
        bar.inc(1);
    }
}

pub(super) fn write(out: &mut impl Write, report: &Report, took: Duration) -> Result<()> {
    writeln!(out, "{}", per_operation(report))?;
    for failure in report.failures.iter().take(MAX_FAILURES) {
        let burst_verify::Finding { test, suite, mode, what } = failure;
        writeln!(out, "{test} ({suite}, {mode}): {what}")?;
    }
    if let Some(more) = report.failures.len().checked_sub(MAX_FAILURES).filter(|more| *more > 0) {
        writeln!(out, "and {more} more; --json says all")?;
    }
    for (suite, modes) in &report.per_suite {
        let counts: Vec<String> =
            modes.iter().map(|(mode, count)| describe(mode, *count)).collect();
        writeln!(out, "{suite:<22} {}", counts.join(", "))?;
    }
    writeln!(
        out,
        "{} tests: {} passed, {} failed, {} skipped; {} executions in {:.1} s",
        report.tests,
        report.passed,
        report.failed,
        report.skipped,
        report.executions,
        took.as_secs_f64()
    )
}

fn describe(mode: &str, count: u64) -> String {
    match mode {
        "model" => format!("{count} broken models refused"),
        mode => format!("{count} executions {mode}"),
    }
}

fn per_operation(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header(["operation", "passed", "failed", "skipped"]);
    for (op, tally) in &report.per_op {
        let counts = [tally.passed, tally.failed, tally.skipped].map(|count| count.to_string());
        let [passed, failed, skipped] = counts;
        table.add_row([op.clone(), passed, failed, skipped]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
