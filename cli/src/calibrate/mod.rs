//! `burst calibrate`: measures what the devices of this machine report of their speed.
//!
//! Reference workloads (`workloads.rs`) run on this machine's engine and on plain reference kernels with one
//! thread, in turn (`measure.rs`); what is reported are the ratios. They are kept in a file (`file.rs`) that
//! `burst serve` reads before it locks itself in. `docs/decisions/0024-devices-of-one-engine.md` says why.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use burst_driver::{CpuDevice, DeviceOptions, Engine, Figures, Variant};
use burst_hal::{Device, PerformanceInfo};
use burst_harness::Progress;
use burst_harness::machine::processor;
use burst_harness::report::{Column, Table};
use burst_server::StateFolder;
use serde::Serialize;

use crate::signals::Asked;
use crate::threads::Threads;
use crate::{json, out, output_file};

mod energy;
mod file;
mod measure;
mod workloads;

use energy::Counters;
use file::{Calibration, CalibrationError, Made, Row};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// File to write. Default: calibration.json in the state directory ($STATE_DIRECTORY, else
    /// $XDG_STATE_HOME/burst, else ~/.local/state/burst), where `burst serve` looks for it. Folders that are
    /// missing are made; a file that is there is replaced once everything is measured.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Rounds of each workload; medians are over these.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    /// Its path, for people: what is not UTF-8 in it is replaced.
    file: String,
    calibration: Calibration,
}

/// What was measured when a signal came; nothing of it is kept in a file.
#[derive(Debug, Serialize)]
struct Partial {
    calibration: Measured,
}

#[derive(Debug, Serialize)]
struct Measured {
    measured: Vec<Row>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let file = match &args.output {
        Some(file) => file.clone(),
        None => default_file().context("there is no state directory; say where with --output")?,
    };
    output_file::check_replaceable("--output", &file)?;
    let shape = args.json.then_some(&json::CALIBRATE);
    let asked = Asked::watch(shape)?;
    let (rows, ended) = measure_all(args, &asked)?;
    if !asked.go_on() || ended.is_err() {
        let partial = Partial { calibration: Measured { measured: rows } };
        return asked.tell((&partial, shape), ended.map(|()| ExitCode::SUCCESS), |to| {
            let rows = &partial.calibration.measured;
            if !rows.is_empty() {
                writeln!(to, "{}\nnothing was written", table_of(rows).fitted(out::columns()))?;
            }
            Ok(())
        });
    }
    let calibration = calibration(args, rows)?;
    file::write(&file, &calibration).with_context(|| format!("cannot write {}", file.display()))?;
    let report = Report { file: file.display().to_string(), calibration };
    asked.tell((&report, shape), Ok(ExitCode::SUCCESS), |to| report.write_text(to))
}

fn default_file() -> Option<PathBuf> {
    StateFolder::of_environment().map(|folder| folder.path().join("calibration.json"))
}

/// What a calibration has to fit to be used.
fn made(threads: Threads) -> Made {
    let device = CpuDevice::default();
    Made { driver: device.version_string().to_owned(), cpu: processor(), threads: threads.count }
}

/// Every workload, for as long as no signal asks for the end; and what went wrong with one, behind which none was
/// measured.
fn measure_all(args: &Args, asked: &Asked) -> Result<(Vec<Row>, Result<()>)> {
    let device = |engine: Engine| CpuDevice::of(&Arc::new(engine), &Variant::CPU);
    let ours = device(args.threads.engine());
    let reference = device(Engine::new(DeviceOptions::reference()));
    let counters = Counters::open();
    let mut progress = Progress::default();
    let (mut rows, mut ended) = (Vec::new(), Ok(()));
    for workload in workloads::all()?.into_iter().take_while(|_| asked.go_on()) {
        progress.show(workload.name);
        let found = measure::Pair::open(&workload, &ours, &reference)
            .and_then(|pair| pair.measure(args.rounds, counters.as_ref(), asked));
        match found.with_context(|| workload.name.to_owned()) {
            Ok(found) => rows.extend(found.map(|found| Row::new(&workload, &found))),
            Err(error) => {
                ended = Err(error);
                break;
            }
        }
    }
    progress.end();
    Ok((rows, ended))
}

/// What is kept of these rows, which are all there are.
fn calibration(args: &Args, rows: Vec<Row>) -> Result<Calibration> {
    let power = Counters::open().as_ref().map_or_else(energy::assumption, Counters::describe);
    let figures = Figures::from_entries(|name| {
        file::figure(name, &rows, args.threads.count)
            .with_context(|| format!("no workload stands for {name}"))
    })?;
    Ok(Calibration::new(made(args.threads), power, &figures, rows))
}

/// The figures that devices report: of the file that is named; else of the one in the state directory, where it
/// is there and fits; else those that are built in.
///
/// A file that is only found and is not right must not keep a service from starting: an update of the driver would
/// stop it. One that is named is what the operator wants, so that anything else would be a lie.
///
/// # Errors
/// What is wrong with the file that is named.
pub(crate) fn reported(
    named: Option<&Path>,
    threads: Threads,
    is_private: bool,
) -> Result<Figures> {
    let made = made(threads);
    if let Some(file) = named {
        return Ok(file::read(file, &made)?);
    }
    let Some(file) = default_file() else { return Ok(Figures::BUILT_IN) };
    match file::read(&file, &made) {
        Ok(figures) => {
            tracing::info!(file = %file.display(), "reporting what was measured here");
            Ok(figures)
        }
        Err(CalibrationError::NotThere { .. }) => Ok(Figures::BUILT_IN),
        // Its only client is this command, which does not ask.
        Err(_) if is_private => Ok(Figures::BUILT_IN),
        Err(error) => {
            tracing::warn!(%error, "reporting built-in figures");
            Ok(Figures::BUILT_IN)
        }
    }
}

/// A table whose first column names things, and whose others have figures.
fn table<const N: usize>(first: &'static str, figures: [&'static str; N]) -> Table {
    Table::new([&[Column::text(first)][..], &figures.map(Column::number)].concat())
}

fn table_of(rows: &[Row]) -> Table {
    let mut table = table("workload", ["time : reference", "reference"]);
    for row in rows {
        table.add([row.workload.clone(), row.time.text(3), format!("{:.0} us", row.reference_us)]);
    }
    table
}

impl Report {
    fn write_text(&self, to: &mut impl Write) -> Result<()> {
        writeln!(to, "{}", table_of(&self.calibration.measured).fitted(out::columns()))?;
        let mut figures = table("figure", ["time", "power"]);
        for (name, info) in self.calibration.entries() {
            let PerformanceInfo { exec_time, power_usage } = info;
            let cells = [name.to_owned(), format!("{exec_time:.3}"), format!("{power_usage:.3}")];
            figures.add(cells);
        }
        writeln!(to, "{}", figures.fitted(out::columns()))?;
        let Calibration { made, power, .. } = &self.calibration;
        writeln!(to, "{} on {}, threads: {}", made.driver, made.cpu, made.threads)?;
        writeln!(to, "power: {power}")?;
        writeln!(to, "written to {}", self.file)?;
        Ok(())
    }
}
