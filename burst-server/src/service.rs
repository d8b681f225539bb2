//! A service: the connections that it takes, and its end.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use burst_hal::log_tags::MANAGER;
use burst_hal::{Device, DeviceType};
use burst_launch::FenceWatcher;
use burst_wire::Features;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::admission::{Admission, Limit, Peer, Users};
use crate::burst::{BurstStarter, SpinShares};
use crate::client::ClientSocket;
use crate::launches::LaunchHost;
use crate::metrics::Metrics;
use crate::panics::lock;
use crate::process::{Listener, Stop};
use crate::running::Running;
use crate::scheduler::{Patience, Scheduler, TurnMeter};
use crate::session::{self, Connection, Host};
use crate::{ServerError, ServiceOptions, threads};

/// How long what was cancelled may take to notice. Drivers look between steps, and within long ones
/// between tiles.
const CANCEL_PATIENCE: Duration = Duration::from_secs(1);

/// Devices on offer. Cheap to share: all its threads hold it together.
pub struct Service {
    host: Arc<Host>,
    next_client: AtomicU64,
    /// Connections that [`Service::run`] accepted, to end them when it is stopped. An entry is
    /// removed when its connection has ended, so that nothing is kept of a client that is gone.
    connections: Mutex<HashMap<u64, Arc<ClientSocket>>>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.host.devices.iter().map(|device| device.name()).collect();
        f.debug_struct("Service").field("devices", &names).finish_non_exhaustive()
    }
}

/// Offers one device at a socket, until the process ends.
///
/// # Errors
/// The socket fails.
pub fn serve(device: Arc<dyn Device>, listener: &Listener) -> Result<(), ServerError> {
    let (_stopper, stop) = Stop::new()?;
    Service::new(vec![device], ServiceOptions::default()).run(listener, &stop)
}

impl Service {
    /// A service for these devices; clients choose among them by name.
    #[must_use]
    pub fn new(devices: Vec<Arc<dyn Device>>, options: ServiceOptions) -> Arc<Self> {
        let performance = options.performance;
        for device in &devices {
            let (name, version, ty) =
                (device.name(), device.version_string(), device.device_type());
            tracing::debug!(target: MANAGER, name, version, %ty, "a device on offer");
        }
        let users = Arc::new(Users::new(&options.limits));
        let admission = Admission::new(options.access, &users);
        let levers = Arc::clone(&performance);
        let meter = Arc::new(TurnMeter::default());
        let turns = Arc::clone(&meter);
        let metrics = Metrics::new(options.time_requests, levers, options.sandbox, users, turns);
        let metrics = Arc::new(metrics);
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let computes_here = devices.iter().any(|device| device.device_type() == DeviceType::Cpu);
        let watcher = Arc::new(FenceWatcher::new("fences"));
        let patience =
            Patience { time: options.turn_patience, watcher: Arc::clone(&watcher), meter };
        let run_tokens = options.run_tokens.or(computes_here.then_some(cores));
        let scheduler = Scheduler::new(run_tokens, patience);
        // A greeting holds for all devices, whoever serves their bursts.
        let takes_differences = options.contexts.values().all(|one| one.takes_differences());
        let features = match takes_differences {
            true => options.features,
            false => options.features.without(Features::DIFFERENCES),
        };
        let bursts = BurstStarter {
            wait: options.wait,
            max_wait: options.max_wait,
            spin_shares: SpinShares::new(cores.get()),
            scheduler: Arc::clone(&scheduler),
            idle_time: options.idle_time,
            queue_datums: options.limits.queue_datums,
            contexts: options.contexts,
            performance,
            metrics: Arc::clone(&metrics),
        };
        let launches = LaunchHost {
            watcher,
            scheduler: Arc::clone(&scheduler),
            meters: Arc::clone(&metrics.limits),
            fence_wait: Duration::from_millis(options.limits.fence_wait_ms),
            cores,
        };
        let host = Host {
            launches: Arc::new(launches),
            devices,
            name: options.name,
            features,
            limits: options.limits,
            admission,
            bursts,
            metrics,
            scheduler,
            grace: options.grace,
        };
        Arc::new(Service {
            host: Arc::new(host),
            next_client: AtomicU64::new(1),
            connections: Mutex::default(),
        })
    }

    /// What the service counts about itself.
    #[must_use]
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.host.metrics)
    }

    /// Takes connections until stopped, each on threads of its own. Then it takes the socket's name away
    /// and ends the connections that are left. What they execute just now may come to its end within
    /// [`ServiceOptions::grace`]; then it is cancelled, and a second later this returns in any case.
    ///
    /// # Errors
    /// The listening socket fails. A connection that fails only ends itself.
    /// [`ServerError::StillRunning`] where something does not give up although it was cancelled: its
    /// threads go on, and end with the process.
    pub fn run(self: &Arc<Self>, listener: &Listener, stop: &Stop) -> Result<(), ServerError> {
        let running = Running::new();
        let result = self.accept_all(listener, stop, &running);
        listener.end();
        for socket in lock(&self.connections).values() {
            socket.stop();
        }
        result.and(self.wait_for_end(&running))
    }

    /// Waits for all that works for clients, for as long as the service is willing to.
    fn wait_for_end(&self, running: &Running) -> Result<(), ServerError> {
        let Host { scheduler, grace, .. } = &*self.host;
        if running.wait_for_all_others(*grace) {
            return Ok(());
        }
        let what = scheduler.computing();
        tracing::warn!(?what, ?grace, "the grace is over: what still runs is cancelled");
        scheduler.cancel_all();
        if running.wait_for_all_others(CANCEL_PATIENCE) {
            return Ok(());
        }
        Err(ServerError::StillRunning { what: scheduler.computing() })
    }

    /// Serves one client on a socket that is connected already, until the client hangs up and what
    /// is executed for it has given up: the whole life of a driver process that belongs to one client.
    ///
    /// # Errors
    /// The client is refused, or does not speak the protocol. [`ServerError::StillRunning`], as
    /// [`Service::run`].
    pub fn serve_socket(self: &Arc<Self>, socket: OwnedFd) -> Result<(), ServerError> {
        let running = Running::new();
        let connection = self.admit(socket, &running)?;
        let result = connection.map_or(Ok(()), |connection| session::run(&self.host, connection));
        result.and(self.wait_for_end(&running))
    }

    fn accept_all(
        self: &Arc<Self>,
        listener: &Listener,
        stop: &Stop,
        running: &Running,
    ) -> Result<(), ServerError> {
        let starved = || self.host.metrics.limits.refused(Limit::Descriptors);
        while let Some(socket) = listener.accept(stop, starved)? {
            match self.admit(socket, running) {
                Ok(Some(connection)) => self.start(connection),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "a connection cannot be looked at"),
            }
        }
        Ok(())
    }

    /// Looks whose connection it is, and takes it in or refuses it. This runs on the one thread that
    /// accepts, so it waits for nothing.
    fn admit(&self, socket: OwnedFd, running: &Running) -> Result<Option<Connection>, ServerError> {
        let system = |call| move |errno| ServerError::System { call, errno };
        let peer = Peer::of(&socket).map_err(system("getsockopt"))?;
        let mut ready = [PollFd::new(&socket, PollFlags::IN)];
        let has_greeted = poll(&mut ready, Some(&Timespec::default())).map_err(system("poll"))? > 0;
        match self.host.admission.accept(peer, has_greeted) {
            Ok(accepted) => Ok(Some(Connection {
                socket: Arc::new(ClientSocket::new(socket)),
                number: self.next_client.fetch_add(1, Ordering::Relaxed),
                accepted,
                running: running.clone(),
            })),
            Err(refusal) => {
                session::refuse(&self.host, &socket, &refusal);
                Ok(None)
            }
        }
    }

    /// Serves a client on a thread of its own.
    fn start(self: &Arc<Self>, connection: Connection) {
        let number = connection.number;
        lock(&self.connections).insert(number, Arc::clone(&connection.socket));
        // Dropped last: `Service::run` waits until the entry is removed, too.
        let running = connection.running.clone();
        let user = Arc::clone(connection.accepted.user());
        let entry = Entry { service: Arc::clone(self), number };
        let parcel = (running, entry, Arc::clone(&user), connection);
        let started = threads::start(format!("client-{number}"), parcel, |parcel| {
            let (_running, entry, user, connection) = parcel;
            if let Err(error) = session::run(&entry.service.host, connection)
                && let Some(left_out) = user.lines().next()
            {
                tracing::info!(client = entry.number, %error, left_out, "connection ended");
            }
        });
        if started.is_err() {
            // The socket closes with its last owner: the client sees a hang-up.
            self.host.metrics.limits.refused(Limit::Threads);
            if let Some(left_out) = user.lines().next() {
                let client = number;
                tracing::error!(client, left_out, "no thread for a client, which is disconnected");
            }
        }
    }
}

/// A connection's entry in [`Service::connections`], removed when dropped: also when its thread
/// panics, and when no thread can be started for it.
struct Entry {
    service: Arc<Service>,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let socket = lock(&self.service.connections).remove(&self.number);
        drop(socket); // after the lock is let go of
        self.service.host.metrics.limits.client_is_gone();
    }
}
