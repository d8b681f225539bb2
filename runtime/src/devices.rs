//! A device as the framework sees it: what it answered once, and its newest connection.

mod local;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use burst_client::{Deadline, ReconnectingDevice, deadline_at};
use burst_driver::{CpuDevice, DeviceOptions, Engine, ReferenceDevice, Variant};
use burst_hal::{
    Buffer, BufferRequest, CACHE_FILES_MAX, CacheFiles, Caller, Capabilities, Device, DeviceType,
    Extension, Failure, HalVersion, Model, ResultCode, TimePoint,
};

use self::local::LocalDevice;
pub(crate) use self::local::guarded;

use crate::cache_key;
use crate::error::{Error, Result};
use crate::launching::device_launcher;
use crate::patience::Patience;
use crate::process::check_process;
use crate::remote::Remote;
use crate::service::Service;

/// The name of the device of last resort; no service may take it.
pub(crate) const REFERENCE_NAME: &str = ReferenceDevice::NAME;
/// How long [`RuntimeDevice::wait`] waits: a supervisor starts a service again within seconds.
const WAIT_LONGEST: Duration = Duration::from_secs(10);
/// How long a compilation waits for a service that was lost: as long as one that is there needs to answer.
const RECONNECT_LONGEST: Duration = Duration::from_secs(1);

/// A device that compilations may use. What it says of itself was asked once and holds for its life.
pub struct RuntimeDevice {
    name: String,
    version: String,
    ty: DeviceType,
    hal_version: HalVersion,
    capabilities: Capabilities,
    extensions: Vec<Extension>,
    cache_files: CacheFiles,
    is_reference: bool,
    connection: Connection,
}

enum Connection {
    Local(LocalDevice),
    Remote { device: ReconnectingDevice, patience: Patience },
}

/// A device that is there, for one compilation.
#[derive(Clone)]
pub(crate) enum LiveDevice {
    /// Of this process.
    Local(Arc<dyn Device>),
    /// Over the connection there is now.
    Remote(Remote),
}

impl RuntimeDevice {
    /// A device of this process.
    ///
    /// # Errors
    /// It does not answer what every device has to.
    pub fn local(device: Arc<dyn Device>) -> Result<Arc<Self>> {
        Self::of_this_process(device, false)
    }

    /// A device of this process that runs what others fail at, under the name `nnapi-reference`.
    ///
    /// # Errors
    /// As [`RuntimeDevice::local`].
    pub fn reference(device: Arc<dyn Device>) -> Result<Arc<Self>> {
        Self::of_this_process(device, true)
    }

    /// The CPU in this process. It keeps compilations, for applications that ask for it, under a key in the
    /// user's folder for state.
    ///
    /// # Errors
    /// As [`RuntimeDevice::local`].
    pub fn cpu() -> Result<Arc<Self>> {
        let state = cache_key::state_folder(|name| std::env::var_os(name).map(Into::into));
        Self::cpu_with(&Arc::new(Engine::new(DeviceOptions::default())), &Variant::CPU, state)
    }

    /// The same on this engine, with the key in this folder.
    pub(crate) fn cpu_with(
        engine: &Arc<Engine>,
        variant: &'static Variant,
        state: Option<PathBuf>,
    ) -> Result<Arc<Self>> {
        check_process()?;
        let device = device_launcher().wrap(Arc::new(CpuDevice::of(engine, variant)));
        let asked = Self::ask(&*device, device.name().to_owned(), false)?;
        let local = LocalDevice::cpu(device, (engine, variant), state);
        Ok(Arc::new(asked(Connection::Local(local))))
    }

    /// A device of this process that executes in all ways itself.
    #[cfg(test)]
    pub(crate) fn bare(device: Arc<dyn Device>) -> Result<Arc<Self>> {
        let asked = Self::ask(&*device, device.name().to_owned(), false)?;
        Ok(Arc::new(asked(Connection::Local(LocalDevice::of(device)))))
    }

    fn of_this_process(device: Arc<dyn Device>, is_reference: bool) -> Result<Arc<Self>> {
        check_process()?;
        let device = device_launcher().wrap(device);
        let name = if is_reference { REFERENCE_NAME } else { device.name() }.to_owned();
        let asked = Self::ask(&*device, name, is_reference)?;
        Ok(Arc::new(asked(Connection::Local(LocalDevice::of(device)))))
    }

    /// The device of this name of the service that listens there. How long a call to it may take where nobody
    /// sets a deadline, the environment says (`BURST_NN_SERVICE_TIMEOUT`).
    ///
    /// # Errors
    /// Nobody listens there, or has such a device, or it does not answer what every device has to.
    pub fn remote(socket: &Path, name: &str) -> Result<Arc<Self>> {
        check_process()?;
        Self::of_service(&Arc::new(Service::at(socket)), name, name.to_owned())
    }

    /// The same, and no call takes longer than this where nobody sets a deadline; zero for any time.
    ///
    /// # Errors
    /// As [`RuntimeDevice::remote`].
    pub fn remote_within(socket: &Path, name: &str, longest: Duration) -> Result<Arc<Self>> {
        check_process()?;
        let service = Service::within(socket, Patience::of(longest));
        Self::of_service(&Arc::new(service), name, name.to_owned())
    }

    /// A device of a service, under another name where that one is taken.
    pub(crate) fn of_service(
        service: &Arc<Service>,
        name: &str,
        known_as: String,
    ) -> Result<Arc<Self>> {
        let device = service.device(name)?;
        let asked = Self::ask(&device, known_as, false)?;
        let patience = service.patience();
        Ok(Arc::new(asked(Connection::Remote { device, patience })))
    }

    /// Asks a device whatever is asked once.
    fn ask(
        device: &dyn Device,
        name: String,
        is_reference: bool,
    ) -> Result<impl FnOnce(Connection) -> Self + use<>> {
        let capabilities = device.capabilities()?;
        let cache_files = device.cache_files_needed();
        if cache_files.model > CACHE_FILES_MAX || cache_files.data > CACHE_FILES_MAX {
            let refused = format!("{name} wants more than {CACHE_FILES_MAX} files of a kind");
            return Err(Failure::general(refused).into());
        }
        if name.is_empty() {
            return Err(Failure::general("a device without a name").into());
        }
        let (version, ty) = (device.version_string().to_owned(), device.device_type());
        let (hal_version, extensions) = (device.hal_version(), device.supported_extensions());
        Ok(move |connection| RuntimeDevice {
            name,
            version,
            ty,
            hal_version,
            capabilities,
            extensions,
            cache_files,
            is_reference,
            connection,
        })
    }

    /// The name that clients choose it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A text that changes whenever its behaviour does.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What kind of hardware it is.
    #[must_use]
    pub fn device_type(&self) -> DeviceType {
        self.ty
    }

    /// The newest feature level that it has all of.
    #[must_use]
    pub fn feature_level(&self) -> i64 {
        self.hal_version.feature_level().into()
    }

    /// The version of the HAL that it speaks.
    pub(crate) fn hal_version(&self) -> HalVersion {
        self.hal_version
    }

    /// How fast and economical it said to be.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The extensions that it knows.
    #[must_use]
    pub fn extensions(&self) -> &[Extension] {
        &self.extensions
    }

    /// Whether it knows this extension.
    #[must_use]
    pub fn supports_extension(&self, name: &str) -> bool {
        self.extensions.iter().any(|extension| extension.name == name)
    }

    /// Waits until it lives, as long as a service may take to start again.
    ///
    /// # Errors
    /// DEAD_OBJECT where it does not come back.
    pub fn wait(&self) -> Result<()> {
        check_process()?;
        match &self.connection {
            Connection::Local(_) => Ok(()),
            Connection::Remote { device, .. } => reconnect(device, WAIT_LONGEST),
        }
    }

    /// Whether it is the device of last resort.
    #[must_use]
    pub fn is_reference(&self) -> bool {
        self.is_reference
    }

    /// Whether its calls go to another process.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.connection, Connection::Remote { .. })
    }

    /// The device over its newest connection, alive or not.
    #[must_use]
    pub fn hal(&self) -> Arc<dyn Device> {
        match &self.connection {
            Connection::Local(local) => local.device(),
            Connection::Remote { device, .. } => Arc::new(device.current()),
        }
    }

    /// The device for a compilation: one whose service is gone is connected to again.
    ///
    /// # Errors
    /// DEAD_OBJECT where the service is not there.
    pub(crate) fn live(&self) -> Result<LiveDevice> {
        if let Connection::Remote { device, .. } = &self.connection {
            reconnect(device, RECONNECT_LONGEST)?;
        }
        Ok(self.current())
    }

    /// The same for an execution, which waits for nobody: one attempt, and by the deadline at the latest.
    ///
    /// # Errors
    /// DEAD_OBJECT where the service is not there.
    pub(crate) fn live_at_once(&self, by: Option<TimePoint>) -> Result<LiveDevice> {
        if let Connection::Remote { device, .. } = &self.connection
            && !device.current().is_alive()
        {
            let until = Patience::of(RECONNECT_LONGEST).until(by);
            let connected = device.try_reconnect(deadline_at(until));
            connected.map_err(|error| Error::new(ResultCode::DeadObject, error))?;
        }
        Ok(self.current())
    }

    /// Whether its newest connection is one to a service that lives.
    pub(crate) fn is_connected(&self) -> bool {
        match &self.connection {
            Connection::Local(_) => true,
            Connection::Remote { device, .. } => device.current().is_alive(),
        }
    }

    fn current(&self) -> LiveDevice {
        match &self.connection {
            Connection::Local(local) => LiveDevice::Local(local.device()),
            Connection::Remote { device, patience } => {
                LiveDevice::Remote(Remote::new(device.current(), *patience))
            }
        }
    }

    /// The device that keeps compilations, and in how many files; `None` where none are kept.
    pub(crate) fn keeper(&self, live: &LiveDevice) -> Option<(LiveDevice, CacheFiles)> {
        let local = match &self.connection {
            Connection::Local(local) => local.keeper(),
            Connection::Remote { .. } => None,
        };
        let keeper = match local {
            Some(device) => (LiveDevice::Local(Arc::clone(&device)), device.cache_files_needed()),
            None => (live.clone(), self.cache_files),
        };
        Some(keeper).filter(|(_, files)| *files != CacheFiles::default())
    }

    /// A buffer in its own memory.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn allocate(&self, request: &BufferRequest) -> Result<Arc<dyn Buffer>> {
        match self.current() {
            LiveDevice::Local(device) => {
                Ok(guarded(|| device.allocate(request, &Caller::default()))?)
            }
            LiveDevice::Remote(remote) => remote.allocate(request),
        }
    }
}

impl LiveDevice {
    /// For each operation of the main graph whether the device runs it.
    ///
    /// # Errors
    /// The device does not answer, for whatever reason.
    pub(crate) fn supported_operations(
        &self,
        model: &Model,
        by: Option<TimePoint>,
    ) -> Result<Vec<bool>> {
        match self {
            LiveDevice::Local(device) => Ok(guarded(|| device.supported_operations(model))?),
            LiveDevice::Remote(remote) => remote.supported_operations(model, by),
        }
    }

    /// Whether its service lives, as far as is known.
    pub(crate) fn is_alive(&self) -> bool {
        match self {
            LiveDevice::Local(_) => true,
            LiveDevice::Remote(remote) => remote.is_alive(),
        }
    }
}

/// Sees to it that a device's service is there.
fn reconnect(device: &ReconnectingDevice, longest: Duration) -> Result<()> {
    if device.current().is_alive() {
        return Ok(());
    }
    let connected = device.reconnect(Deadline::after(longest));
    connected.map_err(|error| Error::new(ResultCode::DeadObject, error))
}

impl fmt::Debug for RuntimeDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuntimeDevice({}, HAL {})", self.name, self.hal_version)
    }
}
