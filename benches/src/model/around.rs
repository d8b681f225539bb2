//! What lies around executions: preparing, the first of them, and what a model holds between them.

use burst_harness::litert::PATH as LITERT;
use burst_harness::model::{PathReport, paths};
use burst_harness::report::{Column, Table, dash, mib, time};

use super::comparison::Compared;

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

/// One row for each model.
pub(super) fn table(models: &[Compared]) -> Table {
    let columns = std::iter::once(Column::text("model")).chain(NUMBERS.map(Column::number));
    let mut table = Table::new(columns.collect());
    for model in models {
        table.add(row(model));
    }
    table
}

fn row(model: &Compared) -> Vec<String> {
    let report = &model.report;
    let (ours, litert) = (report.path(paths::IN_PROCESS, 1), report.path(LITERT, 1));
    let us = |path: Option<&PathReport>, of: fn(&PathReport) -> f64| {
        path.map_or_else(dash, |path| time(of(path) * 1e3))
    };
    let first_to_p50 = |path: Option<&PathReport>| {
        path.map_or_else(dash, |path| format!("{:.2}", path.first_to_p50))
    };
    let idle = model.idle.as_ref();
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
