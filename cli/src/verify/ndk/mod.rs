//! `--mode ndk`: NNAPI's C functions, of a library that is loaded as any client loads it.

use std::sync::Arc;

use anyhow::{Result, bail};
use burst_client::SharedAllocator;
use burst_hal::Device;
use burst_hal::session::PoolAllocator;
use burst_verify::models::DeviceRoute;
use burst_verify::{DeviceLease, Interface, Target};
use neuralnetworks::c::client::{Library, NdkDevice};

use super::Args;
use crate::route::RouteArg;

pub(super) mod plans;

/// A device of the library, or all of them together.
pub(super) struct Ndk {
    device: NdkDevice,
    interface: Interface,
}

impl Ndk {
    /// What the arguments mean: of the library that is named, or of the one beside this command, or of the one
    /// that the system's loader finds.
    ///
    /// # Errors
    /// There is no such library, or it has no such device.
    pub(super) fn open(args: &Args) -> Result<Self> {
        let file = args.library.clone().unwrap_or_else(Library::beside_program);
        let library = Library::load(&file)?;
        let (device, interface) = match args.divided {
            true => (NdkDevice::any(&library)?, Interface::AnyDevice),
            false => (named(&library, &args.device)?, Interface::NamedDevice),
        };
        Ok(Ndk { device, interface })
    }

    /// A worker's own view of the device that all share.
    pub(super) fn lease(&self) -> NdkLease {
        let memory = Arc::new(SharedAllocator);
        NdkLease { device: self.device.clone(), interface: self.interface, memory }
    }

    /// The same with a way to execute.
    pub(super) fn route(&self, route: RouteArg) -> DeviceRoute<'static> {
        let lease = Box::new(self.lease());
        DeviceRoute { name: route.name(), lease, route: route.route() }
    }
}

/// The device of this name.
fn named(library: &Arc<Library>, name: &str) -> Result<NdkDevice> {
    let devices = NdkDevice::all(library)?;
    let names: Vec<&str> = devices.iter().map(Device::name).collect();
    let Some(position) = names.iter().position(|one| *one == name) else {
        bail!("--device {name}: the library has {}", names.join(", "));
    };
    Ok(devices[position].clone())
}

/// A device of the library, for one worker.
pub(super) struct NdkLease {
    device: NdkDevice,
    interface: Interface,
    memory: Arc<dyn PoolAllocator>,
}

impl DeviceLease for NdkLease {
    fn target(&self) -> Target<'_> {
        Target { device: &self.device, memory: &self.memory }
    }

    fn interface(&self) -> Interface {
        self.interface
    }
}
