//! How long values of extension types are: their device says it.

use burst_hal::{Device, ExtensionCode, ExtensionOperandType, Model, OperandType};

use super::values::ELEMENTS_MAX;

/// The extension types that a model names and its device has.
#[derive(Debug, Default)]
pub(super) struct Sizes(Vec<(OperandType, ExtensionOperandType)>);

impl Sizes {
    pub(super) fn of(device: &dyn Device, model: &Model) -> Self {
        let mut sizes = Vec::new();
        let extensions = match model.extension_name_to_prefix.is_empty() {
            true => Vec::new(),
            false => device.supported_extensions(),
        };
        for (name, prefix) in &model.extension_name_to_prefix {
            let known = extensions.iter().filter(|extension| extension.name == *name);
            for one in known.flat_map(|extension| &extension.operand_types) {
                let code = ExtensionCode { prefix: *prefix, number: one.ty };
                sizes.push((code.operand_type(), *one));
            }
        }
        Sizes(sizes)
    }

    /// Bytes of a value, at most those of the largest one that is made; `None` for any other type.
    pub(super) fn byte_length(&self, ty: OperandType, shape: &[u32]) -> Option<usize> {
        let (_, known) = self.0.iter().find(|(known, _)| *known == ty)?;
        let length = known.byte_length(shape).unwrap_or(u64::MAX);
        Some(usize::try_from(length).unwrap_or(usize::MAX).min(ELEMENTS_MAX))
    }
}
