//! `cargo run --release -p benches -- transport`: what `burst bench transport` measures, with
//! third-party peers beside it. `... -- model`: our driver beside LiteRT.

use std::process::ExitCode;

use benches::{all_peers, model};
use clap::{Parser, Subcommand};

/// Our transport beside third-party peers, and our driver beside LiteRT, each in one run.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Round trips between two processes.
    Transport(burst_harness::command::Args),
    /// Models in our driver and in LiteRT.
    Model(model::Args),
}

fn main() -> ExitCode {
    let peers = all_peers();
    if let Some(code) = burst_harness::serve_if_asked(&peers).or_else(model::serve_driver_if_asked)
    {
        return code;
    }
    let mut out = std::io::stdout();
    let result = match Cli::parse().what {
        What::Transport(args) => args.run(&peers, &mut out),
        What::Model(args) => args.run(&mut out),
    };
    result.unwrap_or_else(|error| {
        eprintln!("benches: {error}");
        ExitCode::from(2)
    })
}
