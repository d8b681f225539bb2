//! Where the time of a model goes, as tables, sentences and a drawing.

use super::profile::{OperationFigures, OperationRow, Roofs};
use super::report::{ModelReport, paths};
use crate::engine::to_f64;
use crate::report::{Column, Drawing, Heights, Line, Scale, Table, dash, time};

/// By kind of operation and kernel, with their sum.
pub(super) fn profile_table(rows: &[OperationRow]) -> Table {
    let numbers = ["count", "time", "share", "MMAC", "GOP/s", "of peak"].map(Column::number);
    let words = ["operation", "kernel"].map(Column::text);
    let mut table = Table::new([&words[..], &numbers[..]].concat());
    for row in rows {
        table.add([
            row.operation.clone(),
            kernel_of(row.kernel.as_ref()),
            row.count.to_string(),
            time(row.us * 1e3),
            percent(row.share, 1),
            row.macs.map_or_else(dash, millions),
            row.gmacs_per_s.map_or_else(dash, |rate| format!("{:.1}", 2.0 * rate)),
            row.of_peak.map_or_else(dash, |part| percent(part, 0)),
        ]);
    }
    let sum = |of: fn(&OperationRow) -> f64| rows.iter().map(of).sum::<f64>();
    table.add([
        "sum".to_owned(),
        String::new(),
        rows.iter().map(|row| row.count).sum::<usize>().to_string(),
        time(sum(|row| row.us) * 1e3),
        percent(sum(|row| row.share), 1),
        format!("{:.2}", sum(|row| row.macs.map_or(0.0, to_f64)) / 1e6),
        dash(),
        dash(),
    ]);
    table
}

/// Every operation, in the order in which they run.
pub(super) fn operation_table(operations: &[OperationFigures]) -> Table {
    let numbers = ["time", "share", "MMAC", "GOP/s", "of peak", "GB/s", "of memory"];
    let words = ["#", "operation", "kernel", "output"].map(Column::text);
    let mut table = Table::new([&words[..], &numbers.map(Column::number)].concat());
    for one in operations {
        table.add([
            one.index.to_string(),
            one.operation.clone(),
            kernel_of(one.kernel.as_ref()),
            one.output.clone().unwrap_or_else(dash),
            time(one.us * 1e3),
            percent(one.share, 1),
            one.macs.map_or_else(dash, millions),
            one.gops_per_s.map_or_else(dash, |rate| format!("{rate:.1}")),
            one.of_peak.map_or_else(dash, |part| percent(part, 0)),
            one.gb_per_s.map_or_else(dash, |rate| format!("{rate:.1}")),
            one.of_memory.map_or_else(dash, |part| percent(part, 0)),
        ]);
    }
    table
}

fn kernel_of(kernel: Option<&String>) -> String {
    kernel.cloned().unwrap_or_else(|| "reference".to_owned())
}

fn percent(part: f64, digits: usize) -> String {
    format!("{:.digits$} %", 100.0 * part)
}

fn millions(count: u64) -> String {
    format!("{:.2}", to_f64(count) / 1e6)
}

/// A profile whose operations add up to something far from what an execution took in the same rounds says so, and one whose
/// rounds were far from those of the paths: its shares may hold, its times do not.
pub(super) fn lines(model: &ModelReport, rows: &[OperationRow]) -> Vec<String> {
    let local = model.paths.iter().find(|path| path.path == paths::IN_PROCESS);
    let mut lines: Vec<String> = model.roofs.iter().map(roofs_line).collect();
    let sum: f64 = rows.iter().map(|row| row.us).sum();
    let is_apart = |one: f64, other: f64| (one / other).max(other / one) > PROFILE_APART_MAX;
    let p50 = local.map(|path| path.latency_us.p50);
    let again = "measure again on a quieter machine before you trust times or shares";
    if let Some(beside) = model.profile_beside_us.filter(|beside| is_apart(sum, *beside)) {
        lines.push(format!(
            "the operations add up to {}, an execution by turns with them took {}: clocks between operations cost \
             too much, or the machine was busy with something else; {again}",
            time(sum * 1e3),
            time(beside * 1e3)
        ));
    } else if let Some(p50) = p50.filter(|p50| is_apart(sum, *p50)) {
        lines.push(format!(
            "the operations add up to {}, an execution in process took {} at p50: while one of the two was measured \
             the machine was busy with something else; {again}",
            time(sum * 1e3),
            time(p50 * 1e3)
        ));
    }
    lines
}

/// What `of peak` and `of memory` are parts of.
fn roofs_line(roofs: &Roofs) -> String {
    let Roofs { float_gmacs_per_s, byte_gmacs_per_s, memory_gb_per_s } = roofs;
    format!(
        "at best these threads do {:.0} GOP/s of floats and {:.0} of bytes, a product being two operations as it is added \
         up, and one reads {memory_gb_per_s:.1} GB/s of memory that no cache has",
        2.0 * float_gmacs_per_s,
        2.0 * byte_gmacs_per_s
    )
}

/// So many kinds of operations have a colour of their own among the roofs: those that cost most.
const KINDS_MAX: usize = 8;

/// How far each operation is below what arithmetic and memory allow; those of one kind and kernel have a colour. One
/// whose data a cache has may be above the slope.
pub(super) fn roofline<'d>(
    rows: &[OperationRow],
    operations: &[OperationFigures],
    roofs: &Roofs,
) -> Drawing<'d> {
    let places: Vec<Vec<(f64, f64)>> = rows.iter().map(|row| places_of(row, operations)).collect();
    let kinds = rows.iter().zip(&places).filter(|(_, places)| !places.is_empty()).take(KINDS_MAX);
    let memory = roofs.memory_gb_per_s * 1e9;
    let ridge = |peak: f64| (peak / memory).log10();
    let peaks = [roofs.float_gmacs_per_s, roofs.byte_gmacs_per_s].map(|peak| 2e9 * peak);
    let all = || kinds.clone().flat_map(|(_, places)| places).map(|place| place.0);
    let low = all().fold(ridge(peaks[0].min(peaks[1])), f64::min) - 0.3;
    let high = all().fold(ridge(peaks[0].max(peaks[1])), f64::max) + 0.3;
    let roof = |(name, peak, colour): (&str, f64, usize)| Line {
        name: name.to_owned(),
        colour,
        points: vec![(low, 10_f64.powf(low) * memory), (ridge(peak), peak), (high, peak)],
    };
    let mut lines =
        [("most of floats", peaks[0], 0), ("most of bytes", peaks[1], 1)].map(roof).to_vec();
    for (colour, (row, places)) in (2..).zip(kinds) {
        for (at, place) in places.iter().enumerate() {
            // One name for all that have the colour.
            let name = if at == 0 {
                format!("{}, {}", row.operation, kernel_of(row.kernel.as_ref()))
            } else {
                String::new()
            };
            lines.push(Line { name, colour, points: vec![*place] });
        }
    }
    Drawing {
        title: "Operations below what the machine can do",
        x: "operations for each byte that is read or written",
        y: "operations per second",
        y_scale: Heights::Rates,
        lines,
        x_scale: Scale::Decades,
    }
}

/// Where the operations of a row lie: work for each byte as a power of ten, and work per second.
fn places_of(row: &OperationRow, operations: &[OperationFigures]) -> Vec<(f64, f64)> {
    let is_of_row =
        |one: &&OperationFigures| one.operation == row.operation && one.kernel == row.kernel;
    let place = |one: &OperationFigures| {
        let (work, bytes) = (2.0 * to_f64(one.macs?), to_f64(one.bytes?));
        let rate = one.gops_per_s? * 1e9;
        (work > 0.0 && bytes > 0.0 && rate > 0.0).then(|| ((work / bytes).log10(), rate))
    };
    operations.iter().filter(is_of_row).filter_map(place).collect()
}

/// Clocks between operations cost a little, and what lies around them is in no operation.
const PROFILE_APART_MAX: f64 = 1.25;
