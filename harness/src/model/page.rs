//! A run as one page that needs no other file.

use std::fmt::Write;

use super::report::{ModelReport, OperationRow, PathReport, Report};
use super::text::{SUMMARY, copy_lines, dash, mega, spread, summary_row};
use crate::error::HarnessError;
use crate::report::page::{begin, end, escape, nines, nines_label};
use crate::report::plot::{Drawing, Line, draw};
use crate::transport::report::time;

/// The page; a table of all models where there are several.
///
/// # Errors
/// [`HarnessError::Peer`] where a drawing fails.
pub fn page(report: &Report) -> Result<String, HarnessError> {
    let rows = match report.models.as_slice() {
        [] | [_] => Vec::new(),
        models => models.iter().map(|model| summary_row(model).to_vec()).collect(),
    };
    page_with(report, "Models over every path to a driver", (&SUMMARY, 1), rows)
}

/// A page with another heading and another table before the models, none where it has no rows. Of
/// the table's columns so many are text.
///
/// # Errors
/// As [`page`].
pub fn page_with(
    report: &Report,
    heading: &str,
    (header, texts): (&[&str], usize),
    rows: Vec<Vec<String>>,
) -> Result<String, HarnessError> {
    let how = format!(
        "{} rounds, paths taking turns; both ends of a burst wait: {}.",
        report.rounds, report.wait
    );
    let mut out = begin("Models", heading, &report.machine, &how);
    if !rows.is_empty() {
        table(&mut out, header, texts, rows.into_iter());
    }
    for model in &report.models {
        out += &section(model)?;
    }
    out += end();
    Ok(out)
}

/// One model: drawing and tables.
///
/// # Errors
/// As [`page`].
fn section(model: &ModelReport) -> Result<String, HarnessError> {
    let mut out = String::new();
    let _ = write!(
        out,
        "<h2>{}</h2><p>{} operations, {} B in, {} B out.",
        escape(&model.model),
        model.operations,
        model.input_bytes,
        model.output_bytes
    );
    if let Some(part) = &model.part {
        let _ = write!(out, " Only a part of it runs here, {}.", escape(part));
    }
    out += "</p>";
    out += &draw(&distribution(model))?;
    let gains = model.threads.iter().map(|gain| {
        let ratio = spread(&gain.ratio_to_one, 2);
        format!("{}, {} threads : 1 thread = {ratio}", gain.path, gain.threads)
    });
    let lines: Vec<String> = gains.chain(copy_lines(model)).collect();
    path_table(&mut out, &model.paths);
    if !lines.is_empty() {
        out += "<ul>";
        for line in lines {
            let _ = write!(out, "<li>{}", escape(&line));
        }
        out += "</ul>";
    }
    if let Some(profile) = &model.profile {
        profile_table(&mut out, profile);
    }
    Ok(out)
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
        y: "execution",
        lines: model.paths.iter().enumerate().map(line).collect(),
        x_label: nines_label,
    }
}

fn path_table(out: &mut String, paths: &[PathReport]) {
    let header = [
        "path",
        "threads",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "prepare",
        "first",
        "first : p50",
        "p50 : in-process",
        "transport p50",
        "executions",
        "outputs",
    ];
    let rows = paths.iter().map(|path| {
        let q = path.latency_us;
        let mut cells = vec![path.path.clone(), path.threads.to_string()];
        let times = [q.p50, q.p90, q.p99, q.p999, q.max, path.prepare_us, path.first_us];
        cells.extend(times.map(|us| time(us * 1e3)));
        cells.extend([
            format!("{:.2}", path.first_to_p50),
            path.ratio_to_in_process.map_or_else(dash, |ratio| spread(&ratio, 3)),
            path.transport_us.map_or_else(dash, |q| time(q.p50 * 1e3)),
            path.executions.to_string(),
            match (path.outputs.equal, path.outputs.holds()) {
                (true, _) => "equal".to_owned(),
                (false, true) => format!("within {:.3}", path.outputs.largest),
                (false, false) => "different".to_owned(),
            },
        ]);
        cells
    });
    table(out, &header, 1, rows);
}

fn profile_table(out: &mut String, rows: &[OperationRow]) {
    let header = ["operation", "kernel", "count", "time", "share", "MMAC", "GMAC/s"];
    let rows = rows.iter().map(|row| {
        vec![
            row.operation.clone(),
            row.kernel.clone().unwrap_or_else(|| "reference".to_owned()),
            row.count.to_string(),
            time(row.us * 1e3),
            format!("{:.1} %", 100.0 * row.share),
            row.macs.map_or_else(dash, mega),
            row.gmacs_per_s.map_or_else(dash, |rate| format!("{rate:.1}")),
        ]
    });
    table(out, &header, 2, rows);
}

/// Cells are escaped here; the first `texts` of each row begin at the left.
fn table(out: &mut String, header: &[&str], texts: usize, rows: impl Iterator<Item = Vec<String>>) {
    let class = |column: usize| if column < texts { " class=\"text\"" } else { "" };
    *out += "<div class=\"wide\"><table><tr>";
    for (column, cell) in header.iter().enumerate() {
        let _ = write!(out, "<th{}>{}", class(column), escape(cell));
    }
    *out += "</tr>";
    for row in rows {
        *out += "<tr>";
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}", class(column), escape(cell));
        }
        *out += "</tr>";
    }
    *out += "</table></div>";
}

#[cfg(test)]
mod tests {
    use super::super::agreement::Agreement;
    use super::super::report::{Copies, Quantiles, ThreadGain, paths};
    use super::*;
    use crate::engine::verdict::Spread;
    use crate::machine::Machine;

    const SPREAD: Spread = Spread { median: 1.125, min: 1.0, max: 1.25 };

    fn path(name: &str, threads: u32) -> PathReport {
        PathReport {
            path: name.to_owned(),
            threads,
            executions: 1000,
            prepare_us: 900.0,
            first_us: 300.0,
            first_to_p50: 3.0,
            latency_us: Quantiles { p50: 100.0, p90: 110.0, p99: 150.0, p999: 200.0, max: 900.0 },
            transport_us: None,
            ratio_to_in_process: Some(SPREAD),
            outputs: Agreement { equal: true, largest: 0.0, relative: 0.0 },
            curve: vec![(0.0, 90e3), (0.5, 100e3), (0.99, 150e3)],
        }
    }

    fn model(name: &str) -> ModelReport {
        ModelReport {
            model: name.to_owned(),
            part: None,
            operations: 31,
            input_bytes: 10,
            output_bytes: 20,
            paths: vec![path(paths::IN_PROCESS, 1), path(paths::BURST, 1), path("<i>", 2)],
            threads: vec![ThreadGain {
                path: paths::IN_PROCESS.to_owned(),
                threads: 2,
                ratio_to_one: Spread { median: 0.6, min: 0.5, max: 0.7 },
            }],
            copies: Copies {
                inputs_us: Some(3.25),
                inputs_share: Some(0.0325),
                ..Copies::default()
            },
            profile: Some(vec![OperationRow {
                operation: "CONV_2D".to_owned(),
                kernel: None,
                count: 15,
                us: 88.0,
                share: 0.88,
                macs: Some(1_000_000),
                gmacs_per_s: Some(11.4),
            }]),
        }
    }

    #[test]
    fn a_page_draws_each_model_and_needs_no_other_file() {
        let report = Report {
            machine: Machine::look(),
            rounds: 5,
            wait: "adaptive".to_owned(),
            models: vec![model("one"), model("<two>")],
        };
        let page = page(&report).unwrap();
        assert_eq!(page.matches("<svg").count(), 2, "one drawing per model");
        assert!(!page.contains("<two>") && !page.contains("<i>"), "names are escaped");
        for outside in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        let seen =
            ["1.125 (1.000 - 1.250)", "0.60 (0.50 - 0.70)", "3.25 us, 3.25 %", "CONV_2D", "88.0 %"];
        for text in seen {
            assert!(page.contains(text), "{text}");
        }
    }

    #[test]
    fn the_text_has_a_row_per_path_and_one_per_model() {
        let report = Report {
            machine: Machine::look(),
            rounds: 5,
            wait: "spin".to_owned(),
            models: vec![model("one"), model("two")],
        };
        let mut text = Vec::new();
        super::super::write_text(&report, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches("│ in-process ").count(), 2, "a row per path: {text}");
        assert!(text.contains("│ two   ┆         100 us ┆    100 us ┆ 1.125"), "a summary: {text}");
        assert!(text.contains("in-process, 2 threads : 1 thread = 0.60 (0.50 - 0.70)"), "{text}");
        assert!(text.contains("copying the inputs: 3.25 us, 3.25 % of p50"), "{text}");
        assert!(text.contains("reference"), "{text}");
    }
}
