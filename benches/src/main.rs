//! `cargo run --release -p benches -- transport`: what `burst bench transport` measures, with
//! third-party peers beside it.

use std::process::ExitCode;

use benches::all_peers;
use clap::{Parser, Subcommand};

/// Our transport beside third-party peers, in one run.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Round trips between two processes.
    Transport(burst_harness::command::Args),
}

fn main() -> ExitCode {
    let peers = all_peers();
    if let Some(code) = burst_harness::serve_if_asked(&peers) {
        return code;
    }
    let What::Transport(args) = Cli::parse().what;
    args.run(&peers, &mut std::io::stdout()).unwrap_or_else(|error| {
        eprintln!("benches: {error}");
        ExitCode::from(2)
    })
}
