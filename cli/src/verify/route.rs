//! Routes to a driver on which a model can be verified or run.

use std::sync::Arc;

use burst_driver::CpuDevice;
use burst_hal::session::{HeapAllocator, PoolAllocator};
use burst_verify::models::DeviceRoute;
use burst_verify::{DeviceLease, RunError, Target};

use super::lease::{RemoteLease, Service};
use crate::route::RouteArg;

/// Opens a route: a connection of its own, or a device of its own.
///
/// # Errors
/// There is no driver.
pub(crate) fn open<'a>(
    route: RouteArg,
    service: &'a Service<'a>,
) -> Result<DeviceRoute<'a>, RunError> {
    let lease: Box<dyn DeviceLease + 'a> = match route {
        RouteArg::Burst | RouteArg::Sync | RouteArg::Async | RouteArg::Fenced => {
            Box::new(RemoteLease::open(service)?)
        }
        RouteArg::InProcess => {
            let device = service.threads.device(service.device);
            let device = device.map_err(|error| RunError::Device(error.into()))?;
            Box::new(InProcess(device, Arc::new(HeapAllocator)))
        }
    };
    Ok(DeviceRoute { name: route.name(), lease, route: route.route() })
}

/// The CPU device in this process.
struct InProcess(CpuDevice, Arc<dyn PoolAllocator>);

impl DeviceLease for InProcess {
    fn target(&self) -> Target<'_> {
        Target { device: &self.0, memory: &self.1 }
    }
}
