//! `burst explain`: what becomes of each operator of a model, and whether the CPU device runs it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use burst_driver::CpuDevice;
use burst_hal::Device;
use burst_tflite::Outcome;
use comfy_table::Table;
use serde::Serialize;

use crate::failure;
use crate::model_file;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Model file (.tflite); without it the built-in one.
    model: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    /// Whether the whole model can be streamed through the CPU device.
    runs: bool,
    operators: Vec<Row>,
    /// What stands in the way of the model as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    index: usize,
    operator: String,
    outcome: String,
    accepted: bool,
    notes: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let report = look(args)?;
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        report.write_text(&mut out)?;
    }
    Ok(if report.runs { ExitCode::SUCCESS } else { ExitCode::from(failure::NO) })
}

fn look(args: &Args) -> Result<Report> {
    let (model, bytes) = model_file::read(args.model.as_deref())?;
    let inspection =
        burst_tflite::inspect(&bytes).with_context(|| format!("cannot use the model {model}"))?;
    let operators: Vec<Row> = inspection
        .verdicts
        .iter()
        .map(|verdict| Row {
            index: verdict.index,
            operator: verdict.operator.clone(),
            outcome: verdict.outcome.to_string(),
            accepted: !matches!(verdict.outcome, Outcome::Refused(_)),
            notes: verdict.notes.iter().map(ToString::to_string).collect(),
        })
        .collect();
    let refused = refusal(&bytes, inspection.boundary.map(|error| error.to_string()));
    Ok(Report { model, runs: refused.is_none(), operators, refused })
}

/// Why the model cannot run as a whole: at the importer, or at the device.
fn refusal(bytes: &[u8], boundary: Option<String>) -> Option<String> {
    if boundary.is_some() {
        return boundary;
    }
    let imported = match burst_tflite::import(bytes) {
        Ok(imported) => imported,
        Err(error) => return Some(error.to_string()),
    };
    let operations = &imported.model.main.operations;
    match CpuDevice::default().supported_operations(&imported.model) {
        Err(failure) => Some(failure.to_string()),
        Ok(supported) => supported.iter().zip(operations).enumerate().find_map(
            |(index, (supported, operation))| {
                (!supported).then(|| {
                    format!("the device does not run operation {index} ({})", operation.ty)
                })
            },
        ),
    }
}

impl Report {
    fn write_text(&self, out: &mut impl Write) -> Result<()> {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
        table.set_header(["#", "operator", "becomes", "remarks"]);
        for row in &self.operators {
            table.add_row([
                row.index.to_string(),
                row.operator.clone(),
                row.outcome.clone(),
                row.notes.join("; "),
            ]);
        }
        writeln!(out, "{}\n{table}", self.model)?;
        match &self.refused {
            None => writeln!(out, "runs on the CPU device")?,
            Some(reason) => writeln!(out, "does not run: {reason}")?,
        }
        Ok(())
    }
}
