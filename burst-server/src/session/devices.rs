//! Calls about the devices on offer.

use std::sync::Arc;

use burst_hal::Device;
use burst_wire::control::{Answer, DeviceInfo, Text};

use super::Session;
use super::table::unknown;
use crate::ServerError;
use crate::panics::catch_panic;

pub(super) fn list(session: &Session) -> Answer {
    let names = session.host.devices.iter().map(|device| Text::cut(device.name()));
    Answer::Devices(names.collect())
}

pub(super) fn find(session: &Session, device: u32) -> Result<Arc<dyn Device>, ServerError> {
    session.host.devices.get(device as usize).cloned().ok_or(unknown("device", device))
}

pub(super) fn info(session: &Session, device: u32) -> Result<Answer, ServerError> {
    let device = find(session, device)?;
    let info = catch_panic(|| -> Result<DeviceInfo, ServerError> {
        Ok(DeviceInfo::new(&*device, &device.capabilities()?))
    })??;
    Ok(Answer::Device(info))
}

pub(super) fn status(session: &Session, device: u32) -> Result<Answer, ServerError> {
    let device = find(session, device)?;
    Ok(Answer::DeviceStatus(catch_panic(|| device.status())?.code()))
}
