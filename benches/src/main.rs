//! `cargo run --release -p benches --features peers -- transport`: what `burst bench transport`
//! measures, with third-party peers beside it. `cargo run --release -p benches -- model`: our driver
//! beside LiteRT.

use std::io::Write;
use std::process::ExitCode;

use benches::{all_peers, check_built, left_out_notice, model};
use burst_harness::transport::command;
use burst_harness::{HarnessError, Peer};
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
    Transport(command::Args),
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
        What::Transport(args) => transport(&args, &peers, &mut out),
        What::Model(args) => args.run(&mut out),
    };
    result.unwrap_or_else(|error| {
        eprintln!("benches: {error}");
        ExitCode::from(2)
    })
}

/// Says first which third parties are missing: on standard error, as the report may be for a program.
fn transport(
    args: &command::Args,
    peers: &[&dyn Peer],
    out: &mut impl Write,
) -> Result<ExitCode, HarnessError> {
    check_built(&args.peers)?;
    if args.peers.is_empty()
        && let Some(notice) = left_out_notice()
    {
        eprintln!("benches: {notice}");
    }
    args.run(peers, out)
}
