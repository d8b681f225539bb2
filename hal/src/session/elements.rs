//! What the types of a model's operands are made of, those of extensions too: how many bytes an element has.

use crate::{Extension, ExtensionCode, ExtensionOperandType, Model, Operand, OperandType};

/// A type, as far as it says how long values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ElementType {
    ty: OperandType,
    /// Of an extension that is known.
    own: Option<ExtensionOperandType>,
}

impl ElementType {
    /// Those of operands of a model, where a device has these extensions.
    pub(super) fn all(operands: &[Operand], model: &Model, extensions: &[Extension]) -> Vec<Self> {
        let of = |operand: &Operand| ElementType {
            ty: operand.ty,
            own: extension_type(operand.ty, model, extensions),
        };
        operands.iter().map(of).collect()
    }

    /// Bytes of a value of these dimensions, where the type is known and the number fits 64 bits.
    pub(super) fn byte_length(&self, dimensions: &[u32]) -> Option<u64> {
        match self.own {
            Some(own) => own.byte_length(dimensions),
            None => self.ty.byte_length(dimensions),
        }
    }

    /// Bytes of a value, where its whole shape is known.
    pub(super) fn known_length(&self, dimensions: &[u32]) -> Option<u64> {
        match self.is_rank_open(dimensions) || dimensions.contains(&0) {
            true => None,
            false => self.byte_length(dimensions),
        }
    }

    /// A tensor without dimensions is one of unknown rank.
    pub(super) fn is_rank_open(&self, dimensions: &[u32]) -> bool {
        let is_tensor = self.own.map_or(self.ty.is_tensor(), |own| own.is_tensor);
        dimensions.is_empty() && is_tensor
    }

    /// Whether it is a type of an extension that is not known.
    pub(super) fn is_unknown(&self) -> bool {
        self.ty.is_extension() && self.own.is_none()
    }
}

/// What the extensions of a device say of a type, which the model names by its prefix.
fn extension_type(
    ty: OperandType,
    model: &Model,
    extensions: &[Extension],
) -> Option<ExtensionOperandType> {
    let code = ExtensionCode::of_operand(ty)?;
    let mut prefixes = model.extension_name_to_prefix.iter();
    let (name, _) = prefixes.find(|(_, prefix)| *prefix == code.prefix)?;
    let extension = extensions.iter().find(|extension| extension.name == *name)?;
    extension.operand_types.iter().find(|known| known.ty == code.number).copied()
}
