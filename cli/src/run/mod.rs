//! `burst run`: a model once, on raw tensors from files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use burst_hal::Caller;
use burst_hal::trace::{Marks, SpanKind};
use burst_tflite::Imported;
use burst_verify::models::{ImportedModel, Pipeline};
use serde::Serialize;

use crate::failure;
use crate::model_file;
use crate::output_file::{self, Named};
use crate::route::RouteArg;
use crate::threads::Threads;
use crate::trace::{self, Summary, TraceArgs, Tracing};
use crate::verify::import::import_parts;
use crate::verify::lease::Service;
use crate::verify::route;
use crate::{json, out, signals};

mod recorded;
mod tensors;

use tensors::{Slot, TensorFile};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Model file (.tflite); without it the built-in one. Or a vector file (.json.gz), which has its inputs with it:
    /// `burst verify --random` writes such of models that fail.
    model: Option<PathBuf>,
    /// Files with the elements of the model's inputs, in the model's order: nothing but the
    /// elements, in this machine's byte order.
    #[arg(long, value_name = "FILE", num_args = 1..)]
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
    #[command(flatten)]
    trace: TraceArgs,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Args {
    /// `--threads`, as far as it is of use.
    ///
    /// # Errors
    /// It is a number for a service that runs already.
    pub(crate) fn settle_threads(&mut self) -> Result<()> {
        self.threads.settle(self.socket.as_deref())
    }

    /// Refuses a trace over what is read, and in the place of an output.
    fn check_files(&self) -> Result<()> {
        let Some(trace) = self.trace.file() else { return Ok(()) };
        let read = self.model.iter().map(|file| ("the model", file.as_path()));
        let read = read.chain(self.input.iter().map(|file| ("--input", file.as_path())));
        let read: Vec<Named<'_>> =
            read.chain(self.state.iter().map(|file| ("--state", file.as_path()))).collect();
        output_file::check_distinct(&[("--trace", trace)], &read)?;
        if trace.parent().is_some_and(|folder| is_same_folder(folder, &self.output))
            && tensors::is_file_of_tensors(trace)
        {
            bail!("--trace {}: an output has that name in --output", trace.display());
        }
        Ok(())
    }

    /// How many threads compute, unless a service has its own.
    fn threads_used(&self) -> Option<u32> {
        self.socket.is_none().then_some(self.threads.count)
    }
}

/// Whether two paths lead to one folder.
fn is_same_folder(a: &Path, b: &Path) -> bool {
    let whole = |folder: &Path| {
        let here = folder.as_os_str().is_empty();
        if here { Path::new(".") } else { folder }.canonicalize().ok()
    };
    whole(a).is_some_and(|a| Some(a) == whole(b))
}

/// What was done.
#[derive(Debug, Serialize)]
struct Report {
    model: String,
    path: &'static str,
    /// How many compute, unless a service has its own.
    threads: Option<u32>,
    /// Time that the driver measured, over all parts of the model.
    driver_us: Option<u64>,
    inputs: Vec<TensorFile>,
    outputs: Vec<TensorFile>,
    /// States after the execution, for the next.
    states: Vec<TensorFile>,
    /// Of a vector file: the first output that is not what the file expects, by tolerance, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    unexpected: Option<String>,
    /// With `--trace`: what is in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Summary>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    args.check_files()?;
    let tracing = args.trace.begin()?;
    let (json, traced) = (args.json.then_some(&json::RUN), tracing.clone());
    signals::end_at_once(json, move || trace::write_now(traced.as_ref()))?;
    let executed = execute(args, tracing.as_ref());
    let (mut report, traced) = trace::conclude(tracing.as_ref(), executed)?;
    report.trace = traced;
    let mut to = out::stdout();
    if args.json {
        writeln!(to, "{}", json::object(&json::RUN, &report)?)?;
    } else {
        out::text(|to| write_text(to, &report))?;
    }
    Ok(if report.unexpected.is_none() { ExitCode::SUCCESS } else { ExitCode::from(failure::NO) })
}

fn execute(args: &Args, tracing: Option<&Tracing>) -> Result<Report> {
    if args.path == RouteArg::InProcess && args.socket.is_some() {
        bail!("--path in-process uses no socket");
    }
    if let Some(vectors) = args.model.as_deref().filter(|path| recorded::is_vector_file(path)) {
        return recorded::execute(args, vectors, tracing);
    }
    if args.input.is_empty() {
        bail!("--input is missing: files with the elements of the model's inputs");
    }
    let spans = tracing.map(Tracing::sink);
    let mut marks = Marks::begin(spans);
    let (name, file) = model_file::read(args.model.as_deref())?;
    let parts =
        import_parts(&file, &[], &[]).with_context(|| format!("cannot use the model {name}"))?;
    marks.mark(SpanKind::MakeModel);
    let ends = Ends::of(&parts.parts);
    let inputs = tensors::read("input", &ends.inputs, &args.input)?;
    let states = match args.state.as_slice() {
        [] => Vec::new(),
        files => tensors::read("state", &ends.states, files)?,
    };

    let mut model: ImportedModel = parts.into();
    let service = Service {
        socket: args.socket.as_deref(),
        device: &args.device,
        threads: args.threads,
        tracing,
    };
    let route = route::open(args.path, &service)?;
    let caller = tracing.map_or_else(Caller::default, Tracing::caller);
    let mut pipeline = Pipeline::open_for(route.lease.target(), &model, route.route, &caller)
        .with_context(|| format!("the model {name} cannot be prepared"))?;
    if !states.is_empty() {
        pipeline.set_states(&states)?;
    }
    let mut marks = Marks::begin(spans);
    let outputs = pipeline.execute(&inputs, &mut model.bridges)?;
    marks.mark(SpanKind::Execute);
    let states = pipeline.states()?;
    tensors::make_folder(&args.output)?;
    let report = Report {
        model: name,
        path: route.name,
        threads: args.threads_used(),
        driver_us: pipeline.driver_time_us(),
        inputs: tensors::given(&ends.inputs, &args.input, &inputs),
        outputs: tensors::write(&ends.outputs, &args.output, &outputs)?,
        states: tensors::write(&ends.states, &args.output, &states)?,
        unexpected: None,
        trace: None,
    };
    marks.mark(SpanKind::ReadOutputs);
    marks.whole(SpanKind::Frame, 1);
    Ok(report)
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
            tensor.file, tensor.ty, tensor.shape, tensor.name, tensor.bytes
        )?;
    }
    if let Some(what) = &report.unexpected {
        writeln!(out, "not what the file expects: {what}")?;
    }
    if let Some(trace) = &report.trace {
        writeln!(out, "{trace}")?;
    }
    Ok(())
}
