//! Operand types that extensions bring.

use std::sync::Arc;

use burst_hal::ExtensionOperandType;

/// One operand type of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeDef {
    /// Its number within the extension.
    pub number: u16,
    /// Whether its values have dimensions.
    pub is_tensor: bool,
    /// Bytes of the scalar, or of one element.
    pub byte_size: u32,
}

impl TypeDef {
    /// The same for the contract.
    #[must_use]
    pub fn information(&self) -> ExtensionOperandType {
        let TypeDef { number, is_tensor, byte_size } = *self;
        ExtensionOperandType { ty: number, is_tensor, byte_size }
    }
}

/// What an operand's type is, where an extension brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionType {
    /// Name of the extension.
    pub extension: &'static str,
    /// The type.
    pub def: TypeDef,
    /// What the model says beside the type, in bytes that the extension defines.
    pub params: Option<Arc<[u8]>>,
}
