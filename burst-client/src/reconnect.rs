//! Objects that outlive the service: when it dies they connect again, prepare again and go on.
//!
//! A request that is under way when the service dies is lost, and its caller gets
//! [`ClientError::PeerDied`] at once. The next use of the object, or one call of its `reconnect`,
//! does everything again: connection, prepared model, burst, memories in slots. What starts the
//! service again (systemd, a supervisor) need not notify this process; attempts go on with longer
//! and longer pauses ([`Backoff`]).

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use burst_hal::{
    Caller, CompilationCache, Device, ExecutionOptions, ExecutionResult, Model, PrepareOptions,
    Request, TimePoint,
};
use fmq::Deadline;
use rustix::io::Errno;

use crate::waiting::{Patience, answer_by, lock};
use crate::{
    Backoff, Burst, BurstOptions, Client, ClientError, ConnectOptions, RemoteDevice,
    RemotePreparedModel, Stream, StreamOptions,
};

mod burst;
mod contract;
mod renewable;
mod stream;

pub use burst::ReconnectingBurst;
use renewable::Renewable;
pub use stream::{Outages, ReconnectingStream};

/// Makes a connection by a deadline, the first and every later one.
type Connector = Box<dyn FnMut(Deadline) -> Result<Client, ClientError> + Send>;

/// Services that one set-up may outlive, and one more.
const SET_UP_TRIES: u32 = 3;

/// A device of a service that may die and come back. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ReconnectingDevice {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    /// As the first connection had it.
    version: String,
    backoff: Backoff,
    /// Locked by the one thread that connects again, and by no other.
    connector: Mutex<Connector>,
    connected: Renewable<Connected>,
}

/// A device, and how many connections there were until its own.
#[derive(Debug, Clone)]
struct Connected {
    device: RemoteDevice,
    generation: u64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReconnectingDevice").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ReconnectingDevice {
    /// Connects to the service that listens at `path` and finds its device of this name. The
    /// first connection is made at once or not at all.
    ///
    /// # Errors
    /// As [`Client::connect`] and [`Client::device`].
    pub fn connect(path: impl Into<PathBuf>, device: &str) -> Result<Self, ClientError> {
        let path = path.into();
        Self::with_connector(device, Backoff::RESTART, move |deadline| {
            Client::connect_with(&path, &ConnectOptions::default().until(deadline))
        })
    }

    /// As [`ReconnectingDevice::connect`], with another way to a service: one that starts the
    /// service's process itself, say. `connector` is called once now and once per later attempt, with
    /// the deadline of whoever needs the connection. Callers who have less time do not wait for it.
    ///
    /// # Errors
    /// Those of the connector, and as [`Client::device`].
    pub fn with_connector(
        device: &str,
        backoff: Backoff,
        mut connector: impl FnMut(Deadline) -> Result<Client, ClientError> + Send + 'static,
    ) -> Result<Self, ClientError> {
        let first = connector(Deadline::never())?.device(device)?;
        Ok(Self::connected(first, backoff, Box::new(connector)))
    }

    /// As [`ReconnectingDevice::with_connector`], for a service that may not be there yet: the
    /// first connection is tried for as later ones are, until `deadline`. `waiting` is called once,
    /// with the first failure that may pass. Something else than such a service at the other end
    /// does not.
    ///
    /// # Errors
    /// The last attempt's.
    pub fn when_there(
        device: &str,
        backoff: Backoff,
        deadline: Deadline,
        mut connector: impl FnMut(Deadline) -> Result<Client, ClientError> + Send + 'static,
        waiting: impl FnOnce(&ClientError),
    ) -> Result<Self, ClientError> {
        let mut waiting = Some(waiting);
        let may_pass = |error: &ClientError| {
            let passes = error.may_pass() && !matches!(error, ClientError::NotThisProtocol);
            if let Some(say) = waiting.take_if(|_| passes) {
                say(error);
            }
            passes
        };
        let connect = || connector(deadline)?.device_until(device, deadline);
        let (first, _) = backoff.run(deadline, may_pass, connect)?;
        Ok(Self::connected(first, backoff, Box::new(connector)))
    }

    fn connected(first: RemoteDevice, backoff: Backoff, connector: Connector) -> Self {
        let (name, version) = (first.name().to_owned(), first.version_string().to_owned());
        let connected = Renewable::new(Connected { device: first, generation: 1 });
        let connector = Mutex::new(connector);
        let shared = Shared { name, version, backoff, connector, connected };
        ReconnectingDevice { shared: Arc::new(shared) }
    }

    /// The device over the connection there is now, alive or not.
    #[must_use]
    pub fn current(&self) -> RemoteDevice {
        self.shared.connected.current().device
    }

    /// Connections made so far after the first one.
    #[must_use]
    pub fn reconnects(&self) -> u64 {
        self.shared.connected.current().generation - 1
    }

    /// Connects again if the service is gone, as often as the back-off says. One thread does so at a
    /// time; others wait for it, each until its own deadline.
    ///
    /// # Errors
    /// The last attempt's; [`ClientError::Timeout`].
    pub fn reconnect(&self, deadline: Deadline) -> Result<(), ClientError> {
        self.reconnect_with(deadline.into())
    }

    fn reconnect_with(&self, patience: Patience<'_>) -> Result<(), ClientError> {
        self.again(patience, || self.alive(patience).map(|_| ()))
    }

    /// As [`ReconnectingDevice::reconnect`], with a single attempt: nobody waits for a service that is not there.
    ///
    /// # Errors
    /// The attempt's; [`ClientError::Timeout`].
    pub fn try_reconnect(&self, deadline: Deadline) -> Result<(), ClientError> {
        self.alive(deadline.into()).map(|_| ())
    }

    /// Makes a model ready to execute, now and after every reconnection. A service that dies over
    /// it is waited for and asked again, twice: a model may be what kills it.
    ///
    /// # Errors
    /// As [`RemoteDevice::prepare`].
    pub fn prepare(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<ReconnectingModel>, ClientError> {
        self.prepare_with(model, options, answer_by(options.deadline).into())
    }

    fn prepare_with(
        &self,
        model: &Model,
        options: &PrepareOptions,
        patience: Patience<'_>,
    ) -> Result<Arc<ReconnectingModel>, ClientError> {
        self.surviving(patience, || self.prepare_once(model, options, patience))
    }

    /// As [`ReconnectingDevice::prepare`], and the device keeps the compilation in these files where it can
    /// use them. That is done once: after a reconnection the model is prepared without files.
    ///
    /// # Errors
    /// As [`RemoteDevice::prepare_caching`].
    pub fn prepare_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
    ) -> Result<Arc<ReconnectingModel>, ClientError> {
        self.prepare_caching_with(model, options, cache, answer_by(options.deadline).into())
    }

    fn prepare_caching_with(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        patience: Patience<'_>,
    ) -> Result<Arc<ReconnectingModel>, ClientError> {
        self.surviving(patience, || {
            let origin = Origin::Model { model: model.clone(), options: *options };
            self.prepare_from(origin, patience, |device| {
                device.prepare_caching_with(model, options, cache, patience)
            })
        })
    }

    /// Makes the model ready that was kept in these files, now and after every reconnection: it keeps
    /// descriptors of them, as nobody but a service can read the model. A service that comes back with
    /// another key, or as another version, refuses them.
    ///
    /// # Errors
    /// As [`RemoteDevice::prepare_from_cache`]; [`ClientError::System`] where the process has no descriptor
    /// left.
    pub fn prepare_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
    ) -> Result<Arc<ReconnectingModel>, ClientError> {
        self.prepare_from_cache_with(cache, deadline, answer_by(deadline).into())
    }

    fn prepare_from_cache_with(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        patience: Patience<'_>,
    ) -> Result<Arc<ReconnectingModel>, ClientError> {
        self.surviving(patience, || {
            let origin = Origin::Files(same_files(cache)?);
            self.prepare_from(origin, patience, |device| {
                device.prepare_from_cache_with(cache, deadline, patience)
            })
        })
    }

    fn prepare_once(
        &self,
        model: &Model,
        options: &PrepareOptions,
        patience: Patience<'_>,
    ) -> Result<Arc<ReconnectingModel>, ClientError> {
        let origin = Origin::Model { model: model.clone(), options: *options };
        self.prepare_from(origin, patience, |device| device.prepare_with(model, options, patience))
    }

    /// One attempt to make a model ready for the first time.
    fn prepare_from(
        &self,
        origin: Origin,
        patience: Patience<'_>,
        prepare: impl FnOnce(&RemoteDevice) -> Result<Arc<RemotePreparedModel>, ClientError>,
    ) -> Result<Arc<ReconnectingModel>, ClientError> {
        let Connected { device, generation } = self.alive(patience)?;
        let prepared = Renewable::new(Prepared { model: prepare(&device)?, generation });
        Ok(Arc::new(ReconnectingModel { device: self.clone(), origin, prepared }))
    }

    /// Prepares a model and sets everything up to run it often. A service that dies over it is
    /// treated as by [`ReconnectingDevice::prepare`].
    ///
    /// # Errors
    /// As [`RemoteDevice::stream`].
    pub fn stream(
        &self,
        model: &Model,
        options: &StreamOptions,
    ) -> Result<ReconnectingStream, ClientError> {
        let patience = answer_by(options.prepare.deadline).into();
        self.surviving(patience, || {
            let prepared = self.prepare_once(model, &options.prepare, patience)?;
            ReconnectingStream::new(prepared, model, options)
        })
    }

    /// Sets something up, again where the service dies over it and comes back.
    fn surviving<T>(
        &self,
        patience: Patience<'_>,
        mut attempt: impl FnMut() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let patience = patience.with_deadline(Deadline::after(self.shared.backoff.total));
        for _ in 1..SET_UP_TRIES {
            match attempt() {
                Err(error) if error.is_loss() => {
                    tracing::info!(%error, device = self.shared.name, "lost while setting up");
                    self.reconnect_with(patience)?;
                }
                other => return other,
            }
        }
        attempt()
    }

    /// Tries until it works, or until trying again does not help.
    fn again<'a, T>(
        &self,
        patience: impl Into<Patience<'a>>,
        attempt: impl FnMut() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        Ok(self.shared.backoff.run(patience, ClientError::may_pass, attempt)?.0)
    }

    /// A device whose service lives, as far as is known, and the number of its connection. One
    /// attempt.
    fn alive(&self, patience: Patience<'_>) -> Result<Connected, ClientError> {
        patience.check()?;
        let is_alive = |connected: &Connected| connected.device.is_alive();
        self.shared.connected.renew(patience, is_alive, |old| {
            let deadline = patience.until();
            let client = lock(&self.shared.connector)(deadline)?;
            let device = client.device_until(&self.shared.name, deadline)?;
            if device.version_string() != self.shared.version {
                let (was, is) = (&self.shared.version, device.version_string());
                tracing::warn!(was, is, "the service came back as another version");
            }
            let generation = old.generation + 1;
            tracing::info!(device = self.shared.name, connection = generation, "reconnected");
            Ok(Connected { device, generation })
        })
    }
}

/// A prepared model of a service that may die and come back.
#[derive(Debug)]
pub struct ReconnectingModel {
    device: ReconnectingDevice,
    origin: Origin,
    prepared: Renewable<Prepared>,
}

/// What a model is made ready from, again with every connection.
#[derive(Debug)]
enum Origin {
    /// The model. The deadline of the options was for the first time alone.
    Model { model: Model, options: PrepareOptions },
    /// Files that a device has kept it in.
    Files(CompilationCache),
}

/// The same files by descriptors of their own.
fn same_files(cache: &CompilationCache) -> Result<CompilationCache, ClientError> {
    let again = |files: &[File]| -> Result<Vec<File>, ClientError> {
        let copies = files.iter().map(|file| file.as_fd().try_clone_to_owned().map(File::from));
        copies.collect::<std::io::Result<_>>().map_err(|error| ClientError::System {
            call: "fcntl(F_DUPFD_CLOEXEC)",
            errno: Errno::from_io_error(&error).unwrap_or(Errno::MFILE),
        })
    };
    let (model, data) = (again(&cache.model)?, again(&cache.data)?);
    Ok(CompilationCache { token: cache.token, model, data })
}

/// A model as it was prepared, and over which connection.
#[derive(Debug, Clone)]
struct Prepared {
    model: Arc<RemotePreparedModel>,
    generation: u64,
}

impl ReconnectingModel {
    /// The model as it is prepared now, in a service that is alive or not.
    #[must_use]
    pub fn current(&self) -> Arc<RemotePreparedModel> {
        self.prepared.current().model
    }

    /// Connects again if the service is gone, and prepares again if that was not done yet.
    ///
    /// # Errors
    /// The last attempt's.
    pub fn reconnect(&self, deadline: Deadline) -> Result<Arc<RemotePreparedModel>, ClientError> {
        self.reconnect_with(deadline.into())
    }

    fn reconnect_with(
        &self,
        patience: Patience<'_>,
    ) -> Result<Arc<RemotePreparedModel>, ClientError> {
        self.device.again(patience, || self.ready(patience))
    }

    /// Starts a burst. A service that is gone, or dies over it, is treated as by
    /// [`ReconnectingDevice::prepare`].
    ///
    /// # Errors
    /// As [`RemotePreparedModel::configure_burst`].
    pub fn configure_burst(
        self: &Arc<Self>,
        options: &BurstOptions,
    ) -> Result<ReconnectingBurst, ClientError> {
        let deadline = Deadline::after(self.device.shared.backoff.total);
        self.device.surviving(deadline.into(), || {
            let burst = self.reconnect(deadline)?.configure_burst_until(options, deadline)?;
            Ok(ReconnectingBurst::new(self, options, burst))
        })
    }

    /// One attempt.
    fn ready(&self, patience: Patience<'_>) -> Result<Arc<RemotePreparedModel>, ClientError> {
        let Connected { device, generation } = self.device.alive(patience)?;
        let is_current = |prepared: &Prepared| prepared.generation >= generation;
        let prepared = self.prepared.renew(patience, is_current, |_| {
            let deadline = patience.until().as_ns().map(|nanos| TimePoint { nanos });
            let model = match &self.origin {
                Origin::Model { model, options } => {
                    let options = PrepareOptions { deadline, ..*options };
                    device.prepare_with(model, &options, patience)?
                }
                Origin::Files(cache) => {
                    device.prepare_from_cache_with(cache, deadline, patience)?
                }
            };
            Ok(Prepared { model, generation })
        })?;
        Ok(prepared.model)
    }
}
