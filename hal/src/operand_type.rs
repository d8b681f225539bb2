//! Operand types of HAL 1.0 to 1.3: codes, element sizes, what kind of value each holds.
//!
//! Source: `types.hal` of NNAPI 1.0 to 1.3, `OperandType`.

use crate::HalVersion;

/// Declares the enum, and from the same table its codes, names, versions and sizes.
macro_rules! operand_types {
    ($($code:literal $variant:ident $name:literal $since:ident $kind:ident $bytes:expr,)*) => {
        /// The type of an operand: a scalar or a tensor of one element type.
        ///
        /// A model from a peer can hold any number; a code that stands for nothing is kept as
        /// [`OperandType::Unknown`], so that validation can say which one it was.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum OperandType {
            $(
                #[doc = concat!("`", $name, "`, code ", stringify!($code), ".")]
                $variant,
            )*
            /// A type of an extension: a code above `0xFFFF`, read as a number without sign.
            Extension(i32),
            /// A code that no HAL version defines.
            Unknown(i32),
        }

        impl OperandType {
            /// Every type of the base range (OEM types included), by code.
            pub const ALL: &'static [OperandType] = &[$(OperandType::$variant,)*];

            /// The type with this code; never fails, see [`OperandType::Unknown`].
            #[must_use]
            pub const fn from_code(code: i32) -> Self {
                match code {
                    $($code => OperandType::$variant,)*
                    // A prefix of 0x8000 and more sets the sign bit.
                    0x1_0000.. | ..0 => OperandType::Extension(code),
                    _ => OperandType::Unknown(code),
                }
            }

            /// The number of this type in the HAL, on the wire and in files.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self {
                    $(OperandType::$variant => $code,)*
                    OperandType::Extension(code) | OperandType::Unknown(code) => code,
                }
            }

            /// The name in the specification.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(OperandType::$variant => $name,)*
                    OperandType::Extension(_) => "EXTENSION",
                    OperandType::Unknown(_) => "UNKNOWN",
                }
            }

            /// The first HAL version that has this type; `None` for a code without meaning.
            #[must_use]
            pub const fn since(self) -> Option<HalVersion> {
                match self {
                    $(OperandType::$variant => Some(HalVersion::$since),)*
                    OperandType::Extension(_) => Some(HalVersion::V1_2),
                    OperandType::Unknown(_) => None,
                }
            }

            /// Whether this is a tensor, a scalar, or neither can be said.
            #[must_use]
            pub const fn kind(self) -> OperandKind {
                match self {
                    $(OperandType::$variant => OperandKind::$kind,)*
                    OperandType::Extension(_) | OperandType::Unknown(_) => OperandKind::Opaque,
                }
            }

            /// Bytes of one element; `None` where the base specification does not fix it
            /// (OEM scalars, extension types, unknown codes).
            #[must_use]
            pub const fn element_bytes(self) -> Option<usize> {
                match self {
                    $(OperandType::$variant => $bytes,)*
                    OperandType::Extension(_) | OperandType::Unknown(_) => None,
                }
            }

            /// The type of the base range with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|ty| ty.name() == name)
            }
        }
    };
}

/// What shape of value an [`OperandType`] stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// One value without dimensions.
    Scalar,
    /// A tensor with dimensions.
    Tensor,
    /// A reference to another subgraph of the model.
    Subgraph,
    /// The base specification does not say (OEM scalar, extension, unknown).
    Opaque,
}

operand_types! {
    0 Float32 "FLOAT32" V1_0 Scalar Some(4),
    1 Int32 "INT32" V1_0 Scalar Some(4),
    2 Uint32 "UINT32" V1_0 Scalar Some(4),
    3 TensorFloat32 "TENSOR_FLOAT32" V1_0 Tensor Some(4),
    4 TensorInt32 "TENSOR_INT32" V1_0 Tensor Some(4),
    5 TensorQuant8Asymm "TENSOR_QUANT8_ASYMM" V1_0 Tensor Some(1),
    6 Bool "BOOL" V1_2 Scalar Some(1),
    7 TensorQuant16Symm "TENSOR_QUANT16_SYMM" V1_2 Tensor Some(2),
    8 TensorFloat16 "TENSOR_FLOAT16" V1_2 Tensor Some(2),
    9 TensorBool8 "TENSOR_BOOL8" V1_2 Tensor Some(1),
    10 Float16 "FLOAT16" V1_2 Scalar Some(2),
    11 TensorQuant8SymmPerChannel "TENSOR_QUANT8_SYMM_PER_CHANNEL" V1_2 Tensor Some(1),
    12 TensorQuant16Asymm "TENSOR_QUANT16_ASYMM" V1_2 Tensor Some(2),
    13 TensorQuant8Symm "TENSOR_QUANT8_SYMM" V1_2 Tensor Some(1),
    14 TensorQuant8AsymmSigned "TENSOR_QUANT8_ASYMM_SIGNED" V1_3 Tensor Some(1),
    15 Subgraph "SUBGRAPH" V1_3 Subgraph Some(0),
    10_000 Oem "OEM" V1_0 Opaque None,
    10_001 TensorOemByte "TENSOR_OEM_BYTE" V1_0 Tensor Some(1),
}

/// Questions about a type:
///
/// ```
/// use burst_hal::{ExtensionCode, OperandType};
///
/// let ty = OperandType::TensorQuant8Asymm;
/// assert!(ty.is_tensor() && ty.is_quantized() && !ty.is_float());
/// assert_eq!((ty.element_bytes(), ty.byte_length(&[2, 3])), (Some(1), Some(6)));
/// assert_eq!(ty.zero_point_range(), (0, 255));
/// assert!(OperandType::Float16.is_scalar() && OperandType::Float16.is_float());
/// // What only an extension knows: `ExtensionOperandType` has it.
/// let vendor = OperandType::from_code(0x2_0007);
/// assert!(vendor.is_extension() && !vendor.is_tensor() && !vendor.is_scalar());
/// assert_eq!((vendor.element_bytes(), vendor.since().is_some()), (None, true));
/// ```
impl OperandType {
    /// Whether this is a tensor type of the base range.
    #[must_use]
    pub const fn is_tensor(self) -> bool {
        matches!(self.kind(), OperandKind::Tensor)
    }

    /// Whether this is a scalar type of the base range.
    #[must_use]
    pub const fn is_scalar(self) -> bool {
        matches!(self.kind(), OperandKind::Scalar)
    }

    /// Whether this is a type of an extension.
    #[must_use]
    pub const fn is_extension(self) -> bool {
        matches!(self, OperandType::Extension(_))
    }

    /// Whether its elements are floats, of either width.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            OperandType::Float32
                | OperandType::Float16
                | OperandType::TensorFloat32
                | OperandType::TensorFloat16
        )
    }

    /// Whether this is one of the two deprecated vendor types.
    #[must_use]
    pub const fn is_oem(self) -> bool {
        matches!(self, OperandType::Oem | OperandType::TensorOemByte)
    }

    /// Whether stored integers stand for real numbers with one scale for the whole tensor.
    #[must_use]
    pub const fn is_quantized(self) -> bool {
        matches!(
            self,
            OperandType::TensorQuant8Asymm
                | OperandType::TensorQuant8AsymmSigned
                | OperandType::TensorQuant8Symm
                | OperandType::TensorQuant16Asymm
                | OperandType::TensorQuant16Symm
        )
    }

    /// Bytes of a value of these dimensions (none for a scalar); `None` where
    /// [`Self::element_bytes`] is, or where the number does not fit 64 bits. A size of 0 gives 0.
    #[must_use]
    pub fn byte_length(self, dimensions: &[u32]) -> Option<u64> {
        length_of(self.element_bytes()? as u64, dimensions)
    }

    /// Smallest and largest zero point this type may have; `(0, 0)` where it has none.
    #[must_use]
    pub const fn zero_point_range(self) -> (i32, i32) {
        match self {
            OperandType::TensorQuant8Asymm => (0, 255),
            OperandType::TensorQuant8AsymmSigned => (-128, 127),
            OperandType::TensorQuant16Asymm => (0, 65_535),
            _ => (0, 0),
        }
    }
}

/// Bytes of a value of these dimensions whose elements have so many; `None` where the number does not fit
/// 64 bits. A size of 0 gives 0.
pub(crate) fn length_of(element_bytes: u64, dimensions: &[u32]) -> Option<u64> {
    if dimensions.contains(&0) {
        return Some(0);
    }
    dimensions.iter().try_fold(element_bytes, |bytes, size| bytes.checked_mul(u64::from(*size)))
}

impl std::fmt::Display for OperandType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OperandType::Extension(code) | OperandType::Unknown(code) => {
                write!(f, "{}({code})", self.name())
            }
            _ => f.write_str(self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_go_both_ways() {
        for ty in OperandType::ALL {
            assert_eq!(OperandType::from_code(ty.code()), *ty);
            assert_eq!(OperandType::from_name(ty.name()), Some(*ty));
        }
        for code in [16, 9_999, 10_002, 0xFFFF] {
            assert_eq!(OperandType::from_code(code), OperandType::Unknown(code));
        }
        for code in [0x1_0000, i32::MAX, i32::MIN, -1] {
            assert_eq!(OperandType::from_code(code), OperandType::Extension(code));
            assert_eq!(OperandType::from_code(code).code(), code);
        }
    }

    #[test]
    fn sizes_are_those_of_the_stored_element() {
        assert_eq!(OperandType::TensorFloat16.element_bytes(), Some(2));
        assert_eq!(OperandType::TensorQuant16Symm.element_bytes(), Some(2));
        assert_eq!(OperandType::Bool.element_bytes(), Some(1));
        assert_eq!(OperandType::Oem.element_bytes(), None);
        assert_eq!(OperandType::TensorOemByte.element_bytes(), Some(1));
    }

    #[test]
    fn byte_length_is_counted_without_overflow() {
        let ty = OperandType::TensorFloat32;
        assert_eq!(ty.byte_length(&[2, 3]), Some(24));
        assert_eq!(OperandType::Float32.byte_length(&[]), Some(4));
        assert_eq!(ty.byte_length(&[u32::MAX, 4]), Some(16 * u64::from(u32::MAX)));
        assert_eq!(ty.byte_length(&[u32::MAX; 3]), None);
        assert_eq!(ty.byte_length(&[u32::MAX, u32::MAX, u32::MAX, 0]), Some(0));
        assert_eq!(OperandType::Oem.byte_length(&[0]), None);
    }
}
