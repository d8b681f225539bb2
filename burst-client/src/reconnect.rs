//! Objects that outlive the service: when it dies they connect again, prepare again and go on.
//!
//! A request that is under way when the service dies is lost, and its caller gets
//! [`ClientError::PeerDied`] at once. The next use of the object, or one call of its `reconnect`,
//! does everything again: connection, prepared model, burst, memories in slots. What starts the
//! service again (systemd, a supervisor) need not notify this process; attempts go on with longer
//! and longer pauses ([`Backoff`]).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burst_hal::{
    CacheFiles, Capabilities, Device, DeviceStatus, DeviceType, ExecutionOptions, ExecutionResult,
    Extension, Failure, Model, PrepareOptions, PreparedModel, Request, TimePoint,
};
use fmq::Deadline;

use crate::{
    Backoff, Burst, BurstOptions, Client, ClientError, RemoteDevice, RemotePreparedModel, Stream,
    StreamOptions,
};

mod burst;
mod stream;

pub use burst::ReconnectingBurst;
pub use stream::{Outages, ReconnectingStream};

/// Makes a connection, the first and every later one.
type Connector = Box<dyn FnMut() -> Result<Client, ClientError> + Send>;

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
    state: Mutex<State>,
}

struct State {
    connector: Connector,
    device: RemoteDevice,
    /// How many connections there were.
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
        Self::with_connector(device, Backoff::RESTART, move || Client::connect(&path))
    }

    /// As [`ReconnectingDevice::connect`], with another way to a service: one that starts the
    /// service's process itself, say. `connector` is called once now and once per later attempt.
    ///
    /// # Errors
    /// Those of the connector, and as [`Client::device`].
    pub fn with_connector(
        device: &str,
        backoff: Backoff,
        mut connector: impl FnMut() -> Result<Client, ClientError> + Send + 'static,
    ) -> Result<Self, ClientError> {
        let first = connector()?.device(device)?;
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
        mut connector: impl FnMut() -> Result<Client, ClientError> + Send + 'static,
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
        let (first, _) = backoff.run(deadline, may_pass, || connector()?.device(device))?;
        Ok(Self::connected(first, backoff, Box::new(connector)))
    }

    fn connected(first: RemoteDevice, backoff: Backoff, connector: Connector) -> Self {
        let (name, version) = (first.name().to_owned(), first.version_string().to_owned());
        let state = Mutex::new(State { connector, device: first, generation: 1 });
        ReconnectingDevice { shared: Arc::new(Shared { name, version, backoff, state }) }
    }

    /// The device over the connection there is now, alive or not.
    #[must_use]
    pub fn current(&self) -> RemoteDevice {
        self.lock().device.clone()
    }

    /// Connections made so far after the first one.
    #[must_use]
    pub fn reconnects(&self) -> u64 {
        self.lock().generation - 1
    }

    /// Connects again if the service is gone, as often as the back-off says.
    ///
    /// # Errors
    /// The last attempt's.
    pub fn reconnect(&self, deadline: Deadline) -> Result<(), ClientError> {
        self.again(deadline, || self.alive().map(|_| ()))
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
        self.surviving(|| self.prepare_once(model, options))
    }

    fn prepare_once(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<ReconnectingModel>, ClientError> {
        let (device, generation) = self.alive()?;
        let prepared = device.prepare(model, options)?;
        Ok(Arc::new(ReconnectingModel {
            device: self.clone(),
            model: model.clone(),
            options: *options, // its deadline was for the first time alone
            state: Mutex::new((generation, prepared)),
        }))
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
        self.surviving(|| {
            ReconnectingStream::new(self.prepare_once(model, &options.prepare)?, options)
        })
    }

    /// Sets something up, again where the service dies over it and comes back.
    fn surviving<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let deadline = Deadline::after(self.shared.backoff.total);
        for _ in 1..SET_UP_TRIES {
            match attempt() {
                Err(error) if error.is_loss() => {
                    tracing::info!(%error, device = self.shared.name, "lost while setting up");
                    self.reconnect(deadline)?;
                }
                other => return other,
            }
        }
        attempt()
    }

    /// Tries until it works, or until trying again does not help.
    fn again<T>(
        &self,
        deadline: Deadline,
        attempt: impl FnMut() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        Ok(self.shared.backoff.run(deadline, ClientError::may_pass, attempt)?.0)
    }

    /// A device whose service lives, as far as is known, and the number of its connection. One
    /// attempt.
    fn alive(&self) -> Result<(RemoteDevice, u64), ClientError> {
        let mut state = self.lock();
        if !state.device.is_alive() {
            let device = (state.connector)()?.device(&self.shared.name)?;
            if device.version_string() != self.shared.version {
                let (was, is) = (&self.shared.version, device.version_string());
                tracing::warn!(was, is, "the service came back as another version");
            }
            state.device = device;
            state.generation += 1;
            tracing::info!(device = self.shared.name, connection = state.generation, "reconnected");
        }
        Ok((state.device.clone(), state.generation))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A prepared model of a service that may die and come back.
#[derive(Debug)]
pub struct ReconnectingModel {
    device: ReconnectingDevice,
    model: Model,
    options: PrepareOptions,
    /// The number of the connection it was prepared over.
    state: Mutex<(u64, Arc<RemotePreparedModel>)>,
}

impl ReconnectingModel {
    /// The model as it is prepared now, in a service that is alive or not.
    #[must_use]
    pub fn current(&self) -> Arc<RemotePreparedModel> {
        Arc::clone(&self.lock().1)
    }

    /// Connects again if the service is gone, and prepares again if that was not done yet.
    ///
    /// # Errors
    /// The last attempt's.
    pub fn reconnect(&self, deadline: Deadline) -> Result<Arc<RemotePreparedModel>, ClientError> {
        self.device.again(deadline, || self.ready(deadline))
    }

    /// Starts a burst.
    ///
    /// # Errors
    /// As [`RemotePreparedModel::configure_burst`].
    pub fn configure_burst(
        self: &Arc<Self>,
        options: &BurstOptions,
    ) -> Result<ReconnectingBurst, ClientError> {
        ReconnectingBurst::new(self, options)
    }

    /// One attempt.
    fn ready(&self, deadline: Deadline) -> Result<Arc<RemotePreparedModel>, ClientError> {
        let (device, generation) = self.device.alive()?;
        let mut state = self.lock();
        if state.0 != generation {
            let deadline = deadline.as_ns().map(|nanos| TimePoint { nanos });
            let options = PrepareOptions { deadline, ..self.options };
            *state = (generation, device.prepare(&self.model, &options)?);
        }
        Ok(Arc::clone(&state.1))
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Arc<RemotePreparedModel>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PreparedModel for ReconnectingModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        let deadline = options.deadline.map_or(Deadline::never(), |at| Deadline::at_ns(at.nanos));
        match self.reconnect(deadline) {
            Ok(model) => model.execute_synchronously(request, options),
            Err(error) => {
                tracing::debug!(%error, "execution failed");
                ExecutionResult::of(error.status())
            }
        }
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn burst_hal::Burst>, Failure> {
        Ok(Box::new(self.configure_burst(&BurstOptions::default())?))
    }
}

/// Facts about the device are those of the connection there is, its version that of the first one
/// (a service may come back as another version); questions to a service that is gone fail, they
/// do not wait for the next one.
impl Device for ReconnectingDevice {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn version_string(&self) -> &str {
        &self.shared.version
    }

    fn device_type(&self) -> DeviceType {
        self.current().device_type()
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        self.current().capabilities()
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        self.current().supported_extensions()
    }

    fn cache_files_needed(&self) -> CacheFiles {
        self.current().cache_files_needed()
    }

    fn status(&self) -> DeviceStatus {
        self.current().status()
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.current().supported_operations(model)
    }

    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        Ok(self.prepare(model, options)?)
    }
}
