//! A driver in another process: a running service, or a private one started for this stream.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use burst_client::{
    Backoff, Client, ClientError, ConnectOptions, Deadline, Outages, ReconnectingDevice,
    ReconnectingStream, RetryPolicy, Stream, StreamOptions,
};
use burst_hal::trace::{Marks, SpanKind};
use burst_hal::{ErrorStatus, ExecutionPreference};
use burst_harness::WaitKind;
use burst_tasks::{Outputs, TaskError};
use burst_tflite::Imported;

use crate::driver_process::DriverProcess;
use crate::out;
use crate::route::RouteArg;
use crate::service;
use crate::stream::path::Options;
use crate::trace::{Tracing, told};

struct Remote {
    // Dropped in this order: the connection first, so that a private driver process sees the
    // hang-up and ends.
    stream: Link,
    process: PrivateDriver,
    /// As asked for.
    route: RouteArg,
    /// Whether requests may go over the control socket where no burst carries them.
    falls_back: bool,
    /// Whether it was said that they do.
    has_said: bool,
    /// How this end of a burst waits.
    wait: WaitKind,
}

/// A stream, with or without a life after its driver's.
enum Link {
    Plain(Box<Stream>),
    Reconnecting(Box<ReconnectingStream>),
}

/// The driver process of our own, where there is one; another one after each death.
type PrivateDriver = Arc<Mutex<Option<DriverProcess>>>;

/// Connects, prepares and sets up memory.
pub(super) fn open(wanted: &Options<'_>, imported: &Imported) -> Result<Box<dyn super::Path>> {
    fmq::warm_up();
    let mut options = StreamOptions::default();
    options.wait = wanted.wait.into();
    options.route = wanted.route.route();
    options.retry = RetryPolicy { fall_back: wanted.falls_back, ..RetryPolicy::default() };
    options.states = imported.state_bindings();
    options.prepare = wanted.prepare();
    // Bound before the connection, so that on an error the connection goes first, and the process
    // ends.
    let process = PrivateDriver::default();
    let mut connect = connector(wanted, &process);
    let model = &imported.model;
    let lost = |error: ClientError| match wanted.socket {
        Some(socket) if !matches!(error, ClientError::UnknownCall { .. }) => {
            service::at(socket, error)
        }
        _ => told(error),
    };
    let stream = if wanted.reconnect {
        let device = reconnecting(wanted, connect).map_err(lost)?;
        device.stream(model, &options).map(|stream| Link::Reconnecting(Box::new(stream)))
    } else {
        let device = connect(Deadline::never()).map_err(lost)?.device(wanted.device)?;
        device.stream(model, &options).map(|stream| Link::Plain(Box::new(stream)))
    };
    let needs_burst = wanted.route == RouteArg::Burst && !wanted.falls_back;
    let stream = stream.context(if needs_burst {
        "the driver cannot run this model over --path burst"
    } else {
        "the driver cannot run this model"
    })?;
    // As the client and the service do: for a model that is to save energy neither end polls.
    let wait = match wanted.preference {
        ExecutionPreference::LowPower => WaitKind::Sleep,
        _ => wanted.wait,
    };
    let (route, falls_back) = (wanted.route, wanted.falls_back);
    let mut remote = Remote { stream, process, route, falls_back, has_said: false, wait };
    remote.note_route()?;
    Ok(Box::new(remote))
}

/// A device that outlives its service. One that others run may be about to start; a process of our
/// own that does not start will not do so later.
fn reconnecting(
    wanted: &Options<'_>,
    connect: impl FnMut(Deadline) -> Result<Client, ClientError> + Send + 'static,
) -> Result<ReconnectingDevice, ClientError> {
    let (device, backoff) = (wanted.device, Backoff::RESTART);
    if wanted.socket.is_none() {
        return ReconnectingDevice::with_connector(device, backoff, connect);
    }
    let longest = wanted.deadline.min(backoff.total);
    let waiting = |error: &ClientError| {
        out::say(format_args!("{error}; waiting up to {} s for one", longest.as_secs_f32()));
    };
    let deadline = Deadline::after(longest);
    ReconnectingDevice::when_there(device, backoff, deadline, connect, waiting)
}

/// The way to the driver, for the first time and every later one.
fn connector(
    wanted: &Options<'_>,
    process: &PrivateDriver,
) -> impl FnMut(Deadline) -> Result<Client, ClientError> + Send + 'static {
    let socket: Option<PathBuf> = wanted.socket.map(PathBuf::from);
    let (wait, threads) = (wanted.wait.name(), wanted.threads.count);
    let device = wanted.device.to_owned();
    let process = Arc::clone(process);
    let tracing = wanted.tracing.cloned();
    move |deadline| {
        let mut marks = Marks::begin(tracing.as_ref().map(Tracing::sink));
        let client = match &socket {
            Some(path) => Client::connect_with(path, &ConnectOptions::default().until(deadline)),
            None => start_private(&process, wait, &device, threads),
        }?;
        marks.mark(SpanKind::Connect);
        if let Some(tracing) = &tracing {
            tracing.attach(&client)?;
        }
        Ok(client)
    }
}

/// Starts a driver process of our own, which replaces the one before, and connects to it.
fn start_private(
    process: &PrivateDriver,
    wait: &str,
    device: &str,
    threads: u32,
) -> Result<Client, ClientError> {
    let failed = |error: anyhow::Error| {
        ClientError::Connector(Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(error)))
    };
    let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
    drop(process.take()); // it is dead; dropping reaps it
    let (started, socket) = DriverProcess::start(wait, device, threads).map_err(failed)?;
    let pid = started.pid();
    *process = Some(started);
    Client::from_socket(socket)
        .with_context(|| format!("no contact with the driver process {pid}"))
        .map_err(failed)
}

impl Remote {
    fn stream(&mut self) -> &mut Stream {
        match &mut self.stream {
            Link::Plain(stream) => stream,
            Link::Reconnecting(stream) => stream.stream(),
        }
    }

    /// The status of a request whose deadline has passed: the driver's word, where it gave one.
    fn missed_deadline(&self) -> ErrorStatus {
        match self.current().result().status {
            status @ ErrorStatus::MissedDeadlinePersistent => status,
            _ => ErrorStatus::MissedDeadlineTransient,
        }
    }

    /// The error that ends the stream, with how a driver process of our own ended.
    fn why(&self, error: ClientError) -> anyhow::Error {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = match (&error, process.as_mut()) {
            (ClientError::PeerDied { .. }, Some(process)) => process.how_it_ended(),
            _ => None,
        };
        match ended {
            Some(how) => anyhow::anyhow!("{error}: {how}"),
            None => error.into(),
        }
    }

    /// Says once that requests do not go through a burst although one was asked for.
    ///
    /// # Errors
    /// Nothing else was to be taken for it.
    fn note_route(&mut self) -> Result<()> {
        if self.has_said || self.route != RouteArg::Burst || self.carries() {
            return Ok(());
        }
        let why = match self.current().burst() {
            None => "the service grants no burst",
            Some(_) => "a request does not fit into the queues that the service grants",
        };
        if !self.falls_back {
            bail!("--path burst: {why}");
        }
        self.has_said = true;
        out::say(format_args!(
            "burst: {why}; requests go over the control socket, as with --path sync"
        ));
        Ok(())
    }

    /// Whether a burst carries the requests, as far as is known.
    fn carries(&self) -> bool {
        self.current().burst().is_some_and(|burst| !burst.fell_back())
    }

    fn current(&self) -> &Stream {
        match &self.stream {
            Link::Plain(stream) => stream,
            Link::Reconnecting(stream) => stream.current(),
        }
    }
}

impl Outputs for Remote {
    fn output(&mut self, index: usize) -> Result<&[u8], TaskError> {
        Outputs::output(self.stream(), index)
    }
}

impl super::Path for Remote {
    fn input(&mut self) -> &mut [u8] {
        self.stream().input(0)
    }

    fn execute(&mut self, deadline: Duration) -> Result<(ErrorStatus, Option<Duration>)> {
        let deadline = Deadline::after(deadline);
        let (ran, survives) = match &mut self.stream {
            Link::Plain(stream) => (stream.run(deadline).map(|_| ()), false),
            Link::Reconnecting(stream) => (stream.run(deadline).map(|_| ()), true),
        };
        match ran {
            Ok(()) => {
                self.note_route()?;
                Ok((ErrorStatus::None, self.current().driver_time()))
            }
            Err(ClientError::Execution { status }) => Ok((status, None)),
            // Whichever end saw it pass; a device in this process says the same. One that passes while nobody is
            // reached is another matter.
            Err(ClientError::Timeout) if self.current().is_alive() => {
                Ok((self.missed_deadline(), None))
            }
            Err(error) if survives && error.is_loss() => {
                tracing::info!(%error, "the request is lost");
                Ok((ErrorStatus::DeviceUnavailable, None))
            }
            Err(error) => Err(self.why(error)),
        }
    }

    fn reset_states(&mut self) {
        self.stream().reset_states();
    }

    fn driver_pid(&self) -> u32 {
        self.current().driver_pid()
    }

    fn route(&self) -> RouteArg {
        match self.route {
            RouteArg::Burst if !self.carries() => RouteArg::Sync,
            route => route,
        }
    }

    fn wait(&self) -> Option<WaitKind> {
        (self.route() == RouteArg::Burst).then_some(self.wait)
    }

    fn outages(&self) -> Option<Outages> {
        match &self.stream {
            Link::Plain(_) => None,
            Link::Reconnecting(stream) => Some(stream.outages()),
        }
    }

    fn retries(&self) -> u64 {
        self.current().retries()
    }
}
