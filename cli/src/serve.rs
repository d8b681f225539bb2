//! `burst serve`: this machine's CPU as a driver service.
//!
//! The order of the start is what keeps it safe (`docs/SERVICE.md`): first whatever needs the file system
//! (sockets, the number of CPUs, the levers of the high-performance state, the key of the compilation cache), then the
//! sandbox, then threads, then connections.

mod cache;
mod limits;
pub(crate) mod log;

use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use burst_driver::{CpuDevice, Variant};
use burst_hal::Device;
use burst_hal::log_tags::LogTags;
use burst_harness::WaitKind;
use burst_server::systemd::{self, Notifier};
use burst_server::{
    Access, Listener, Performance, PerformancePaths, Sandbox, SandboxReport, ServerError, Service,
    ServiceOptions, Stop, Stopper, block_file_size_signal, raise_descriptor_limit, serve_admin,
};
use nix::sys::signal::{SigSet, Signal};

use crate::seconds::seconds;
use crate::threads::Threads;
use crate::{calibrate, device_names, out, output_file, signals};

/// How long a driver process that is told to end goes on for its client, which may have been told too and is
/// about to hang up.
const CLIENT_PATIENCE: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Socket to listen on. Default: the one that systemd hands over, else $BURST_SOCKET, else
    /// burst.sock in the user's runtime folder.
    #[arg(long, conflicts_with = "private")]
    socket: Option<PathBuf>,
    /// Serve the one client whose socket is standard input, and end with it.
    #[arg(long, hide = true)]
    private: bool,
    /// How bursts wait for requests when their client has no wish.
    #[arg(long, value_enum, default_value_t = WaitKind::Adaptive)]
    wait: WaitKind,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Devices to offer, several with commas, or `all`. They share threads and what is computed at a time.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = Variant::CPU.name)]
    device: Vec<String>,
    /// What `burst calibrate` measured, which the devices report from now on. Default: the file that it writes
    /// where it is not told where to, if that is there and fits; else figures that are built in.
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// Let this user connect, besides the service's own. May be repeated.
    #[arg(long, value_name = "UID")]
    allow_uid: Vec<u32>,
    /// Let processes of this group connect. May be repeated.
    #[arg(long, value_name = "GID")]
    allow_gid: Vec<u32>,
    /// Let in whoever may open the socket: for one that systemd makes, with a mode and a group.
    #[arg(long, conflicts_with_all = ["allow_uid", "allow_gid"])]
    allow_all: bool,
    /// The most that a client may ask its bursts to do while they wait: those that ask for more wait like
    /// this.
    #[arg(long, value_enum, default_value_t = WaitKind::Spin)]
    max_wait: WaitKind,
    /// Answer `GET /metrics` (OpenMetrics text) on this Unix socket:
    /// curl --unix-socket PATH http://burst/metrics
    #[arg(long, value_name = "PATH", conflicts_with = "private")]
    admin: Option<PathBuf>,
    /// Seconds without requests after which a burst lets go of the driver's resources and of the
    /// high-performance state; 0 for never.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    idle_release: f64,
    /// Seconds that executions may go on when the service is told to stop (SIGTERM, SIGINT, SIGHUP), before they
    /// are cancelled. The process ends a second later in any case, and at once with a second signal.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    grace: f64,
    /// Seconds that whoever's turn it is to compute waits for a device that does not give way, before it computes
    /// beside; 0 for as long as that takes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.02)]
    turn_patience: f64,
    /// Do not ask the system to stay quick while bursts live, even where that is permitted.
    #[arg(long)]
    no_high_performance: bool,
    /// Do not lock the service in with landlock and seccomp.
    #[arg(long)]
    no_sandbox: bool,
    /// Do not start unless both layers of the sandbox are in force.
    #[arg(long, conflicts_with = "no_sandbox")]
    require_sandbox: bool,
    /// Form of the log lines on standard error; BURST_LOG says which of them.
    #[arg(long, value_enum, default_value_t)]
    log: log::LogFormat,
    #[command(flatten)]
    cache: cache::CacheArgs,
    #[command(flatten)]
    limits: limits::LimitArgs,
    /// On failure print one JSON object with `error`.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Args {
    /// Starts the log: a service says what it does, a private one only what is wrong.
    pub(crate) fn start_logging(&self, tags: Option<LogTags>) {
        log::start(self.log, if self.private { "warn" } else { "info" }, tags);
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // First of all, as threads have what the one has that starts them.
    block_file_size_signal()?;
    if args.private {
        // It was started by way of /proc/self/exe, which it would be called by otherwise. Nothing hangs on it.
        let _ = rustix::thread::set_name(c"burst");
    }
    let sockets = (args.socket.as_deref(), args.admin.as_deref());
    if let (Some(socket), Some(admin)) = sockets
        && output_file::is_one_place(socket, admin)
    {
        bail!("--admin {}: --socket names the same place", admin.display());
    }
    // Every memory, queue and client is a descriptor.
    if let Err(error) = raise_descriptor_limit() {
        tracing::warn!(%error, "the limit of descriptors stays as it is");
    }
    // The number of CPUs and what a wake-up costs here are found out once, before anybody waits
    // for an answer and while files can be read.
    fmq::warm_up();
    let options = options(args)?;
    let devices = devices(args)?;
    if args.private { serve_private(args, devices, options) } else { serve(args, devices, options) }
}

/// The devices that are asked for, on one engine.
fn devices(args: &Args) -> Result<Vec<Arc<dyn Device>>> {
    let figures = calibrate::reported(args.calibration.as_deref(), args.threads, args.private)?;
    let engine = Arc::new(args.threads.engine().with_figures(figures));
    let variants = device_names::variants(&args.device)?;
    let key = args.cache.key(args.private)?;
    let device = |variant| -> Arc<dyn Device> {
        let device = CpuDevice::of(&engine, variant);
        match &key {
            Some(key) => Arc::new(device.with_cache_key(key.clone())),
            None => Arc::new(device),
        }
    };
    Ok(variants.into_iter().map(device).collect())
}

fn options(args: &Args) -> Result<ServiceOptions> {
    let mut options = ServiceOptions::default();
    options.wait = args.wait.into();
    options.max_wait = args.max_wait.into();
    options.grace = seconds("--grace", args.grace)?;
    options.access = Access { anyone: args.allow_all, ..named(args) };
    options.limits = args.limits.limits();
    options.idle_time = unless_zero("--idle-release", args.idle_release)?;
    options.turn_patience = unless_zero("--turn-patience", args.turn_patience)?;
    options.time_requests = args.admin.is_some();
    Ok(options)
}

/// The levers of the system's high-performance state, as far as they may be touched.
fn performance(args: &Args) -> Arc<Performance> {
    if args.no_high_performance {
        return Arc::new(Performance::off());
    }
    Arc::new(Performance::open(&PerformancePaths::default()))
}

/// Users and groups that are let in by name.
fn named(args: &Args) -> Access {
    Access { uids: args.allow_uid.clone(), gids: args.allow_gid.clone(), anyone: false }
}

/// A time; `None` where it is 0.
fn unless_zero(flag: &str, time: f64) -> Result<Option<Duration>> {
    let time = seconds(flag, time)?;
    Ok((!time.is_zero()).then_some(time))
}

/// Serves the client at the other end of standard input, whose driver process this is.
fn serve_private(
    args: &Args,
    devices: Vec<Arc<dyn Device>>,
    mut options: ServiceOptions,
) -> Result<ExitCode> {
    let signals = signals::block()?;
    let socket = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .context("standard input is not a socket to serve")?;
    // There is nobody else whom it could keep from a share.
    options.limits = options.limits.for_one_user();
    options.performance = performance(args);
    options.sandbox = lock_in(args)?;
    end_with_the_client(signals)?;
    ended(Service::new(devices, options).serve_socket(socket))
}

/// How the process ends when its service has. What does not give up ends with it.
fn ended(served: Result<(), ServerError>) -> Result<ExitCode> {
    match served {
        Err(ServerError::StillRunning { what }) => {
            tracing::error!(?what, "ending although these do not give up");
            Ok(ExitCode::from(1))
        }
        other => {
            other?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Serves every client that is let in, until a signal stops the service.
fn serve(
    args: &Args,
    devices: Vec<Arc<dyn Device>>,
    mut options: ServiceOptions,
) -> Result<ExitCode> {
    let notifier = Arc::new(Notifier::from_environment()?);
    let (listener, name) = listener(args)?;
    let admin = args.admin.as_deref().map(|path| bind_admin(args, path)).transpose()?;
    options.performance = performance(args);
    // Signals are blocked before any thread starts, so that all threads inherit the mask and only the
    // one that waits for signals gets them.
    let signals = signals::block()?;
    let (stopper, stop) = Stop::new()?;
    let (admin_stopper, admin_stop) = Stop::new()?;

    options.sandbox = lock_in(args)?;
    let access = named(args);
    let service = Service::new(devices, options);
    wait_for_signals(signals, stopper, Arc::clone(&notifier))?;
    let admin = admin.map(|admin| {
        let metrics = service.metrics();
        std::thread::Builder::new().name("admin".into()).spawn(move || {
            if let Err(error) = serve_admin(&admin, &metrics, &access, &admin_stop) {
                tracing::error!(%error, "the admin socket failed; the service goes on");
            }
        })
    });
    let admin = admin.transpose().context("cannot start the admin thread")?;

    // One line, once connections are accepted: the process that started us may wait for it.
    let mut to = out::stdout();
    writeln!(to, "listening on {name}")?;
    to.flush()?;
    tracing::info!(socket = name, pid = std::process::id(), "listening");
    notifier.ready();
    let served = service.run(&listener, &stop);
    drop(admin_stopper);
    if admin.is_some_and(|admin| admin.join().is_err()) {
        tracing::error!("the admin thread panicked");
    }
    let code = ended(served)?;
    tracing::info!("stopped");
    Ok(code)
}

/// The socket to listen on, and what to call it.
fn listener(args: &Args) -> Result<(Listener, String)> {
    let inherited = systemd::inherited_listener()?;
    match (inherited, &args.socket) {
        (Some(_), Some(path)) => {
            bail!("a socket was handed over, and --socket {} is asked for too", path.display())
        }
        (Some(listener), None) => Ok((listener, "the socket that was handed over".to_owned())),
        (None, path) => {
            let is_named = path.is_some() || std::env::var_os("BURST_SOCKET").is_some();
            let path = path.clone().unwrap_or_else(burst_client::default_socket_path);
            let listener = Listener::bind_with_mode(&path, socket_mode(args, args.allow_all));
            let is_there = path.parent().is_none_or(Path::is_dir);
            let listener = listener.map_err(|error| match is_named || is_there {
                true => anyhow::Error::from(error),
                false => anyhow!("{error}; --socket names another place"),
            })?;
            Ok((listener, path.display().to_string()))
        }
    }
}

fn bind_admin(args: &Args, path: &Path) -> Result<Listener> {
    Ok(Listener::bind_admin(path, socket_mode(args, false))?)
}

/// For the owner alone, unless others are let in by their credentials.
fn socket_mode(args: &Args, anyone: bool) -> u32 {
    let is_shared = anyone || !args.allow_uid.is_empty() || !args.allow_gid.is_empty();
    if is_shared { 0o666 } else { 0o600 }
}

/// Closes the sandbox, unless the flags say not to.
fn lock_in(args: &Args) -> Result<SandboxReport> {
    if args.no_sandbox {
        tracing::warn!("no sandbox, as asked for");
        return Ok(SandboxReport::off());
    }
    let report = Sandbox::new().enter()?;
    if args.require_sandbox && !report.is_closed() {
        bail!(
            "the sandbox is not in force: landlock {:?}, seccomp {:?}",
            report.landlock,
            report.seccomp
        );
    }
    Ok(report)
}

/// A driver process belongs to its client. What a terminal or a supervisor tells both at once (SIGINT, SIGHUP, and
/// SIGTERM) is the client's to act on, which may have a frame under way: it hangs up, and this process ends. One
/// that is told to end by itself (SIGTERM) gives it the time to do so first.
fn end_with_the_client(signals: SigSet) -> Result<()> {
    signals::thread(move || {
        while let Some(signal) = signals::next(&signals) {
            if signal == Signal::SIGTERM {
                std::thread::sleep(CLIENT_PATIENCE);
                std::process::exit(signals::exit_code(signal).into());
            }
        }
    })
}

/// The first SIGTERM, SIGINT or SIGHUP ends the service in order: what is being executed is answered, within the
/// grace. The second one ends the process at once.
fn wait_for_signals(signals: SigSet, stopper: Stopper, notifier: Arc<Notifier>) -> Result<()> {
    signals::thread(move || {
        let Some(signal) = signals::next(&signals) else { return };
        tracing::info!(%signal, "stopping");
        notifier.stopping();
        drop(stopper);
        let Some(signal) = signals::next(&signals) else { return };
        tracing::warn!(%signal, "told to stop again: ending at once");
        std::process::exit(signals::exit_code(signal).into());
    })
}
