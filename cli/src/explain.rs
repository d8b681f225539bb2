//! `burst explain`: what becomes of each operator of a model, and where it runs.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use burst_driver::CpuDevice;
use burst_hal::{Device, Model};
use burst_harness::report::{Column, Table};
use burst_tasks::SoundFront;
use burst_tflite::{ImportError, Outcome, Spectrum, Verdict};
use serde::Serialize;

use crate::model_file;
use crate::out::{self, Out, counted};
use crate::preference::PreferenceArg;
use crate::{failure, json};

mod plan;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Model file (.tflite); without it the built-in one.
    model: Option<PathBuf>,
    /// Say how the model would be divided among these devices: `nnapi-reference`, or those of this
    /// machine's engine, which `burst devices` lists.
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    devices: Vec<String>,
    /// What the devices should be good at.
    #[arg(long, value_enum, default_value_t, requires = "devices")]
    preference: PreferenceArg,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    /// Whether the model can be streamed: by the CPU device, where need be with a part of it in
    /// the client.
    runs: bool,
    operators: Vec<Row>,
    /// What the client computes before the device's part.
    #[serde(skip_serializing_if = "Option::is_none")]
    front: Option<FrontReport>,
    /// What stands in the way of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    index: usize,
    operator: String,
    outcome: String,
    /// Whether operations of the HAL compute it.
    accepted: bool,
    /// `None` where nothing is left to run, or nothing can run it.
    runs_in: Option<RunsIn>,
    notes: Vec<String>,
}

/// Who computes an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum RunsIn {
    Client,
    Device,
}

#[derive(Debug, Serialize)]
struct FrontReport {
    /// Operators of the file that the client computes, those of the spectrum among them.
    operators: usize,
    spectrum_rows: usize,
    spectrum_fft_length: usize,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if !args.devices.is_empty() {
        return run_divided(args);
    }
    let report = look(args)?;
    say(args, &report, report.runs, |out| report.write_text(out))
}

/// How the model would be divided.
fn run_divided(args: &Args) -> Result<ExitCode> {
    let loaded = model_file::load(args.model.as_deref())?;
    let model = &loaded.imported.model;
    let report = plan::divide(loaded.name, model, &args.devices, args.preference.into())?;
    say(args, &report, report.runs, |out| report.write_text(out))
}

/// Prints a report as it is asked for; the model runs, or it does not.
fn say<R: Serialize>(
    args: &Args,
    report: &R,
    runs: bool,
    write_text: impl FnOnce(&mut Out) -> Result<()>,
) -> Result<ExitCode> {
    let mut to = out::stdout();
    if args.json {
        writeln!(to, "{}", json::object(&json::EXPLAIN, report)?)?;
    } else {
        write_text(&mut to)?;
    }
    Ok(if runs { ExitCode::SUCCESS } else { ExitCode::from(failure::NO) })
}

fn look(args: &Args) -> Result<Report> {
    let (model, bytes) = model_file::read(args.model.as_deref())?;
    let inspection =
        burst_tflite::inspect(&bytes).with_context(|| format!("cannot use the model {model}"))?;
    if let Some(report) = in_two_parts(&model, &bytes) {
        return Ok(report);
    }
    let operators = inspection.verdicts.iter().map(|verdict| Row::of(verdict, RunsIn::Device));
    let operators = operators.collect();
    let boundary = inspection.boundary.map(|error| error.to_string());
    let refused = boundary.or_else(|| match burst_tflite::import(&bytes) {
        Err(error) => Some(error.to_string()),
        Ok(imported) => not_run(&imported.model),
    });
    Ok(Report { model, runs: refused.is_none(), operators, front: None, refused })
}

/// A model that the HAL has operations for before and behind its spectrum alone; `None` for any
/// other, and where a part does not run either.
fn in_two_parts(model: &str, bytes: &[u8]) -> Option<Report> {
    let Err(ImportError::Refused { .. }) = burst_tflite::import(bytes) else { return None };
    let (front, behind) = SoundFront::split(bytes).ok()??;
    burst_sound::Magnitudes::new(front.spectrum.fft_length).ok()?;
    if [&front.imported, &behind].into_iter().any(|part| not_run(&part.model).is_some()) {
        return None;
    }
    let SoundFront { imported: before, spectrum } = front;
    let pairs = before.verdicts.iter().zip(&behind.verdicts);
    let operators: Vec<Row> = pairs.map(|(before, behind)| Row::beside(before, behind)).collect();
    let in_client = operators.iter().filter(|row| row.runs_in == Some(RunsIn::Client)).count();
    let front = Some(FrontReport::new(in_client, &spectrum));
    Some(Report { model: model.to_owned(), runs: true, operators, front, refused: None })
}

/// The first operation that the device does not run.
fn not_run(model: &Model) -> Option<String> {
    let supported = match CpuDevice::default().supported_operations(model) {
        Err(failure) => return Some(failure.to_string()),
        Ok(supported) => supported,
    };
    let mut operations = supported.iter().zip(&model.main.operations).enumerate();
    operations.find_map(|(index, (supported, operation))| {
        (!supported)
            .then(|| format!("the device does not run operation {index} ({})", operation.ty))
    })
}

impl Row {
    /// A row about an operator that is run in `runs_in`, if anywhere.
    fn of(verdict: &Verdict, runs_in: RunsIn) -> Self {
        Row {
            index: verdict.index,
            operator: verdict.operator.clone(),
            outcome: verdict.outcome.to_string(),
            accepted: !verdict.outcome.is_refused(),
            runs_in: matches!(verdict.outcome, Outcome::Mapped(_)).then_some(runs_in),
            notes: verdict.notes.iter().map(ToString::to_string).collect(),
        }
    }

    /// A row about an operator of a model in two parts: what each of them says of it. What lies
    /// in neither is the spectrum.
    fn beside(before: &Verdict, behind: &Verdict) -> Self {
        match (&before.outcome, &behind.outcome) {
            (Outcome::Outside, Outcome::Outside) => Row {
                outcome: "the client's spectrum".to_owned(),
                accepted: false,
                runs_in: Some(RunsIn::Client),
                ..Row::of(before, RunsIn::Client)
            },
            (_, Outcome::Outside) => Row::of(before, RunsIn::Client),
            _ => Row::of(behind, RunsIn::Device),
        }
    }
}

impl FrontReport {
    fn new(operators: usize, spectrum: &Spectrum) -> Self {
        let Spectrum { rows, fft_length, .. } = *spectrum;
        FrontReport { operators, spectrum_rows: rows, spectrum_fft_length: fft_length }
    }
}

impl RunsIn {
    fn name(self) -> &'static str {
        match self {
            RunsIn::Client => "the client",
            RunsIn::Device => "the device",
        }
    }
}

impl Report {
    fn write_text(&self, to: &mut impl Write) -> Result<()> {
        let columns = ["operator", "becomes", "runs in", "remarks"].map(Column::text);
        let mut table = Table::new([&[Column::number("#")][..], &columns].concat());
        for row in &self.operators {
            table.add([
                row.index.to_string(),
                row.operator.clone(),
                row.outcome.clone(),
                row.runs_in.map_or_else(String::new, |runs_in| runs_in.name().to_owned()),
                row.notes.join("; "),
            ]);
        }
        writeln!(to, "{}\n{}", self.model, table.fitted(out::columns()))?;
        match (&self.refused, &self.front) {
            (Some(reason), _) => writeln!(to, "does not run: {reason}")?,
            (None, None) => writeln!(to, "runs on the CPU device")?,
            (None, Some(front)) => writeln!(to, "{front}")?,
        }
        Ok(())
    }
}

impl std::fmt::Display for FrontReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FrontReport { operators, spectrum_rows, spectrum_fft_length } = self;
        write!(
            f,
            "runs in two parts: {} in the client, with the spectrum ({} of {}), which the HAL has no operation \
             for; what lies behind on the CPU device",
            counted(*operators as u64, "operator"),
            counted(*spectrum_rows as u64, "transform"),
            counted(*spectrum_fft_length as u64, "sample")
        )
    }
}
