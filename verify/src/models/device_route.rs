//! A device and the route to it.

use burst_hal::Route;

use crate::run::DeviceLease;

/// A device and how requests travel to it, under the name that people read.
pub struct DeviceRoute<'a> {
    /// What people call it: `burst`, `sync`, `in-process`.
    pub name: &'static str,
    /// The device.
    pub lease: Box<dyn DeviceLease + 'a>,
    /// How requests travel.
    pub route: Route,
}
