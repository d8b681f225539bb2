//! `burst bench`: latency, always as a ratio to something measured in the same run; answers beside TFLite's; and two
//! runs compared.

use std::process::ExitCode;

use anyhow::Result;

use crate::json::{self, Shape};

mod compare;
mod mlts;
mod model;
mod transport;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// One model over every path to a driver: burst, control socket, in this process.
    Model(model::Args),
    /// Models on pictures and sounds: latency, and answers beside TFLite's.
    Mlts(Box<mlts::Args>),
    /// Round trips between two processes: ours, floors, sockets, pipes.
    Transport(transport::Args),
    /// What became slower or faster from one run to another, of what they printed with --json.
    Compare(compare::Args),
}

impl Args {
    pub(crate) fn json(&self) -> bool {
        match &self.what {
            What::Model(args) => args.json,
            What::Mlts(args) => args.json,
            What::Transport(args) => args.json(),
            What::Compare(args) => args.json,
        }
    }

    /// `--threads`, where there is one, as far as it is of use.
    ///
    /// # Errors
    /// None so far: no measurement uses a service that runs already.
    pub(crate) fn settle_threads(&mut self) -> Result<()> {
        match &mut self.what {
            What::Model(args) => args.settle_threads(),
            What::Mlts(args) => args.settle_threads()?,
            What::Transport(_) | What::Compare(_) => {}
        }
        Ok(())
    }

    /// The object that is printed with `--json`.
    pub(crate) fn shape(&self) -> &'static Shape {
        match &self.what {
            What::Model(_) => &json::BENCH_MODEL,
            What::Mlts(_) => &json::BENCH_MLTS,
            What::Transport(_) => &json::BENCH_TRANSPORT,
            What::Compare(_) => &json::BENCH_COMPARE,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Model(args) => model::run(args),
        What::Mlts(args) => mlts::run(args),
        What::Transport(args) => transport::run(args),
        What::Compare(args) => compare::run(args),
    }
}
