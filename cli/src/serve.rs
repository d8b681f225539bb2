//! `burst serve`: this machine's CPU as a driver service.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use burst_driver::CpuDevice;
use burst_hal::Device;
use burst_server::{Access, Listener, Service, ServiceOptions, Stop, Stopper};
use nix::sys::signal::{SigSet, Signal};

use crate::stream::WaitKind;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Socket to listen on. Default: $BURST_SOCKET, else burst.sock in the user's runtime folder.
    #[arg(long, conflicts_with = "private")]
    socket: Option<PathBuf>,
    /// Serve the one client whose socket is standard input, and end with it.
    #[arg(long, hide = true)]
    private: bool,
    /// How bursts wait for requests when their client has no wish.
    #[arg(long, value_enum, default_value_t)]
    wait: WaitKind,
    /// Let this user connect, besides the service's own. May be repeated.
    #[arg(long, value_name = "UID")]
    allow_uid: Vec<u32>,
    /// Let processes of this group connect. May be repeated.
    #[arg(long, value_name = "GID")]
    allow_gid: Vec<u32>,
    /// On failure print one JSON object with `error`.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // What a wake-up costs here is measured once, before anybody waits for an answer.
    fmq::warm_up();
    let mut options = ServiceOptions::default();
    options.wait = args.wait.policy();
    options.access = Access { uids: args.allow_uid.clone(), gids: args.allow_gid.clone() };
    let devices: Vec<Arc<dyn Device>> = vec![Arc::new(CpuDevice::default())];
    let service = Service::new(devices, options);
    if args.private {
        let socket = std::io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .context("standard input is not a socket to serve")?;
        service.serve_socket(socket)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = args.socket.clone().unwrap_or_else(burst_client::default_socket_path);
    let (stopper, stop) = Stop::new()?;
    // Before any thread starts, so that all inherit it and only the waiting one is told.
    stop_on_signals(stopper)?;
    let shared = !args.allow_uid.is_empty() || !args.allow_gid.is_empty();
    let listener =
        if shared { Listener::bind_with_mode(&path, 0o666) } else { Listener::bind(&path) }?;
    // One line, once connections are taken: whoever started us may wait for it.
    let mut out = std::io::stdout();
    writeln!(out, "listening on {}", path.display())?;
    out.flush()?;
    service.run(&listener, &stop)?;
    Ok(ExitCode::SUCCESS)
}

/// SIGTERM and SIGINT end the service in order: what is being executed is answered.
fn stop_on_signals(stopper: Stopper) -> Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals.thread_block().context("cannot take over SIGTERM")?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || match signals.wait() {
            Ok(signal) => {
                tracing::info!(%signal, "stopping");
                drop(stopper);
            }
            Err(error) => tracing::error!(%error, "cannot wait for signals"),
        })
        .context("cannot start the signal thread")?;
    Ok(())
}
