//! A vector file: a model with its inputs, and what should come of them.

use std::path::Path;

use anyhow::{Context, Result, bail};
use burst_verify::{Recorded, RecordedOutput, Spec};

use super::tensors::{self, TensorFile};
use super::{Args, Report};
use crate::route::RouteArg;
use crate::trace::Tracing;
use crate::verify::lease::Service;
use crate::verify::route;

/// Whether a file is one by its name.
pub(super) fn is_vector_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(Spec::SUFFIX))
}

/// Executes the first test of a file once, and writes its outputs.
pub(super) fn execute(args: &Args, file: &Path, tracing: Option<&Tracing>) -> Result<Report> {
    if !args.input.is_empty() || !args.state.is_empty() {
        bail!("{} has its inputs with it: no --input, no --state", file.display());
    }
    if args.path == RouteArg::InProcess && args.socket.is_some() {
        bail!("--path in-process uses no socket");
    }
    let recorded = Recorded::open(&Spec::of_file(file)?)?;
    let service = Service {
        socket: args.socket.as_deref(),
        device: &args.device,
        threads: args.threads,
        tracing,
    };
    let route = route::open(args.path, &service)?;
    let executed = recorded.execute(route.lease.target(), route.route);
    let executed =
        executed.map_err(anyhow::Error::msg).with_context(|| recorded.name().to_owned())?;
    tensors::make_folder(&args.output)?;
    let write = |(number, output): (usize, &RecordedOutput)| -> Result<TensorFile> {
        let file = args.output.join(format!("output{number}.bin"));
        std::fs::write(&file, &output.bytes)
            .with_context(|| format!("cannot write output {number} to {}", file.display()))?;
        let (name, ty) = (format!("output {number}"), output.ty.name().to_owned());
        let (shape, bytes) = (output.shape.clone(), output.bytes.len());
        Ok(TensorFile { name, ty, shape, bytes, file: file.display().to_string() })
    };
    Ok(Report {
        model: recorded.name().to_owned(),
        path: route.name,
        threads: args.threads_used(),
        driver_us: None,
        inputs: Vec::new(),
        outputs: executed.outputs.iter().enumerate().map(write).collect::<Result<_>>()?,
        states: Vec::new(),
        unexpected: executed.unexpected,
        trace: None,
    })
}
