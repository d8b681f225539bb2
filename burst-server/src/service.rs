//! A service: devices, options, and the connections it takes.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use burst_hal::Device;
use burst_wire::Features;
use fmq::Wait;

use crate::limits::{Budget, Charge};
use crate::session::{self, Session};
use crate::{Limits, Listener, ServerError, Stop};

/// Who may use a service, besides its own user and root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Users.
    pub uids: Vec<u32>,
    /// Groups: the client's process must have one of them as its own.
    pub gids: Vec<u32>,
}

impl Access {
    /// Whether a peer with these credentials is let in.
    #[must_use]
    pub fn permits(&self, uid: u32, gid: u32) -> bool {
        let own = rustix::process::geteuid().as_raw();
        uid == 0 || uid == own || self.uids.contains(&uid) || self.gids.contains(&gid)
    }
}

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
}

impl Default for ServiceOptions {
    fn default() -> Self {
        ServiceOptions {
            limits: Limits::default(),
            access: Access::default(),
            wait: Wait::default(),
            features: Features::ALL,
            name: "burst".to_owned(),
        }
    }
}

/// Devices on offer. Cheap to share: all its threads hold it together.
pub struct Service {
    pub(crate) devices: Vec<Arc<dyn Device>>,
    pub(crate) options: ServiceOptions,
    clients: Arc<Budget>,
    next_client: AtomicU64,
    /// Sessions that [`Service::run`] started, to end them when it is stopped.
    running: Mutex<Vec<Running>>,
}

struct Running {
    session: Arc<Session>,
    thread: JoinHandle<()>,
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
        Arc::new(Service {
            devices,
            clients: Budget::new("clients", options.limits.clients),
            options,
            next_client: AtomicU64::new(1),
            running: Mutex::default(),
        })
    }

    /// Takes connections until stopped, each on threads of its own; then ends those that are
    /// left, waits for what they execute just now, and returns.
    ///
    /// # Errors
    /// The listening socket fails. A connection that fails only ends itself.
    pub fn run(self: &Arc<Self>, listener: &Listener, stop: &Stop) -> Result<(), ServerError> {
        let result = self.accept_all(listener, stop);
        let running = std::mem::take(&mut *self.lock());
        for running in &running {
            running.session.close();
        }
        for running in running {
            join(running.thread);
        }
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
        while let Some(socket) = listener.accept(stop)? {
            let session = Arc::new(Session::new(self, socket, self.client_number()));
            self.start(session);
            self.forget_finished();
        }
        Ok(())
    }

    fn start(self: &Arc<Self>, session: Arc<Session>) {
        let charge = self.admit();
        let work = Arc::clone(&session);
        let started = std::thread::Builder::new()
            .name(format!("client-{}", session.number()))
            .spawn(move || {
                if let Err(error) = session::run(&work, charge) {
                    tracing::info!(client = work.number(), %error, "connection ended");
                }
            });
        match started {
            Ok(thread) => self.lock().push(Running { session, thread }),
            // The socket closes with the session: the client sees a hang-up.
            Err(error) => tracing::error!(%error, "no thread for a client"),
        }
    }

    /// A place for one more client, if there is one.
    fn admit(&self) -> Option<Charge> {
        self.clients.charge(1).ok()
    }

    fn client_number(&self) -> u64 {
        self.next_client.fetch_add(1, Ordering::Relaxed)
    }

    fn forget_finished(&self) {
        let mut running = self.lock();
        let (finished, left) =
            std::mem::take(&mut *running).into_iter().partition(|one| one.thread.is_finished());
        *running = left;
        drop(running);
        let finished: Vec<Running> = finished;
        for one in finished {
            join(one.thread);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A panic of a session was reported by its hook when it happened; it ends nobody else.
fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a client's thread panicked");
    }
}
