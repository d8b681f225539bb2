//! `burst bench transport`: round trips between two processes, ours against floors and against what
//! the system offers.
//!
//! The same measurement with third-party peers beside it: `cargo run --release -p benches --features
//! peers -- transport`.

use std::process::ExitCode;

use anyhow::Result;
use burst_harness::own_peers;
use burst_harness::transport::command;

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
    Ok(args.what.run(&own_peers(), &mut std::io::stdout())?)
}
