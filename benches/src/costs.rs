//! `cargo run --release -p benches -- costs`: what each feature around an execution costs, each beside the same
//! without it, in turns, in one run: timing, checkpoints, run tokens, the ways over a service, fences, buffers of
//! the driver, and the ways in for authors of drivers.
//!
//! | file | what |
//! |---|---|
//! | `pairs.rs` | two sides in turns; medians of pairs with intervals |
//! | `service.rs` | a service on a thread of this process, with a client |
//! | `models.rs`, `tokens.rs` | the rows of each model |
//! | `authors.rs` | the rows of a device that computes nothing |

mod authors;
pub(crate) mod models;
pub(crate) mod pairs;
pub(crate) mod service;
mod tokens;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use burst_harness::HarnessError;
use burst_harness::bounds::{Bounds, Check};
use burst_harness::machine::Machine;
use burst_harness::model::Workload;
use burst_harness::report::{Column, Table, time};
use pairs::{Effort, Measured};
use serde::Serialize;

use crate::checks;

/// What can be held to bounds: ratios of features that are there in every execution.
const HELD: [&str; 3] = [
    "timing measured : not measured",
    "cancel word, deadline, turn : none of them",
    "execution with a run token : without",
];

/// The model that is measured where none is named.
pub(crate) const BUILT_IN: &[u8] = include_bytes!("../../models/shapes.tflite");

/// Which models, and how much of each row.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// `.tflite` files. Default: the built-in model.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    models: Vec<PathBuf>,
    /// Pairs of turns of each row, at most.
    #[arg(long, value_name = "N", default_value_t = 2001, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Seconds after which a row takes no further pair.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    seconds: u64,
    /// Hold ratios to the bounds in this file, such as benches/costs.json; one that is certainly beyond its bound ends
    /// with status 1.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Found {
    machine: Machine,
    rows: Vec<Row>,
    /// Rows that a model has not, with the reason.
    left_out: Vec<String>,
}

/// Two ways to do the same.
#[derive(Debug, Serialize)]
struct Row {
    model: String,
    first: &'static str,
    second: &'static str,
    #[serde(flatten)]
    measured: Measured,
    /// The least that the ratio is with 95 %: so what is beyond a bound, is certainly so.
    check: Check,
    /// How it was measured.
    note: String,
}

impl Args {
    /// Measures and prints. Ends with 1 where a ratio is certainly beyond a bound that it is held to.
    ///
    /// # Errors
    /// Files that are no models; a service or an execution that fails; writing.
    pub fn run(&self, out: &mut impl Write) -> Result<ExitCode, HarnessError> {
        let bounds = self.check.as_deref().map(|file| Bounds::read(file, &HELD.map(str::to_owned)));
        let bounds = bounds.transpose()?;
        let effort = Effort { pairs: self.pairs, time: Duration::from_secs(self.seconds) };
        let machine = Machine::detect();
        let mut found = Found { machine, rows: Vec::new(), left_out: Vec::new() };
        for workload in self.workloads()? {
            eprintln!("{}", workload.name);
            models::measure(&workload, effort, &mut found)?;
        }
        eprintln!("ways in for authors of drivers");
        authors::measure(effort, &mut found)?;
        if let Some(bounds) = bounds {
            found.rows.iter_mut().for_each(|row| bounds.hold(std::slice::from_mut(&mut row.check)));
        }
        if self.json {
            serde_json::to_writer(&mut *out, &found)?;
            writeln!(out)?;
        } else {
            found.write_text(out)?;
        }
        Ok(checks::exit_code(found.rows.iter().map(|row| &row.check)))
    }

    fn workloads(&self) -> Result<Vec<Workload>, HarnessError> {
        if self.models.is_empty() {
            return Ok(vec![Workload::of_bytes("built-in shapes", BUILT_IN)?]);
        }
        self.models.iter().map(|path| Workload::read(path)).collect()
    }
}

impl Row {
    fn new(
        model: impl Into<String>,
        [first, second]: [&'static str; 2],
        note: impl Into<String>,
        measured: Measured,
    ) -> Row {
        let check = Check::new(format!("{first} : {second}"), Some(measured.ratio.low));
        Row { model: model.into(), first, second, measured, check, note: note.into() }
    }
}

impl Found {
    fn write_text(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        let Machine { processor, cpus, kernel, load, .. } = &self.machine;
        writeln!(
            out,
            "{processor}, {cpus} CPUs, Linux {kernel}, load at the start {load:.2}. Medians of \
             alternating pairs of turns; the ratio is that of pairs, with the interval that holds its \
             median with 95 %. The service is a thread of this process."
        )?;
        let words = ["model", "first", "second"].map(Column::text);
        let numbers = ["ratio", "first", "second", "pairs"].map(Column::number);
        let columns = [&words[..], &numbers, &[Column::text("how")]].concat();
        let mut table = Table::new(columns);
        for row in &self.rows {
            let Measured { ratio, first_ns, second_ns, pairs, executions, .. } = &row.measured;
            table.add([
                row.model.clone(),
                row.first.to_owned(),
                row.second.to_owned(),
                ratio.text(),
                time(*first_ns),
                time(*second_ns),
                format!("{pairs} of {executions}"),
                row.note.clone(),
            ]);
        }
        writeln!(out, "{}", table.text())?;
        let held = checks::table(self.rows.iter().map(|row| (row.model.as_str(), &row.check)));
        if !held.is_empty() {
            writeln!(out, "{}", held.text())?;
        }
        for left_out in &self.left_out {
            writeln!(out, "left out: {left_out}")?;
        }
        Ok(())
    }
}
