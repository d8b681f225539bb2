//! What lies around executions: preparing, the first of them, and what a model holds between them.

use burst_harness::engine::Spread;
use burst_harness::litert::PATH as LITERT;
use burst_harness::model::{ModelReport, PathReport, paths};
use burst_harness::report::{Column, Table, dash, mib, time};

use super::idle::Idle;

/// Columns of numbers, behind the name of the model.
const NUMBERS: [&str; 13] = [
    "first",
    "first : p50",
    "LiteRT's",
    "import",
    "prepare",
    "LiteRT prepares",
    "ours : LiteRT",
    "weights",
    "as executed",
    "idle heap",
    "less 64 KiB : as executed",
    "process grows",
    "LiteRT's grows",
];

/// What the table says of a model.
pub(super) struct Around<'m> {
    pub(super) report: &'m ModelReport,
    /// The time in which we prepare it over LiteRT's.
    pub(super) prepare_to_litert: Option<Spread>,
    pub(super) idle: Option<&'m Idle>,
}

/// One row for each model.
pub(super) fn table<'m>(models: impl Iterator<Item = Around<'m>>) -> Table {
    let columns = std::iter::once(Column::text("model")).chain(NUMBERS.map(Column::number));
    let mut table = Table::new(columns.collect());
    for model in models {
        table.add(row(&model));
    }
    table
}

fn row(model: &Around<'_>) -> Vec<String> {
    let Around { report, idle, .. } = *model;
    let (ours, litert) = (report.path(paths::IN_PROCESS, 1), report.path(LITERT, 1));
    let us = |path: Option<&PathReport>, of: fn(&PathReport) -> f64| {
        path.map_or_else(dash, |path| time(of(path) * 1e3))
    };
    let first_to_p50 = |path: Option<&PathReport>| {
        path.map_or_else(dash, |path| format!("{:.2}", path.first_to_p50))
    };
    let memory = |bytes: Option<u64>| bytes.map_or_else(dash, |bytes| mib(bytes.div_ceil(1 << 10)));
    vec![
        report.model.clone(),
        us(ours, |path| path.first_us),
        first_to_p50(ours),
        first_to_p50(litert),
        time(report.import_us * 1e3),
        us(ours, |path| path.prepare_us),
        us(litert, |path| path.prepare_us),
        model.prepare_to_litert.as_ref().map_or_else(dash, |ratio| ratio.text(2)),
        memory(idle.map(|idle| idle.weight_bytes)),
        memory(idle.map(|idle| idle.executed_bytes)),
        memory(idle.map(|idle| idle.heap_bytes)),
        idle.map_or_else(dash, |idle| format!("{:.2}", idle.heap_to_executed)),
        memory(idle.map(|idle| idle.grown_bytes)),
        memory(idle.and_then(|idle| idle.litert_grown_bytes)),
    ]
}
