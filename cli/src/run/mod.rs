//! `burst run`: a model once, on raw tensors from files.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use burst_tflite::Imported;
use burst_verify::models::{ImportedModel, Pipeline};
use serde::Serialize;

use crate::model_file;
use crate::route::RouteArg;
use crate::threads::Threads;
use crate::verify::import::import_parts;
use crate::verify::lease::Service;
use crate::verify::route;

mod tensors;

use tensors::{Slot, TensorFile};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Model file (.tflite); without it the built-in one.
    model: Option<PathBuf>,
    /// Files with the elements of the model's inputs, in the model's order: nothing but the
    /// elements, in this machine's byte order.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    input: Vec<PathBuf>,
    /// Folder for the outputs: output0.bin, output1.bin and so on; made where it is not there.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Files with the states to begin with: state0.bin and so on of an earlier run. Default: zeros.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    state: Vec<PathBuf>,
    /// How the execution reaches the driver.
    #[arg(long, value_enum, default_value_t)]
    path: RouteArg,
    /// Socket of a running service; without it a private driver process is started.
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Device: of the service, or of the private driver process; `burst devices` lists them.
    #[arg(long, default_value = "cpu")]
    device: String,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What was done.
#[derive(Debug, Serialize)]
struct Report {
    model: String,
    path: &'static str,
    /// Time that the driver measured, over all parts of the model.
    driver_us: Option<u64>,
    inputs: Vec<TensorFile>,
    outputs: Vec<TensorFile>,
    /// States after the execution, for the next.
    states: Vec<TensorFile>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let report = execute(args)?;
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        write_text(&mut out, &report)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn execute(args: &Args) -> Result<Report> {
    if args.path == RouteArg::InProcess && args.socket.is_some() {
        bail!("--path in-process uses no socket");
    }
    let (name, file) = model_file::read(args.model.as_deref())?;
    let parts =
        import_parts(&file, &[], &[]).with_context(|| format!("cannot use the model {name}"))?;
    let ends = Ends::of(&parts.parts);
    let inputs = tensors::read("input", &ends.inputs, &args.input)?;
    let states = match args.state.as_slice() {
        [] => Vec::new(),
        files => tensors::read("state", &ends.states, files)?,
    };

    let mut model: ImportedModel = parts.into();
    args.threads.check(args.socket.as_deref())?;
    let service =
        Service { socket: args.socket.as_deref(), device: &args.device, threads: args.threads };
    let route = route::open(args.path, &service)?;
    let mut pipeline = Pipeline::open(route.lease.target(), &model, route.route)
        .with_context(|| format!("the model {name} cannot be prepared"))?;
    if !states.is_empty() {
        pipeline.set_states(&states)?;
    }
    let outputs = pipeline.execute(&inputs, &mut model.bridges)?;
    let states = pipeline.states()?;
    tensors::make_folder(&args.output)?;
    Ok(Report {
        model: name,
        path: route.name,
        driver_us: pipeline.driver_time_us(),
        inputs: tensors::given(&ends.inputs, &args.input, &inputs),
        outputs: tensors::write(&ends.outputs, &args.output, &outputs)?,
        states: tensors::write(&ends.states, &args.output, &states)?,
    })
}

/// What goes into a model and what comes out of it, over all of its parts.
struct Ends {
    inputs: Vec<Slot>,
    outputs: Vec<Slot>,
    states: Vec<Slot>,
}

impl Ends {
    fn of(parts: &[Imported]) -> Self {
        let states = parts.iter().flat_map(|part| {
            part.states.iter().filter_map(|state| part.inputs.get(state.input_index))
        });
        let plain = |part: Option<&Imported>, is_input: bool| {
            let infos = part.map(|part| if is_input { &part.inputs } else { &part.outputs });
            // Those of the states come last, one each.
            let states = part.map_or(0, |part| part.states.len());
            let infos = infos.map(Vec::as_slice).unwrap_or_default();
            infos[..infos.len().saturating_sub(states)].to_vec()
        };
        Ends {
            inputs: Slot::all("input", plain(parts.first(), true)),
            outputs: Slot::all("output", plain(parts.last(), false)),
            states: Slot::all("state", states.cloned().collect()),
        }
    }
}

fn write_text(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let took = report.driver_us.map_or_else(String::new, |us| format!(", {us} us in the driver"));
    writeln!(out, "{} over {}{took}", report.model, report.path)?;
    for tensor in report.outputs.iter().chain(&report.states) {
        writeln!(
            out,
            "{}: {} {:?} ({}), {} bytes",
            tensor.file.display(),
            tensor.ty,
            tensor.shape,
            tensor.name,
            tensor.bytes
        )?;
    }
    Ok(())
}
