//! `cargo run --release -p benches --features peers -- transport`: what `burst bench transport`
//! measures, with third-party peers beside it. `cargo run --release -p benches -- model`: our driver
//! beside LiteRT. `cargo run --release -p benches -- attacks`: what an honest client notices of attacks
//! on its service. `cargo run --release -p benches -- priorities`: an urgent model beside a busy one.
//! `cargo run --release -p benches -- cache`: models prepared in full and from files.
//! `cargo run --release -p benches -- costs`: what each feature around an execution costs.
//! `cargo run --release -p benches -- ndk`: inferences through NNAPI's C functions.
//! `cargo run --release -p benches -- top`: what a service computes for whoever looks at it.

use std::io::Write;
use std::process::ExitCode;

use benches::{
    all_peers, attacks, cache, check_built, costs, left_out_notice, model, ndk, priorities, top,
};
use burst_harness::transport::command;
use burst_harness::{HarnessError, Peer};
use clap::{Parser, Subcommand};

/// Our transport beside third-party peers, our driver beside LiteRT, and an honest client beside attacks,
/// each in one run.
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
    /// An honest client of a service, alone and beside attacks on it.
    Attacks(attacks::Args),
    /// An urgent model of a user beside a less urgent one on all cores.
    Priorities(priorities::Args),
    /// Models prepared in full and from the files of a compilation.
    Cache(cache::Args),
    /// Each feature around an execution beside the same without it.
    Costs(costs::Args),
    /// Inferences through NNAPI's C functions beside the same without them.
    Ndk(ndk::Args),
    /// A service that is looked at, beside the same that is not.
    Top(top::Args),
}

fn main() -> ExitCode {
    let peers = all_peers();
    let asked = burst_harness::serve_if_asked(&peers)
        .or_else(model::serve_driver_if_asked)
        .or_else(model::hold_model_if_asked)
        .or_else(burst_tests::attacks::play_if_asked);
    if let Some(code) = asked {
        return code;
    }
    let mut out = std::io::stdout();
    let result = match Cli::parse().what {
        What::Transport(args) => transport(&args, &peers, &mut out),
        What::Model(args) => args.run(&mut out),
        What::Attacks(args) => args.run(&mut out),
        What::Priorities(args) => args.run(&mut out),
        What::Cache(args) => args.run(&mut out),
        What::Costs(args) => args.run(&mut out),
        What::Ndk(args) => args.run(&mut out),
        What::Top(args) => args.run(&mut out),
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
