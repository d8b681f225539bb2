//! `cargo run --release -p benches -- ndk`: what an inference through NNAPI's C functions costs, each beside the same
//! without them, in turns: a model of one ADD in one process, beside the HAL; models over a service, beside the
//! Rust client. The library is loaded by its file, as any client loads it, and each inference is what a program in
//! C does for one: an execution is made, gets its arguments, computes, and is freed.
//!
//! The library looks for its devices once, so each part is measured in a process of its own, which is this
//! program again; the service of the second is this process.

mod measure;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use burst_driver::CpuDevice;
use burst_harness::HarnessError;
use burst_harness::bounds::{Bounds, Check};
use burst_harness::machine::Machine;
use burst_harness::report::{Column, Table, time};
use burst_server::{Listener, Service, ServiceOptions, Stop};
use serde::{Deserialize, Serialize};

use crate::checks;
use crate::costs::pairs::Measured;

/// Which models, and how much of each row.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// `.tflite` files for the part over a service. Default: the built-in model.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    models: Vec<PathBuf>,
    /// The library. Default: the libneuralnetworks.so beside this program, or the one that the system finds.
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Pairs of turns of each row, at most.
    #[arg(long, value_name = "N", default_value_t = 2001, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Seconds after which a row takes no further pair.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    seconds: u64,
    /// Hold costs to the bounds in this file, such as benches/ndk.json; one that is certainly beyond its bound ends
    /// with status 1.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
    /// Measure this part in this process, and print its rows.
    #[arg(long, value_enum, hide = true)]
    part: Option<Part>,
}

/// What one process measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The CPU in the process, where there is no service.
    InProcess,
    /// Whatever answers at `BURST_SOCKET`.
    Service,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Found {
    machine: Machine,
    rows: Vec<Row>,
}

/// The same inference in two ways.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    model: String,
    first: String,
    second: String,
    #[serde(flatten)]
    measured: Measured,
    /// What it can be held to: the least that it is with 95 %, so that what is beyond a bound is certainly so.
    check: Check,
}

impl Row {
    fn new(part: Part, model: String, first: &str, measured: Measured) -> Row {
        let value = match part {
            Part::InProcess => measured.difference_ns.low * 1e-3,
            Part::Service => measured.ratio.low,
        };
        let check = Check::new(part.check_of(first), Some(value));
        Row { model, first: first.to_owned(), second: part.beside().to_owned(), measured, check }
    }
}

impl Part {
    /// What the C functions are compared with.
    fn beside(self) -> &'static str {
        match self {
            Part::InProcess => "HAL, execute_synchronously",
            Part::Service => "Rust client, burst",
        }
    }

    /// The name by which a file of bounds knows what this way costs.
    fn check_of(self, first: &str) -> String {
        match self {
            Part::InProcess => format!("{first} - {}, us", self.beside()),
            Part::Service => format!("{first} : {}", self.beside()),
        }
    }
}

/// Reads bounds such as `benches/ndk.json`.
fn bounds(file: &Path) -> Result<Bounds, HarnessError> {
    let parts = [Part::InProcess, Part::Service];
    let names = parts.iter().flat_map(|part| measure::WAYS.map(|(.., way)| part.check_of(way)));
    Bounds::read(file, &names.collect::<Vec<String>>())
}

impl Args {
    /// Measures and prints. Ends with 1 where a cost is certainly beyond a bound that it is held to.
    ///
    /// # Errors
    /// Files that are no models or no library; a service or an execution that fails; writing.
    pub fn run(&self, out: &mut impl Write) -> Result<ExitCode, HarnessError> {
        if let Some(part) = self.part {
            serde_json::to_writer(&mut *out, &measure::rows(self, part)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let bounds = self.check.as_deref().map(bounds).transpose()?;
        let machine = Machine::detect();
        let folder = tempfile::tempdir()?;
        // A socket at which nobody listens: the library has the devices of its process.
        let mut rows = self.part(Part::InProcess, &folder.path().join("none.sock"))?;
        rows.extend(self.over_service(&folder.path().join("burst.sock"))?);
        if let Some(bounds) = bounds {
            rows.iter_mut().for_each(|row| bounds.hold(std::slice::from_mut(&mut row.check)));
        }
        let found = Found { machine, rows };
        if self.json {
            serde_json::to_writer(&mut *out, &found)?;
            writeln!(out)?;
        } else {
            found.write_text(out)?;
        }
        Ok(checks::exit_code(found.rows.iter().map(|row| &row.check)))
    }

    /// The part over a service, which threads of this process are for as long.
    fn over_service(&self, socket: &Path) -> Result<Vec<Row>, HarnessError> {
        let listener = Listener::bind(socket).map_err(HarnessError::peer)?;
        let (stopper, stop) = Stop::new().map_err(HarnessError::peer)?;
        let service = Service::new(vec![Arc::new(CpuDevice::default())], ServiceOptions::default());
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| service.run(&listener, &stop));
            let rows = self.part(Part::Service, socket);
            drop(stopper);
            let ended = serving.join().map_err(|_| HarnessError::peer("the service panicked"))?;
            ended.map_err(HarnessError::peer)?;
            rows
        })
    }

    /// This program again, with its devices at this socket.
    fn part(&self, part: Part, socket: &Path) -> Result<Vec<Row>, HarnessError> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["ndk", "--part"]).arg(match part {
            Part::InProcess => "in-process",
            Part::Service => "service",
        });
        command.arg("--pairs").arg(self.pairs.to_string());
        command.arg("--seconds").arg(self.seconds.to_string());
        command.args(self.library.iter().flat_map(|file| ["--library".as_ref(), file.as_os_str()]));
        if !self.models.is_empty() {
            command.arg("--models").args(&self.models);
        }
        let output = command.env("BURST_SOCKET", socket).stderr(Stdio::piped()).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim().trim_start_matches("benches: ");
            return Err(HarnessError::peer(said.to_owned()));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

impl Found {
    fn write_text(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        let Machine { processor, cpus, kernel, load, .. } = &self.machine;
        writeln!(
            out,
            "{processor}, {cpus} CPUs, Linux {kernel}, load at the start {load:.2}. Medians of \
             alternating pairs of turns; ratio and difference are those of pairs, with the intervals \
             that hold their medians with 95 %. The service is a process of its own."
        )?;
        let words = ["model", "first", "second"].map(Column::text);
        let numbers = ["ratio", "more, us", "first", "second", "pairs"];
        let numbers = numbers.map(Column::number);
        let mut table = Table::new([&words[..], &numbers].concat());
        for Row { model, first, second, measured, .. } in &self.rows {
            let Measured { ratio, difference_ns, first_ns, second_ns, pairs, executions } =
                measured;
            table.add([
                model.clone(),
                first.clone(),
                second.clone(),
                ratio.text(),
                difference_ns.scaled(1e-3).text(),
                time(*first_ns),
                time(*second_ns),
                format!("{pairs} of {executions}"),
            ]);
        }
        writeln!(out, "{}", table.text())?;
        let held = checks::table(self.rows.iter().map(|row| (row.model.as_str(), &row.check)));
        if !held.is_empty() {
            writeln!(out, "{}", held.text())?;
        }
        Ok(())
    }
}
