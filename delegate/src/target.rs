//! Which devices run the nodes that are taken over.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use burst_client::{Client, ClientError, ConnectOptions, Deadline};
use burst_driver::{CpuDevice, DeviceOptions, ReferenceDevice};
use neuralnetworks::{Compilation, Model, Registry, RuntimeDevice};

use crate::options::Options;

/// How long a service may take to greet: an application that starts does not wait for one that hangs.
const GREETING_LONGEST: Duration = Duration::from_secs(2);

/// The devices that were asked for.
#[derive(Debug)]
pub(crate) struct Target {
    /// Those that are asked which nodes they run.
    devices: Vec<Arc<RuntimeDevice>>,
    /// Those that the framework chooses from, the reference device among them, which runs what fails. `None`:
    /// the application named a device, and no other runs what fails.
    choice: Option<Registry>,
    options: Options,
}

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    #[error("option device is {name:?}, which is not here; there are {known:?}")]
    NoSuchDevice { name: String, known: Vec<String> },
    #[error("option socket: {path}: {error}")]
    Service { path: String, error: ClientError },
    #[error(transparent)]
    Framework(#[from] neuralnetworks::Error),
}

impl Target {
    /// The devices that these options mean: those named; else those of the framework.
    ///
    /// # Errors
    /// There are none.
    pub(crate) fn of(options: &Options) -> Result<Self, TargetError> {
        let (devices, choice) = match (&options.socket, options.threads) {
            (Some(path), _) => of_service(path, options)?,
            (None, Some(threads)) => (vec![of_this_process(threads)?], None),
            (None, None) => of_registry(options)?,
        };
        Ok(Target { devices, choice, options: options.clone() })
    }

    /// This device and no other.
    #[cfg(test)]
    pub(crate) fn of_device(device: Arc<dyn burst_hal::Device>) -> Self {
        let devices = vec![RuntimeDevice::local(device).unwrap()];
        Target { devices, choice: None, options: Options::default() }
    }

    /// Devices of which one runs each node that is taken over.
    pub(crate) fn devices(&self) -> &[Arc<RuntimeDevice>] {
        &self.devices
    }

    /// Their names.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.devices.iter().map(|device| device.name()).collect();
        names.join(", ")
    }

    /// Whether compilations are kept, for which they need a token.
    pub(crate) fn keeps_compilations(&self) -> bool {
        self.options.cache.is_some()
    }

    /// A model, prepared. The token stands for the model among the compilations that are kept.
    ///
    /// # Errors
    /// The framework's.
    pub(crate) fn compile(
        &self,
        model: &Arc<Model>,
        token: Option<[u8; 32]>,
    ) -> neuralnetworks::Result<Arc<Compilation>> {
        let compilation = match &self.choice {
            None => Compilation::for_devices(model, &self.devices)?,
            Some(registry) => Compilation::new(model, registry)?,
        };
        if let Some(preference) = self.options.preference {
            compilation.set_preference(preference)?;
        }
        if let Some(priority) = self.options.priority {
            compilation.set_priority(priority)?;
        }
        if let (Some(folder), Some(token)) = (&self.options.cache, token) {
            compilation.set_caching(folder, token)?;
        }
        compilation.finish()?;
        Ok(compilation)
    }
}

/// The CPU driver with threads of its own.
fn of_this_process(threads: usize) -> Result<Arc<RuntimeDevice>, TargetError> {
    let options = DeviceOptions { threads, ..DeviceOptions::default() };
    Ok(RuntimeDevice::local(Arc::new(CpuDevice::new(options)))?)
}

/// The one device that is named, or all, and then what the framework chooses from.
type Devices = (Vec<Arc<RuntimeDevice>>, Option<Registry>);

fn of_service(path: &Path, options: &Options) -> Result<Devices, TargetError> {
    let failed = |error| TargetError::Service { path: path.display().to_string(), error };
    let connect = ConnectOptions::default().until(Deadline::after(GREETING_LONGEST));
    let client = Client::connect_with(path, &connect).map_err(failed)?;
    let known = client.device_names().map_err(failed)?;
    if let Some(name) = &options.device {
        if !known.contains(name) {
            return Err(TargetError::NoSuchDevice { name: name.clone(), known });
        }
        return Ok((vec![RuntimeDevice::remote(path, name)?], None));
    }
    let devices = known.iter().map(|name| RuntimeDevice::remote(path, name));
    let devices = devices.collect::<neuralnetworks::Result<Vec<_>>>()?;
    let mut all = devices.clone();
    all.push(RuntimeDevice::reference(Arc::new(ReferenceDevice::default()))?);
    Ok((devices, Some(Registry::of(all))))
}

fn of_registry(options: &Options) -> Result<Devices, TargetError> {
    let registry = Registry::system();
    let all = registry.devices();
    if let Some(name) = &options.device {
        let found = all.iter().find(|device| device.name() == name);
        let device = found.ok_or_else(|| {
            let known = all.iter().map(|device| device.name().to_owned()).collect();
            TargetError::NoSuchDevice { name: name.clone(), known }
        })?;
        return Ok((vec![Arc::clone(device)], None));
    }
    // The reference device runs what fails; what only it could run is as well off with the runtime.
    let others: Vec<_> = all.iter().filter(|device| !device.is_reference()).cloned().collect();
    let devices = if others.is_empty() { all.to_vec() } else { others };
    Ok((devices, Some(registry.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_are_not_there_are_named() {
        let device = Options { device: Some("gpu".into()), threads: None, ..Options::default() };
        let said = Target::of(&device).unwrap_err().to_string();
        assert!(
            said.starts_with("option device is \"gpu\", which is not here; there are"),
            "{said}"
        );
        let socket = Options { socket: Some("/nowhere/at.all".into()), ..Options::default() };
        let said = Target::of(&socket).unwrap_err().to_string();
        assert!(said.starts_with("option socket: /nowhere/at.all: "), "{said}");
    }

    #[test]
    fn threads_mean_the_cpu_of_this_process() {
        let target = Target::of(&Options { threads: Some(2), ..Options::default() }).unwrap();
        assert_eq!((target.names().as_str(), target.choice.is_none()), ("cpu", true));
    }
}
