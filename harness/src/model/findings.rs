//! What was found of models, as text and as a page.

use super::report::{ModelReport, ModelsReport, OperationRow, PathReport, Roofs, paths};
use crate::engine::to_f64;
use crate::error::HarnessError;
use crate::machine::Machine;
use crate::report::{
    Column, Drawing, Findings, Heights, Line, Page, Paper, Scale, Table, counted, dash, mib, nines,
    time,
};

impl Findings for ModelsReport {
    /// One line and tables per model; a table of all models where there are several.
    fn write_text(
        &self,
        machine: &Machine,
        rounds: u32,
        paper: &mut Paper<'_>,
    ) -> Result<(), HarnessError> {
        let out = &mut *paper.out;
        let (cpus, rounds) = (counted(machine.cpus as u64, "CPU"), counted(rounds.into(), "round"));
        writeln!(out, "{}, {cpus}, Linux {}", machine.processor, machine.kernel)?;
        writeln!(
            out,
            "{rounds}, paths taking turns; both ends of a burst wait: {}; load at the start {:.2}",
            self.wait, machine.load
        )?;
        for model in &self.models {
            write_model(model, paper)?;
        }
        if self.models.len() > 1 {
            writeln!(paper.out)?;
            paper.table(&summary(&self.models))?;
        }
        Ok(())
    }

    fn figures(&self) -> Table {
        figures_of(&self.models)
    }

    /// A table of all models where there are several, then each of them.
    fn page(&self, machine: &Machine, rounds: u32) -> Result<String, HarnessError> {
        let summary = (self.models.len() > 1).then(|| summary(&self.models));
        page_of(self, "Models over every path to a driver", summary.as_ref(), (machine, rounds))
    }
}

/// A page of models with a heading and a table before them.
///
/// # Errors
/// [`HarnessError::Peer`] where a drawing fails.
pub fn page_of(
    found: &ModelsReport,
    heading: &str,
    summary: Option<&Table>,
    (machine, rounds): (&Machine, u32),
) -> Result<String, HarnessError> {
    let how = counted(rounds.into(), "round") + ", paths taking turns; both ends of a burst wait: ";
    let mut how = format!("{how}{}.", found.wait);
    if let Some(kib) = found.client_memory_kib {
        how += &format!(" This process had {} of memory at most.", mib(kib));
    }
    let mut page = Page::new("Models", heading, machine, &how);
    if let Some(summary) = summary {
        page.table(summary);
    }
    page.heading("Left out");
    match left_out(found, rounds) {
        none if none.is_empty() => page.paragraph(&format!(
            "Nothing: every path had a trial in each of {}.",
            counted(rounds.into(), "round")
        )),
        lines => page.list(&lines),
    }
    for model in &found.models {
        section(&mut page, model)?;
    }
    Ok(page.finish())
}

/// What there would be more of: parts of models, and rounds of paths that had fewer than were asked for.
fn left_out(found: &ModelsReport, rounds: u32) -> Vec<String> {
    let mut lines = Vec::new();
    for ModelReport { model, part, paths, .. } in &found.models {
        lines.extend(part.iter().map(|part| format!("{model}: only a part of it ran, {part}")));
        for path in paths.iter().filter(|path| path.rounds_p50_us.len() < rounds as usize) {
            lines.push(format!(
                "{model}: {}, {} had a trial in {} of {}; one whose executions take longer than a second has \
                 one, and what ended the run ended the others",
                path.path,
                counted(path.threads.into(), "thread"),
                path.rounds_p50_us.len(),
                counted(rounds.into(), "round"),
            ));
        }
    }
    lines
}

/// Every path of every model with plain numbers.
pub fn figures_of<'m>(models: impl IntoIterator<Item = &'m ModelReport>) -> Table {
    let words = ["model", "path"].map(Column::text);
    let numbers = [
        "threads",
        "p50 us",
        "p90 us",
        "p99 us",
        "p99.9 us",
        "max us",
        "prepare us",
        "first us",
        "p50 : in-process",
        "transport p50 us",
        "executions",
        "memory KiB",
        "same outputs",
    ];
    let mut table = Table::new([&words[..], &numbers.map(Column::number)].concat());
    for model in models {
        for path in &model.paths {
            let q = path.latency_us;
            let times = [q.p50, q.p90, q.p99, q.p999, q.max, path.prepare_us, path.first_us];
            let ratio = path.ratio_to_in_process.map(|ratio| ratio.median);
            let rest = [ratio, path.transport_us.map(|q| q.p50)];
            let plain = |value: f64| format!("{value:.3}");
            let words = [model.model.clone(), path.path.clone(), path.threads.to_string()];
            let cells = words.into_iter().chain(times.map(plain));
            let cells = cells.chain(rest.map(|value| value.map_or_else(String::new, plain)));
            let memory = path.memory_kib.map_or_else(String::new, |kib| kib.to_string());
            let last = [path.executions.to_string(), memory, path.outputs.equal.to_string()];
            table.add(cells.chain(last));
        }
    }
    table
}

fn write_model(model: &ModelReport, paper: &mut Paper<'_>) -> Result<(), HarnessError> {
    writeln!(
        paper.out,
        "\n{}: {}, {} B in, {} B out",
        model.model,
        counted(model.operations as u64, "operation"),
        model.input_bytes,
        model.output_bytes
    )?;
    if let Some(part) = &model.part {
        writeln!(paper.out, "only a part of it runs here, {part}")?;
    }
    paper.table(&path_table(&model.paths))?;
    for line in gain_lines(model).into_iter().chain(copy_lines(model)) {
        writeln!(paper.out, "{line}")?;
    }
    for path in model.paths.iter().filter(|path| !path.outputs.holds()) {
        writeln!(paper.out, "{}: its outputs are NOT those of the first path", path.path)?;
    }
    if let Some(profile) = &model.profile {
        paper.table(&profile_table(profile))?;
        for line in profile_lines(model, profile) {
            writeln!(paper.out, "{line}")?;
        }
    }
    Ok(())
}

/// One model on a page: drawing and tables.
fn section(page: &mut Page, model: &ModelReport) -> Result<(), HarnessError> {
    page.heading(&model.model);
    let ModelReport { operations, input_bytes, output_bytes, .. } = model;
    let operations = counted(*operations as u64, "operation");
    let mut what = format!("{operations}, {input_bytes} B in, {output_bytes} B out.");
    if let Some(part) = &model.part {
        what += &format!(" Only a part of it runs here, {part}.");
    }
    page.paragraph(&what);
    page.drawing(&distribution(model));
    page.table(&path_table(&model.paths));
    let lines: Vec<String> = gain_lines(model).into_iter().chain(copy_lines(model)).collect();
    page.list(&lines);
    if let Some(profile) = &model.profile {
        page.table(&profile_table(profile));
        page.list(&profile_lines(model, profile));
        if let Some(roofs) = &model.roofs {
            page.drawing(&roofline(profile, roofs));
        }
    }
    Ok(())
}

fn distribution(model: &ModelReport) -> Drawing<'_> {
    let line = |(colour, path): (usize, &PathReport)| Line {
        colour,
        name: match path.threads {
            1 => path.path.clone(),
            threads => format!("{}, {threads} threads", path.path),
        },
        points: path.curve.iter().map(|(quantile, ns)| (nines(*quantile), *ns)).collect(),
    };
    Drawing {
        title: &model.model,
        x: "share of executions that took no longer",
        y: "time of an execution",
        lines: model.paths.iter().enumerate().map(line).collect(),
        x_scale: Scale::Shares,
        y_scale: Heights::Times,
    }
}

fn path_table(paths: &[PathReport]) -> Table {
    let mut table = Table::new(vec![
        Column::text("path"),
        Column::number("threads"),
        Column::number("p50"),
        Column::number("p90"),
        Column::number("p99"),
        Column::number("p99.9"),
        Column::number("max"),
        Column::number("prepare").on_pages(),
        Column::number("first").on_pages(),
        Column::number("first : p50"),
        Column::number("p50 : in-process"),
        Column::number("transport p50"),
        Column::number("executions"),
        Column::number("most memory").on_pages(),
        Column::number("outputs").on_pages(),
    ]);
    for path in paths {
        let q = path.latency_us;
        let mut cells = vec![path.path.clone(), path.threads.to_string()];
        let times = [q.p50, q.p90, q.p99, q.p999, q.max, path.prepare_us, path.first_us];
        cells.extend(times.map(|us| time(us * 1e3)));
        cells.extend([
            format!("{:.2}", path.first_to_p50),
            path.ratio_to_in_process.map_or_else(dash, |ratio| ratio.text(3)),
            path.transport_us.map_or_else(dash, |q| time(q.p50 * 1e3)),
            path.executions.to_string(),
            path.memory_kib.map_or_else(dash, mib),
            match (path.outputs.equal, path.outputs.holds()) {
                (true, _) => "equal".to_owned(),
                (false, true) => format!("within {:.3}", path.outputs.largest),
                (false, false) => "different".to_owned(),
            },
        ]);
        table.add(cells);
    }
    table
}

/// What more threads bring, in sentences.
fn gain_lines(model: &ModelReport) -> Vec<String> {
    let line = |gain: &super::report::ThreadGain| {
        let ratio = gain.ratio_to_one.text(2);
        format!("{}, {} threads : 1 thread = {ratio}", gain.path, gain.threads)
    };
    model.threads.iter().map(line).collect()
}

/// What moving inputs and outputs costs, in sentences.
fn copy_lines(model: &ModelReport) -> Vec<String> {
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
            ratio.text(3)
        ));
    }
    lines
}

fn profile_table(rows: &[OperationRow]) -> Table {
    let numbers = ["count", "time", "share", "MMAC", "GMAC/s", "of peak"].map(Column::number);
    let words = ["operation", "kernel"].map(Column::text);
    let mut table = Table::new([&words[..], &numbers[..]].concat());
    for row in rows {
        table.add([
            row.operation.clone(),
            row.kernel.clone().unwrap_or_else(|| "reference".to_owned()),
            row.count.to_string(),
            time(row.us * 1e3),
            format!("{:.1} %", 100.0 * row.share),
            row.macs.map_or_else(dash, |macs| format!("{:.2}", to_f64(macs) / 1e6)),
            row.gmacs_per_s.map_or_else(dash, |rate| format!("{rate:.1}")),
            row.of_peak.map_or_else(dash, |part| format!("{:.0} %", 100.0 * part)),
        ]);
    }
    let sum = |of: fn(&OperationRow) -> f64| rows.iter().map(of).sum::<f64>();
    table.add([
        "sum".to_owned(),
        String::new(),
        rows.iter().map(|row| row.count).sum::<usize>().to_string(),
        time(sum(|row| row.us) * 1e3),
        format!("{:.1} %", 100.0 * sum(|row| row.share)),
        format!("{:.2}", sum(|row| row.macs.map_or(0.0, to_f64)) / 1e6),
        dash(),
        dash(),
    ]);
    table
}

/// A profile whose operations add up to something far from what an execution took in the same rounds says so, and one whose
/// rounds were far from those of the paths: its shares may hold, its times do not.
fn profile_lines(model: &ModelReport, rows: &[OperationRow]) -> Vec<String> {
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

/// What `of peak` is a part of.
fn roofs_line(roofs: &Roofs) -> String {
    let Roofs { float_gmacs_per_s, byte_gmacs_per_s, memory_gb_per_s } = roofs;
    format!(
        "at best these threads add up {float_gmacs_per_s:.0} GMAC/s of floats and {byte_gmacs_per_s:.0} of bytes, and one \
         reads {memory_gb_per_s:.1} GB/s of memory that no cache has"
    )
}

/// So many operations have a place among the roofs: those that cost most.
const PLACED_MAX: usize = 8;

/// How far operations are below what arithmetic and memory allow. An operation whose data a cache has may be
/// above the slope.
fn roofline<'d>(rows: &[OperationRow], roofs: &Roofs) -> Drawing<'d> {
    let places: Vec<(f64, f64, &OperationRow)> = rows
        .iter()
        .filter_map(|row| {
            let (macs, bytes) = (to_f64(row.macs?), to_f64(row.bytes?));
            let place = ((macs / bytes).log10(), row.gmacs_per_s? * 1e9, row);
            (macs > 0.0 && bytes > 0.0).then_some(place)
        })
        .take(PLACED_MAX)
        .collect();
    let memory = roofs.memory_gb_per_s * 1e9;
    let ridge = |peak: f64| (peak / memory).log10();
    let peaks = [roofs.float_gmacs_per_s, roofs.byte_gmacs_per_s].map(|peak| peak * 1e9);
    let all = places.iter().map(|place| place.0);
    let low = all.clone().fold(ridge(peaks[0].min(peaks[1])), f64::min) - 0.3;
    let high = all.fold(ridge(peaks[0].max(peaks[1])), f64::max) + 0.3;
    let roof = |(name, peak, colour): (&str, f64, usize)| Line {
        name: name.to_owned(),
        colour,
        points: vec![(low, 10_f64.powf(low) * memory), (ridge(peak), peak), (high, peak)],
    };
    let roofs = [("most of floats", peaks[0], 0), ("most of bytes", peaks[1], 1)].map(roof);
    let placed = (2..).zip(places).map(|(colour, (x, y, row))| {
        let kernel = row.kernel.as_deref().unwrap_or("reference");
        Line { name: format!("{}, {kernel}", row.operation), colour, points: vec![(x, y)] }
    });
    Drawing {
        title: "Operations below what the machine can do",
        x: "multiplications for each byte that is read or written",
        y: "multiplications per second",
        y_scale: Heights::Rates,
        lines: roofs.into_iter().chain(placed).collect(),
        x_scale: Scale::Decades,
    }
}

/// Clocks between operations cost a little, and what lies around them is in no operation.
const PROFILE_APART_MAX: f64 = 1.25;

/// A table of all models, one row for each.
fn summary(models: &[ModelReport]) -> Table {
    let numbers = [
        "in-process p50",
        "burst p50",
        "burst : in-process",
        "first : p50",
        "2 threads : 1",
        "inputs copied",
        "share",
    ];
    let numbers = numbers.map(Column::number);
    let mut table = Table::new([&[Column::text("model")], &numbers[..]].concat());
    for model in models {
        let (local, burst) = (model.path(paths::IN_PROCESS, 1), model.path(paths::BURST, 1));
        let p50 =
            |path: Option<&PathReport>| path.map_or_else(dash, |p| time(p.latency_us.p50 * 1e3));
        let ratio = burst.and_then(|burst| burst.ratio_to_in_process);
        let gain = model.threads.iter().find(|gain| gain.path == paths::IN_PROCESS);
        let copies = &model.copies;
        table.add([
            model.model.clone(),
            p50(local),
            p50(burst),
            ratio.map_or_else(dash, |ratio| ratio.text(3)),
            local.map_or_else(dash, |path| format!("{:.2}", path.first_to_p50)),
            gain.map_or_else(dash, |gain| gain.ratio_to_one.text(2)),
            copies.inputs_us.map_or_else(dash, |us| time(us * 1e3)),
            copies.inputs_share.map_or_else(dash, |share| format!("{:.2} %", 100.0 * share)),
        ]);
    }
    table
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
