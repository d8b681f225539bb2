//! `burst`: a neural-network driver service that is reached in microseconds, and the tools around
//! it. Without a subcommand it streams the synthetic camera through the built-in model.
//!
//! The command as a library: `main.rs` only calls [`main`]. So its code is compiled once for the
//! binary, for the tests that start it and for the examples beside it.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use burst_hal::log_tags::LogTags;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

mod bench;
mod calibrate;
mod device_names;
mod devices;
mod divided;
mod doctor;
mod draw;
mod driver_process;
mod dump;
mod explain;
mod failure;
mod fit;
mod json;
mod model_file;
mod out;
mod output_file;
mod pages;
mod preference;
mod random;
mod route;
mod run;
mod seconds;
mod serve;
mod service;
mod signals;
mod source;
mod stream;
mod stress;
mod threads;
mod top;
mod trace;
mod verify;
mod view;

use json::Shape;

/// A neural-network driver service reached in microseconds.
///
/// Without a subcommand: stream the synthetic camera through the built-in model, in a driver
/// process of its own.
#[derive(Parser)]
#[command(name = "burst", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    stream: stream::Args,
    /// Log what NNAPI's verbose log has under these tags, to standard error: model, compilation, execution,
    /// cpuexe, manager, driver, memory; `all` or 1 for every one. Several with commas, colons or spaces.
    /// Default: those in $BURST_VLOG.
    #[arg(long, global = true, value_name = "TAGS", value_parser = serve::log::tags)]
    vlog: Option<LogTags>,
}

#[derive(Subcommand)]
enum Command {
    /// Stream pictures or sound through a model in a driver process (the default).
    Stream(Box<stream::Args>),
    /// Offer this machine's CPU as a driver service on a socket.
    Serve(Box<serve::Args>),
    /// Measure latency against a floor or a peer in the same run.
    Bench(bench::Args),
    /// Say what becomes of each operator of a model.
    Explain(explain::Args),
    /// Print a model as a Graphviz graph.
    Dump(dump::Args),
    /// Run a model once, on raw tensors from files.
    Run(run::Args),
    /// Run a folder of conformance vectors, or of real models and goldens, against a driver.
    Verify(verify::Args),
    /// List the devices of a service.
    Devices(devices::Args),
    /// Measure how fast this machine computes, for what devices report of themselves.
    Calibrate(calibrate::Args),
    /// Write the pages of the manual into a folder.
    Man(pages::ManArgs),
    /// Print the completions for a shell.
    Completions(pages::CompletionArgs),
    /// Show who uses a service just now, and which of its bursts are in trouble.
    Top(top::Args),
    /// Run crash tests: a service under load, killed clients and drivers, limits.
    Stress(stress::Args),
    /// Say what this machine allows, what follows from it, and what can be done.
    Doctor(doctor::Args),
}

/// The definition of the command line. A negative number behind an option is its value, and what is wrong with that
/// is said.
fn definition() -> clap::Command {
    with_negative_numbers(Cli::command())
}

fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| match arg.is_positional() || !arg.get_action().takes_values() {
            true => arg,
            false => arg.allow_negative_numbers(true),
        })
        .mut_subcommands(with_negative_numbers)
}

/// Reads a command line.
fn parsed(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut matches = definition().try_get_matches_from(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut definition()))
}

/// Whether this is a command line of `burst`, whose name is left out: nothing is done of what it says. For those who
/// hold documents and scripts to what there is.
///
/// # Errors
/// What is wrong with it, as the command would say.
pub fn check_arguments(arguments: &[&str]) -> Result<(), String> {
    let line = std::iter::once("burst").chain(arguments.iter().copied());
    parsed(line.map(OsString::from)).map(drop).map_err(|error| error.to_string())
}

/// Reads the command line, does what it says, and tells how that ended: 0 fine, 1 the answer is
/// "no", 2 could not, 128 and its number where a signal ended it.
#[must_use]
pub fn main() -> ExitCode {
    // One end of `burst bench transport`: before anything else touches this process.
    if let Some(code) = burst_harness::serve_if_asked(&burst_harness::own_peers()) {
        return code;
    }
    let cli = match parsed(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            let arguments: Vec<String> =
                std::env::args_os().skip(1).map(|word| word.to_string_lossy().into()).collect();
            return failure::wrong_arguments(&error, &arguments);
        }
    };
    let mut command = cli.command.unwrap_or(Command::Stream(Box::new(cli.stream)));
    match &command {
        Command::Serve(args) => args.start_logging(cli.vlog),
        _ => serve::log::start(serve::log::LogFormat::Text, "warn", cli.vlog),
    }
    let result = command.settle_threads().and_then(|()| command.run());
    result.unwrap_or_else(|error| failure::report(&error, command.object()))
}

impl Command {
    /// `--threads`, where the command has it: from here on no more than are of use.
    ///
    /// # Errors
    /// It is a number for a service that runs already.
    fn settle_threads(&mut self) -> Result<()> {
        match self {
            Command::Stream(args) => args.settle_threads(),
            Command::Serve(args) => {
                args.threads.settle_in_log();
                Ok(())
            }
            Command::Bench(args) => args.settle_threads(),
            Command::Run(args) => args.settle_threads(),
            Command::Verify(args) => args.settle_threads(),
            Command::Calibrate(args) => args.threads.settle(None),
            _ => Ok(()),
        }
    }

    fn run(&self) -> Result<ExitCode> {
        match self {
            Command::Stream(args) => stream::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Bench(args) => bench::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Dump(args) => dump::run(args),
            Command::Run(args) => run::run(args),
            Command::Verify(args) => verify::run(args),
            Command::Devices(args) => devices::run(args),
            Command::Calibrate(args) => calibrate::run(args),
            Command::Man(args) => pages::man(args, definition()),
            Command::Completions(args) => pages::completions(args, definition()),
            Command::Top(args) => top::run(args),
            Command::Stress(args) => stress::run(args),
            Command::Doctor(args) => doctor::run(args),
        }
    }

    /// The object that it prints, where JSON is asked for.
    fn object(&self) -> Option<&'static Shape> {
        let (is_asked_for, shape) = match self {
            Command::Stream(args) => (args.wants_json(), &json::STREAM),
            Command::Serve(args) => (args.json, &json::SERVE),
            Command::Bench(args) => (args.json(), args.shape()),
            Command::Explain(args) => (args.json, &json::EXPLAIN),
            Command::Run(args) => (args.json, &json::RUN),
            Command::Verify(args) => (args.json, &json::VERIFY),
            Command::Devices(args) => (args.json, &json::DEVICES),
            Command::Calibrate(args) => (args.json, &json::CALIBRATE),
            Command::Top(args) => (args.json, &json::TOP),
            Command::Stress(args) => (args.json, &json::STRESS),
            Command::Doctor(args) => (args.json, &json::DOCTOR),
            Command::Dump(_) | Command::Man(_) | Command::Completions(_) => return None,
        };
        is_asked_for.then_some(shape)
    }
}
