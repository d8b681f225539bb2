//! `burst bench transport`: round trips between two processes, ours against floors and against what
//! the system offers.
//!
//! The same measurement with third-party peers beside it: `cargo run --release -p benches --features
//! peers -- transport`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use burst_harness::own_peers;
use burst_harness::transport::command;
use serde_json::Value;

use crate::{json, out, output_file};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    what: command::Args,
}

impl Args {
    pub(crate) fn json(&self) -> bool {
        self.what.json
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(page) = &args.what.report {
        output_file::check("--report", page)?;
    }
    if !args.what.json {
        return Ok(args.what.run(&own_peers(), &mut out::stdout())?);
    }
    // What is measured prints an object of its own, which gets the keys that all have.
    let mut object = Vec::new();
    let code = args.what.run(&own_peers(), &mut object)?;
    let found: Value = serde_json::from_slice(&object)?;
    writeln!(out::stdout(), "{}", json::object(&json::BENCH_TRANSPORT, &found)?)?;
    Ok(code)
}
