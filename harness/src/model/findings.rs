//! What was found of models, as text and as a page.

use super::profile_text::{lines as profile_lines, operation_table, profile_table, roofline};
use super::report::{ModelReport, ModelsReport, PathReport, paths};
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
        page_of(self, "Models over every path to a driver", summary.as_slice(), (machine, rounds))
    }
}

/// A page of models with a heading and tables before them.
///
/// # Errors
/// [`HarnessError::Peer`] where a drawing fails.
pub fn page_of(
    found: &ModelsReport,
    heading: &str,
    tables: &[Table],
    (machine, rounds): (&Machine, u32),
) -> Result<String, HarnessError> {
    let how = counted(rounds.into(), "round") + ", paths taking turns; both ends of a burst wait: ";
    let mut how = format!("{how}{}.", found.wait);
    if let Some(kib) = found.client_memory_kib {
        how += &format!(" This process had {} of memory at most.", mib(kib));
    }
    let mut page = Page::new("Models", heading, machine, &how);
    for table in tables {
        page.table(table);
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
        paper.table(&operation_table(model.profile_operations.as_deref().unwrap_or_default()))?;
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
        let operations = model.profile_operations.as_deref().unwrap_or_default();
        page.table(&profile_table(profile));
        page.list(&profile_lines(model, profile));
        if let Some(roofs) = &model.roofs {
            page.drawing(&roofline(profile, operations, roofs));
        }
        page.table(&operation_table(operations));
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
