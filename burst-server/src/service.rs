//! A service: devices, options, and the connections it takes.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burst_hal::Device;
use burst_wire::Features;
use fmq::Wait;

use crate::admission::limits::{Budget, Charge};
use crate::admission::users::Users;
use crate::session::{self, Session};
use crate::{
    BurstContexts, Limit, Limits, Listener, Metrics, Performance, SandboxReport, ServerError, Stop,
};

/// Who may use a service, besides its own user and root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Users.
    pub uids: Vec<u32>,
    /// Groups: the client's process must have one of them as its own.
    pub gids: Vec<u32>,
    /// Everybody: who may open the socket's file is said by its mode alone.
    pub anyone: bool,
}

impl Access {
    /// Whether a peer with these credentials is let in.
    #[must_use]
    pub fn permits(&self, uid: u32, gid: u32) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.anyone
            || uid == 0
            || uid == own
            || self.uids.contains(&uid)
            || self.gids.contains(&gid)
    }
}

/// How long a burst keeps the driver's resources while no request comes.
const IDLE_TIME: Duration = Duration::from_secs(30);

/// How a service behaves; the default is right for most.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// What each client may use.
    pub limits: Limits,
    /// Who may connect.
    pub access: Access,
    /// How bursts wait whose client has no wish.
    pub wait: Wait,
    /// Additions to HAL 1.2 that are offered.
    pub features: Features,
    /// The program's name, for clients.
    pub name: String,
    /// After how long without requests a burst lets go of what the driver can make again, and of
    /// its wish for speed; `None` for never. The next request brings both back.
    pub idle_time: Option<Duration>,
    /// How the system is asked to stay quick while bursts live; by default it is not.
    pub performance: Arc<Performance>,
    /// What the sandbox said that this process is in, for the metrics.
    pub sandbox: SandboxReport,
    /// Who serves bursts, in place of a thread of ours for each.
    pub contexts: Option<Arc<dyn BurstContexts>>,
    /// Takes the time of every request for the metrics, also of those whose client did not ask
    /// for it. Costs a look at the clock per request.
    pub time_requests: bool,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        ServiceOptions {
            limits: Limits::default(),
            access: Access::default(),
            wait: Wait::default(),
            features: Features::ALL,
            name: "burst".to_owned(),
            idle_time: Some(IDLE_TIME),
            performance: Arc::new(Performance::off()),
            sandbox: SandboxReport::off(),
            contexts: None,
            time_requests: false,
        }
    }
}

/// Devices on offer. Cheap to share: all its threads hold it together.
pub struct Service {
    pub(crate) devices: Vec<Arc<dyn Device>>,
    pub(crate) options: ServiceOptions,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) users: Users,
    clients: Arc<Budget>,
    next_client: AtomicU64,
    /// Sessions that [`Service::run`] started, to end them when it is stopped. Each takes itself
    /// out, so that a client that is gone has nothing left here.
    running: Mutex<HashMap<u64, Arc<Session>>>,
    /// Somebody was taken out of `running`.
    fewer: Condvar,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.devices.iter().map(|device| device.name()).collect();
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
        let performance = Arc::clone(&options.performance);
        let metrics = Metrics::new(options.time_requests, performance, options.sandbox);
        Arc::new(Service {
            devices,
            users: Users::new(&options.limits, &metrics.limits),
            clients: Budget::new(Limit::Clients, options.limits.clients, &metrics.limits),
            metrics: Arc::new(metrics),
            options,
            next_client: AtomicU64::new(1),
            running: Mutex::default(),
            fewer: Condvar::new(),
        })
    }

    /// What the service counts about itself.
    #[must_use]
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Takes connections until stopped, each on threads of its own; then ends those that are
    /// left, waits for what they execute just now, and returns.
    ///
    /// # Errors
    /// The listening socket fails. A connection that fails only ends itself.
    pub fn run(self: &Arc<Self>, listener: &Listener, stop: &Stop) -> Result<(), ServerError> {
        let result = self.accept_all(listener, stop);
        let mut running = self.lock();
        for session in running.values() {
            session.close();
        }
        while !running.is_empty() {
            running = self.fewer.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        drop(running);
        result
    }

    /// Serves one client on a socket that is connected already, until the client hangs up: the
    /// whole life of a driver process that belongs to one client.
    ///
    /// # Errors
    /// The client is refused, or does not speak the protocol.
    pub fn serve_socket(self: &Arc<Self>, socket: OwnedFd) -> Result<(), ServerError> {
        let session = Arc::new(Session::new(self, socket, self.client_number()));
        let charge = self.admit();
        session::run(&session, charge)
    }

    fn accept_all(self: &Arc<Self>, listener: &Listener, stop: &Stop) -> Result<(), ServerError> {
        let starved = || self.metrics.limits.refused(Limit::Descriptors);
        while let Some(socket) = listener.accept(stop, starved)? {
            self.start(Session::new(self, socket, self.client_number()));
        }
        Ok(())
    }

    /// Serves a client on a thread of its own.
    fn start(self: &Arc<Self>, session: Session) {
        let place = self.admit();
        let number = session.number();
        let session = Arc::new(session);
        let entry = Running { service: Arc::clone(self), number };
        self.lock().insert(number, Arc::clone(&session));
        let started =
            std::thread::Builder::new().name(format!("client-{number}")).spawn(move || {
                let _entry = entry;
                if let Err(error) = session::run(&session, place) {
                    tracing::info!(client = number, %error, "connection ended");
                }
            });
        if let Err(error) = started {
            // The socket closes with the session: the client sees a hang-up.
            self.metrics.limits.refused(Limit::Threads);
            tracing::error!(%error, "no thread for a client");
        }
    }

    /// A place for one more client, if there is one.
    fn admit(&self) -> Option<Charge> {
        self.clients.charge(1).ok()
    }

    fn client_number(&self) -> u64 {
        self.next_client.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Session>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's place among the running ones, taken out when dropped: also when its thread
/// panics, and when there is no thread for it.
struct Running {
    service: Arc<Service>,
    number: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let session = self.service.lock().remove(&self.number);
        drop(session); // the last reference: its socket is closed before anybody is told
        self.service.fewer.notify_all();
    }
}
