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
use burst_harness::machine::Machine;
use burst_harness::report::{Column, Table, dash, time};
use burst_server::{Listener, Service, ServiceOptions, Stop};
use serde::{Deserialize, Serialize};

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
    wanted: Option<Wanted>,
}

/// What the first way may cost more than the second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Wanted {
    /// At most so many times as much.
    Ratio(f64),
    /// At most so many nanoseconds more.
    MoreNs(f64),
}

impl Wanted {
    /// Whether the cost is what is wanted, as far as can be told.
    fn is_met(self, measured: &Measured) -> bool {
        match self {
            Wanted::Ratio(ratio) => measured.ratio.low <= ratio,
            Wanted::MoreNs(more) => measured.difference_ns.low <= more,
        }
    }

    fn text(self) -> String {
        match self {
            Wanted::Ratio(ratio) => format!("{ratio:.2}"),
            Wanted::MoreNs(more) => format!("+{}", time(more)),
        }
    }
}

impl Args {
    /// Measures and prints. Ends with 1 where a cost is certainly more than is wanted.
    ///
    /// # Errors
    /// Files that are no models or no library; a service or an execution that fails; writing.
    pub fn run(&self, out: &mut impl Write) -> Result<ExitCode, HarnessError> {
        if let Some(part) = self.part {
            serde_json::to_writer(&mut *out, &measure::rows(self, part)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let machine = Machine::detect();
        let folder = tempfile::tempdir()?;
        // A socket at which nobody listens: the library has the devices of its process.
        let mut rows = self.part(Part::InProcess, &folder.path().join("none.sock"))?;
        rows.extend(self.over_service(&folder.path().join("burst.sock"))?);
        let found = Found { machine, rows };
        if self.json {
            serde_json::to_writer(&mut *out, &found)?;
            writeln!(out)?;
        } else {
            found.write_text(out)?;
        }
        let is_well = |row: &Row| row.wanted.is_none_or(|wanted| wanted.is_met(&row.measured));
        Ok(if found.rows.iter().all(is_well) { ExitCode::SUCCESS } else { ExitCode::from(1) })
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
        let numbers = ["ratio", "more, us", "wanted", "first", "second", "pairs"];
        let numbers = numbers.map(Column::number);
        let mut table = Table::new([&words[..], &numbers].concat());
        for Row { model, first, second, measured, wanted } in &self.rows {
            let Measured { ratio, difference_ns, first_ns, second_ns, pairs, executions } =
                measured;
            let missed = wanted.is_some_and(|wanted| !wanted.is_met(measured));
            let wanted = wanted.map_or_else(dash, Wanted::text);
            table.add([
                model.clone(),
                first.clone(),
                second.clone(),
                ratio.text(),
                difference_ns.scaled(1e-3).text(),
                if missed { format!("{wanted} MISSED") } else { wanted },
                time(*first_ns),
                time(*second_ns),
                format!("{pairs} of {executions}"),
            ]);
        }
        writeln!(out, "{}", table.text())?;
        Ok(())
    }
}
