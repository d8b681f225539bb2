//! What is to be compiled, for whom, and how.

use std::sync::Arc;

use burst_hal::{
    ExtensionCode, ExtensionOperandType, Model, OperandType, PrepareOptions, ResultCode, TimePoint,
};

use super::CachePlace;
use crate::devices::RuntimeDevice;
use crate::error::{Error, Result};
use crate::switches::Switches;

/// What is to be compiled.
pub(super) struct Job<'a> {
    pub(super) model: &'a Arc<Model>,
    pub(super) devices: &'a [Arc<RuntimeDevice>],
    pub(super) is_explicit: bool,
    pub(super) switches: Switches,
    pub(super) options: PrepareOptions,
    pub(super) cache: Option<&'a CachePlace>,
}

impl Job<'_> {
    /// Whether there is time left: a device may not look, and several add up.
    ///
    /// # Errors
    /// MISSED_DEADLINE_PERSISTENT.
    pub(super) fn check_deadline(&self) -> Result<()> {
        match self.options.deadline.is_some_and(TimePoint::has_passed) {
            true => {
                let late = "preparing the model takes longer than it may";
                Err(Error::new(ResultCode::MissedDeadlinePersistent, late))
            }
            false => Ok(()),
        }
    }

    /// Types of extensions that the model uses, as the first device that knows them describes them.
    pub(super) fn extension_types(&self) -> Vec<(OperandType, ExtensionOperandType)> {
        let mut types = Vec::new();
        for (name, prefix) in &self.model.extension_name_to_prefix {
            let known = self.devices.iter().flat_map(|device| device.extensions());
            let Some(extension) = known.into_iter().find(|one| one.name == *name) else { continue };
            for ty in &extension.operand_types {
                let code = ExtensionCode { prefix: *prefix, number: ty.ty };
                types.push((code.operand_type(), *ty));
            }
        }
        types
    }
}
