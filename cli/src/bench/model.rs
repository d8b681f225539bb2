//! `burst bench model`: what each path to a driver costs, against the same work in this process.
//!
//! The paths take turns: in every round each one runs the same frame as often as the others, and
//! a path's ratio is taken against the in-process run of the same round, so that a change of the
//! machine's mood hits both.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use burst_hal::ErrorStatus;
use comfy_table::Table;
use serde::Serialize;

use crate::fit::{Fit, Fitter, FloatRange, InputShape};
use crate::model_file;
use crate::source;
use crate::stream::{Durations, Path, PathKind, PathOptions, Quantiles, WaitKind, open_path};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Model file (.tflite); without it the built-in one.
    #[arg(long)]
    model: Option<PathBuf>,
    /// Picture that is run again and again; without it one of the synthetic camera.
    #[arg(long, default_value = "demo")]
    source: String,
    /// How both ends of a burst wait for each other.
    #[arg(long, value_enum, default_value_t)]
    wait: WaitKind,
    /// Rounds in which every path takes its turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Executions per path and round.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    frames: u32,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    wait: &'static str,
    rounds: u32,
    frames_per_round: u32,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    path: &'static str,
    latency_us: Quantiles,
    transport_us: Option<Quantiles>,
    /// The path's p50 over that of the in-process path in the same round.
    ratio_to_in_process: Spread,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

/// The first one is what the others are compared with.
const PATHS: [PathKind; 3] = [PathKind::InProcess, PathKind::Burst, PathKind::Sync];

/// Executions before the first round, for caches, page tables and branch predictors.
const WARM_UP: u32 = 20;

/// Far above any execution; only turns a hang into an error.
const DEADLINE: Duration = Duration::from_secs(60);

struct Lane {
    kind: PathKind,
    path: Box<dyn Path>,
    latency: Durations,
    transport: Durations,
    ratios: Vec<f64>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let report = measure(args)?;
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        write_text(&report, &mut out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &Args) -> Result<Report> {
    let loaded = model_file::load(args.model.as_deref())?;
    let [input] = loaded.imported.inputs.as_slice() else {
        bail!("{} has {} inputs, expected one", loaded.name, loaded.imported.inputs.len());
    };
    let shape = InputShape::new(input.ty, &input.dims)?;
    let mut source = source::open(&args.source, 1, None)?;
    let frame = source.next_frame()?.context("the source has no frame")?;
    let mut fitter = Fitter::new(shape, Fit::default(), FloatRange::default());
    let mut lanes = Vec::new();
    for kind in PATHS {
        let options = PathOptions { kind, wait: args.wait, socket: None, device: "cpu" };
        let mut path = open_path(&options, &loaded.imported)?;
        fitter.write(&frame, path.input())?;
        lanes.push(Lane {
            kind,
            path,
            latency: Durations::new()?,
            transport: Durations::new()?,
            ratios: Vec::new(),
        });
    }
    for lane in &mut lanes {
        lane.turn(WARM_UP)?;
        lane.latency.clear();
        lane.transport.clear();
    }
    for round in 0..args.rounds {
        let mut p50 = vec![0.0; lanes.len()];
        // Every other round the other way round, so that nobody always follows the same one.
        let order: Vec<usize> = match round % 2 {
            0 => (0..lanes.len()).collect(),
            _ => (0..lanes.len()).rev().collect(),
        };
        for index in order {
            p50[index] = lanes[index].turn(args.frames)?;
        }
        for (lane, own) in lanes.iter_mut().zip(&p50) {
            lane.ratios.push(own / p50[0]);
        }
    }
    let rows = lanes.into_iter().map(Lane::row).collect::<Result<_>>()?;
    Ok(Report {
        model: loaded.name,
        wait: args.wait.name(),
        rounds: args.rounds,
        frames_per_round: args.frames,
        rows,
    })
}

impl Lane {
    /// Executes `frames` times; the p50 of this turn in microseconds.
    fn turn(&mut self, frames: u32) -> Result<f64> {
        let mut turn = Durations::new()?;
        for _ in 0..frames {
            let sent = Instant::now();
            let (status, driver) = self.path.execute(DEADLINE)?;
            let took = sent.elapsed();
            if status != ErrorStatus::None {
                bail!("an execution over {} ended with {status}", self.kind.name());
            }
            turn.record(took);
            self.latency.record(took);
            if let Some(driver) = driver {
                self.transport.record(took.saturating_sub(driver));
            }
        }
        Ok(turn.quantiles().map_or(f64::NAN, |q| q.p50))
    }

    fn row(mut self) -> Result<Row> {
        self.ratios.sort_by(f64::total_cmp);
        let ratios = &self.ratios;
        Ok(Row {
            path: self.kind.name(),
            latency_us: self.latency.quantiles().context("nothing was measured")?,
            transport_us: self.transport.quantiles(),
            ratio_to_in_process: Spread {
                median: ratios[ratios.len() / 2],
                min: ratios[0],
                max: ratios[ratios.len() - 1],
            },
        })
    }
}

fn write_text(report: &Report, out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "{}, wait {}: {} rounds of {} executions per path, alternating",
        report.model, report.wait, report.rounds, report.frames_per_round
    )?;
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "path",
        "p50 us",
        "p90 us",
        "p99 us",
        "p50 of transport us",
        "p50 : in-process (min - max)",
    ]);
    for row in &report.rows {
        let Spread { median, min, max } = row.ratio_to_in_process;
        table.add_row([
            row.path.to_owned(),
            format!("{:.1}", row.latency_us.p50),
            format!("{:.1}", row.latency_us.p90),
            format!("{:.1}", row.latency_us.p99),
            row.transport_us.map_or_else(String::new, |q| format!("{:.1}", q.p50)),
            format!("{median:.3} ({min:.3} - {max:.3})"),
        ]);
    }
    writeln!(out, "{table}")?;
    Ok(())
}
