//! `burst bench transport`: round trips between two processes, ours against floors and against what
//! the system offers.
//!
//! The same measurement with third-party peers beside it: `cargo run --release -p benches --features
//! peers -- transport`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use burst_harness::own_peers;
use burst_harness::report::Paper;
use burst_harness::transport::command;
use serde_json::Value;

use crate::signals::Asked;
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
    let asked = Asked::watch(args.what.json.then_some(&json::BENCH_TRANSPORT))?;
    // What is measured prints by itself: an object, which gets the keys that all have, or text.
    let mut printed = Vec::new();
    let (columns, format) = (out::columns(), args.what.format);
    let mut paper = Paper { out: &mut printed, columns, format };
    let go_on = || asked.go_on();
    let ended = args.what.run_while(&own_peers(), &mut paper, &go_on);
    let ended = ended.map_err(anyhow::Error::from);
    if printed.is_empty() && ended.is_err() {
        return ended;
    }
    if args.what.json {
        let found: Value = serde_json::from_slice(&printed)?;
        return asked.tell((&found, Some(&json::BENCH_TRANSPORT)), ended, |_| Ok(()));
    }
    asked.tell((&Value::Null, None), ended, |to| Ok(to.write_all(&printed)?))
}
