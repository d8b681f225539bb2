//! `burst dump`: a model as a Graphviz graph.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use burst_hal::dump_graph;

use crate::model_file;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Model file (.tflite); without it the built-in one.
    model: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let loaded = model_file::load(args.model.as_deref())?;
    let mut text = String::new();
    dump_graph(&loaded.name, &loaded.imported.model, &mut text)?;
    crate::out::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
