//! Element types of tensors in a `.tflite` file.

/// What one element of a tensor in the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// 32-bit float.
    Float32,
    /// 16-bit float.
    Float16,
    /// 32-bit signed integer.
    Int32,
    /// 8-bit unsigned integer, quantized or not.
    Uint8,
    /// 64-bit signed integer.
    Int64,
    /// Truth value in one byte.
    Bool,
    /// 16-bit signed integer.
    Int16,
    /// Two 32-bit floats.
    Complex64,
    /// 8-bit signed integer.
    Int8,
    /// Any other, by its code in the file.
    Other(i8),
}

impl ElementType {
    /// The type with this code.
    pub(crate) fn from_code(code: i8) -> Self {
        match code {
            0 => ElementType::Float32,
            1 => ElementType::Float16,
            2 => ElementType::Int32,
            3 => ElementType::Uint8,
            4 => ElementType::Int64,
            6 => ElementType::Bool,
            7 => ElementType::Int16,
            8 => ElementType::Complex64,
            9 => ElementType::Int8,
            code => ElementType::Other(code),
        }
    }

    /// Bytes of one element, where the importer reads constants of this type.
    pub(crate) fn bytes(self) -> Option<usize> {
        match self {
            ElementType::Float32 | ElementType::Int32 => Some(4),
            ElementType::Float16 | ElementType::Int16 => Some(2),
            ElementType::Uint8 | ElementType::Int8 | ElementType::Bool => Some(1),
            ElementType::Int64 | ElementType::Complex64 => Some(8),
            ElementType::Other(_) => None,
        }
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ElementType::Float32 => "float32",
            ElementType::Float16 => "float16",
            ElementType::Int32 => "int32",
            ElementType::Uint8 => "uint8",
            ElementType::Int64 => "int64",
            ElementType::Bool => "bool",
            ElementType::Int16 => "int16",
            ElementType::Complex64 => "complex64",
            ElementType::Int8 => "int8",
            ElementType::Other(5) => "string",
            ElementType::Other(10) => "float64",
            ElementType::Other(11) => "complex128",
            ElementType::Other(12) => "uint64",
            ElementType::Other(15) => "uint32",
            ElementType::Other(16) => "uint16",
            ElementType::Other(17) => "int4",
            ElementType::Other(code) => return write!(f, "element type {code}"),
        })
    }
}
