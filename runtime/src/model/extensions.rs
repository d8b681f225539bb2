//! Extensions of a model: which prefix stands for which name.

use std::sync::Arc;

use burst_hal::ExtensionOperandType;
use burst_hal::validate::MAX_EXTENSIONS;

use crate::devices::RuntimeDevice;
use crate::error::{Error, Result};

/// Names with their prefixes, which count from 1 in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct Extensions(Vec<(String, u16)>);

impl Extensions {
    /// The prefix of a name, a new one where it has none.
    pub(super) fn prefix_of(&mut self, name: &str) -> Result<u16> {
        if let Some((_, prefix)) = self.0.iter().find(|(known, _)| known == name) {
            return Ok(*prefix);
        }
        let next = u16::try_from(self.0.len() + 1).ok();
        let next = next.filter(|next| usize::from(*next) <= MAX_EXTENSIONS);
        let too_many = || Error::bad_data(format!("more than {MAX_EXTENSIONS} extensions"));
        let prefix = next.ok_or_else(too_many)?;
        self.0.push((name.to_owned(), prefix));
        Ok(prefix)
    }

    pub(super) fn name_of(&self, prefix: u16) -> Option<&str> {
        self.0.iter().find(|(_, known)| *known == prefix).map(|(name, _)| name.as_str())
    }

    pub(super) fn into_list(self) -> Vec<(String, u16)> {
        self.0
    }
}

/// What the first device that knows the extension says of one of its types.
pub(super) fn operand_type(
    devices: &[Arc<RuntimeDevice>],
    name: &str,
    number: u16,
) -> Option<ExtensionOperandType> {
    let extensions = devices.iter().flat_map(|device| device.extensions());
    let types = extensions.filter(|one| one.name == name).flat_map(|one| &one.operand_types);
    types.into_iter().find(|ty| ty.ty == number).cloned()
}
