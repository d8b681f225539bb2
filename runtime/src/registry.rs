//! Which devices there are.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use burst_driver::ReferenceDevice;

use crate::devices::RuntimeDevice;
use crate::discovery::{devices_at, devices_of_services};
use crate::error::Result;
use crate::process::check_process;
use crate::switches::Switches;

/// Devices, the one of last resort last. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    devices: Arc<[Arc<RuntimeDevice>]>,
    switches: Switches,
}

impl Registry {
    /// The devices of this machine: those of the services that answer, or else the CPU in this process; and
    /// `nnapi-reference`. The first call looks for them. A forked child has none.
    pub fn system() -> &'static Registry {
        static SYSTEM: OnceLock<Registry> = OnceLock::new();
        static NONE: OnceLock<Registry> = OnceLock::new();
        match check_process() {
            Ok(()) => SYSTEM.get_or_init(Self::look),
            // Whoever looks in the parent may do so for ever here.
            Err(_) => NONE.get_or_init(|| Registry::of(Vec::new())),
        }
    }

    /// The devices of the services at these sockets, where none answers the CPU in this process, and
    /// `nnapi-reference`.
    #[must_use]
    pub fn at(sockets: &[PathBuf]) -> Registry {
        Self::with_services(devices_at(sockets), Switches::default())
    }

    /// These devices.
    #[must_use]
    pub fn of(devices: Vec<Arc<RuntimeDevice>>) -> Registry {
        Registry { devices: devices.into(), switches: Switches::default() }
    }

    /// The devices, in the order of their numbers.
    #[must_use]
    pub fn devices(&self) -> &[Arc<RuntimeDevice>] {
        &self.devices
    }

    /// The device of last resort, where there is one.
    #[must_use]
    pub fn reference(&self) -> Option<&Arc<RuntimeDevice>> {
        self.devices.iter().find(|device| device.is_reference())
    }

    pub(crate) fn switches(&self) -> Switches {
        self.switches
    }

    #[cfg(test)]
    pub(crate) fn with_switches(self, switches: Switches) -> Registry {
        Registry { switches, ..self }
    }

    fn look() -> Registry {
        let switches = Switches::of_environment();
        let devices = match switches.cpu_only {
            true => Vec::new(),
            false => devices_of_services(),
        };
        Self::with_services(devices, switches)
    }

    fn with_services(mut devices: Vec<Arc<RuntimeDevice>>, switches: Switches) -> Registry {
        if devices.is_empty() && !switches.cpu_only {
            devices.extend(kept(RuntimeDevice::cpu()));
        }
        devices.extend(kept(RuntimeDevice::reference(Arc::new(ReferenceDevice::default()))));
        Registry { devices: devices.into(), switches }
    }
}

/// A device that answers; one that does not is said in the log and left out.
fn kept(device: Result<Arc<RuntimeDevice>>) -> Option<Arc<RuntimeDevice>> {
    device.inspect_err(|error| tracing::warn!(%error, "a device is left out")).ok()
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.devices.iter()).finish()
    }
}
