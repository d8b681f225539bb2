//! The two halves of a type code above the base range: which extension, and which of its types.
//!
//! Source: `types.hal` of NNAPI 1.2, `ExtensionTypeEncoding`.

use crate::{OperandType, OperationType};

/// A type of an extension, as a model names it.
///
/// ```
/// use burst_hal::{ExtensionCode, OperationType};
///
/// // The model lists the extension with prefix 3; this is its operation 7.
/// let code = ExtensionCode { prefix: 3, number: 7 };
/// let operation = code.operation_type();
/// assert_eq!(operation.code(), 0x3_0007);
/// assert_eq!(ExtensionCode::of_operation(operation), Some(code));
/// assert_eq!(ExtensionCode::of_operation(OperationType::Add), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExtensionCode {
    /// What stands for the extension in this model; see [`crate::Model::extension_name_to_prefix`].
    pub prefix: u16,
    /// The type's number within the extension.
    pub number: u16,
}

impl ExtensionCode {
    /// The halves of an operand type's code; `None` for a type of the base range.
    #[must_use]
    pub fn of_operand(ty: OperandType) -> Option<Self> {
        matches!(ty, OperandType::Extension(_)).then(|| ExtensionCode::from_code(ty.code()))
    }

    /// The halves of an operation type's code; `None` for one of the base range.
    #[must_use]
    pub fn of_operation(ty: OperationType) -> Option<Self> {
        matches!(ty, OperationType::Extension(_)).then(|| ExtensionCode::from_code(ty.code()))
    }

    /// The halves of a code, whose sign bit is the highest bit of the prefix.
    pub(crate) const fn from_code(code: i32) -> Self {
        let [a, b, c, d] = code.to_be_bytes();
        ExtensionCode { prefix: u16::from_be_bytes([a, b]), number: u16::from_be_bytes([c, d]) }
    }

    /// The code as an operand type.
    #[must_use]
    pub fn operand_type(self) -> OperandType {
        OperandType::from_code(self.code())
    }

    /// The code as an operation type.
    #[must_use]
    pub fn operation_type(self) -> OperationType {
        OperationType::from_code(self.code())
    }

    const fn code(self) -> i32 {
        let ([a, b], [c, d]) = (self.prefix.to_be_bytes(), self.number.to_be_bytes());
        i32::from_be_bytes([a, b, c, d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_set_the_sign_bit_go_both_ways() {
        for prefix in [1, 0x7FFF, 0x8000, 0xFFFF] {
            for number in [0, 7, 0xFFFF] {
                let code = ExtensionCode { prefix, number };
                let (operand, operation) = (code.operand_type(), code.operation_type());
                assert_eq!(ExtensionCode::of_operand(operand), Some(code));
                assert_eq!(ExtensionCode::of_operation(operation), Some(code));
            }
        }
    }
}
