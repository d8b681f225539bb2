//! What was found, for people.

use std::io::Write;

use comfy_table::{Cell, Table};

use super::report::{ModelReport, OperationRow, PathReport, Report, paths};
use crate::engine::verdict::Spread;
use crate::error::HarnessError;
use crate::transport::report::{new_table, right, time};

/// One line and tables per model; a table of all models where there are several.
///
/// # Errors
/// Writing.
pub fn write_text(report: &Report, out: &mut impl Write) -> Result<(), HarnessError> {
    let machine = &report.machine;
    writeln!(out, "{}, {} CPUs, Linux {}", machine.processor, machine.cpus, machine.kernel)?;
    writeln!(
        out,
        "{} rounds, paths taking turns; both ends of a burst wait: {}; load at the start {:.2}",
        report.rounds, report.wait, machine.load
    )?;
    for model in &report.models {
        write_model(model, out)?;
    }
    if report.models.len() > 1 {
        writeln!(out, "\n{}", summary(&report.models))?;
    }
    Ok(())
}

fn write_model(model: &ModelReport, out: &mut impl Write) -> Result<(), HarnessError> {
    writeln!(
        out,
        "\n{}: {} operations, {} B in, {} B out",
        model.model, model.operations, model.input_bytes, model.output_bytes
    )?;
    if let Some(part) = &model.part {
        writeln!(out, "only a part of it runs here, {part}")?;
    }
    writeln!(out, "{}", path_table(&model.paths))?;
    for gain in &model.threads {
        let ratio = spread(&gain.ratio_to_one, 2);
        writeln!(out, "{}, {} threads : 1 thread = {ratio}", gain.path, gain.threads)?;
    }
    for line in copy_lines(model) {
        writeln!(out, "{line}")?;
    }
    for path in model.paths.iter().filter(|path| !path.outputs.holds()) {
        writeln!(out, "{}: its outputs are NOT those of the first path", path.path)?;
    }
    if let Some(profile) = &model.profile {
        writeln!(out, "{}", profile_table(profile))?;
    }
    Ok(())
}

fn path_table(paths: &[PathReport]) -> Table {
    let mut table = new_table(&[
        "path",
        "threads",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "first : p50",
        "p50 : in-process",
        "transport p50",
        "executions",
    ]);
    for path in paths {
        let q = path.latency_us;
        let mut cells = vec![Cell::new(&path.path), right(path.threads)];
        cells.extend([q.p50, q.p90, q.p99, q.p999, q.max].map(|us| right(time(us * 1e3))));
        cells.extend([
            right(format!("{:.2}", path.first_to_p50)),
            right(path.ratio_to_in_process.map_or_else(dash, |ratio| spread(&ratio, 3))),
            right(path.transport_us.map_or_else(dash, |q| time(q.p50 * 1e3))),
            right(path.executions),
        ]);
        table.add_row(cells);
    }
    table
}

/// What moving inputs and outputs costs, in sentences.
pub(super) fn copy_lines(model: &ModelReport) -> Vec<String> {
    let copies = &model.copies;
    let mut lines = Vec::new();
    if let (Some(us), Some(share)) = (copies.inputs_us, copies.inputs_share) {
        let share = 100.0 * share;
        lines.push(format!("copying the inputs: {}, {share:.2} % of p50", time(us * 1e3)));
    }
    if let Some(ratio) = copies.service_to_client {
        let us = |us: Option<f64>| us.map_or_else(dash, |us| time(us * 1e3));
        lines.push(format!(
            "outputs in memory of the client {}, of the service {}: ratio {}",
            us(copies.outputs_of_client_us),
            us(copies.outputs_of_service_us),
            spread(&ratio, 3)
        ));
    }
    lines
}

fn profile_table(rows: &[OperationRow]) -> Table {
    let mut table = new_table(&["operation", "kernel", "count", "time", "share", "MMAC", "GMAC/s"]);
    for row in rows {
        table.add_row([
            Cell::new(&row.operation),
            Cell::new(row.kernel.as_deref().unwrap_or("reference")),
            right(row.count),
            right(time(row.us * 1e3)),
            right(format!("{:.1} %", 100.0 * row.share)),
            right(row.macs.map_or_else(dash, mega)),
            right(row.gmacs_per_s.map_or_else(dash, |rate| format!("{rate:.1}"))),
        ]);
    }
    table
}

fn summary(models: &[ModelReport]) -> Table {
    let mut table = new_table(&SUMMARY);
    for model in models {
        let cells = summary_row(model);
        table.add_row(cells.into_iter().enumerate().map(|(index, text)| match index {
            0 => Cell::new(text),
            _ => right(text),
        }));
    }
    table
}

/// The columns of a table of all models.
pub(super) const SUMMARY: [&str; 8] = [
    "model",
    "in-process p50",
    "burst p50",
    "burst : in-process",
    "first : p50",
    "2 threads : 1",
    "inputs copied",
    "share",
];

/// A model's row under [`SUMMARY`].
pub(super) fn summary_row(model: &ModelReport) -> [String; 8] {
    let (local, burst) = (model.path(paths::IN_PROCESS, 1), model.path(paths::BURST, 1));
    let p50 = |path: Option<&PathReport>| path.map_or_else(dash, |p| time(p.latency_us.p50 * 1e3));
    let ratio = burst.and_then(|burst| burst.ratio_to_in_process);
    let gain = model.threads.iter().find(|gain| gain.path == paths::IN_PROCESS);
    let copies = &model.copies;
    [
        model.model.clone(),
        p50(local),
        p50(burst),
        ratio.map_or_else(dash, |ratio| spread(&ratio, 3)),
        local.map_or_else(dash, |path| format!("{:.2}", path.first_to_p50)),
        gain.map_or_else(dash, |gain| spread(&gain.ratio_to_one, 2)),
        copies.inputs_us.map_or_else(dash, |us| time(us * 1e3)),
        copies.inputs_share.map_or_else(dash, |share| format!("{:.2} %", 100.0 * share)),
    ]
}

/// A median with its range.
pub(super) fn spread(spread: &Spread, digits: usize) -> String {
    let Spread { median, min, max } = spread;
    format!("{median:.digits$} ({min:.digits$} - {max:.digits$})")
}

/// Millions.
pub(super) fn mega(macs: u64) -> String {
    format!("{:.2}", crate::transport::sample::to_f64(macs) / 1e6)
}

pub(super) fn dash() -> String {
    "-".to_owned()
}
