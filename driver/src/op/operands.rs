//! Reading the operands that say how an operation computes: scalars, and short lists of numbers.

use burst_hal::OperandType;
use half::f16;

use crate::OpError;
use crate::op::Run;
use crate::tensor::{Args, TensorRef, Value};

/// The inputs of one operation, as far as their values are known.
///
/// What reads attributes reads them through this trait, so that one function serves while the model
/// is prepared (`Args`: a value is known where it is a constant) and while it runs ([`Run`]: all
/// are known).
pub trait Operands {
    /// How many inputs the operation has.
    fn count(&self) -> usize;

    /// The type of input `index`, where there is one.
    fn ty(&self, index: usize) -> Option<OperandType>;

    /// Whether input `index` is in the list and was not left out.
    fn has(&self, index: usize) -> bool;

    /// The bytes of input `index`.
    ///
    /// # Errors
    /// [`OpError::Arity`] when there are not that many, [`OpError::Omitted`] when it was left out,
    /// [`OpError::NotYet`] when its value is known only when the model runs.
    fn bytes(&self, index: usize) -> Result<&[u8], OpError>;

    /// Input `index` with shape and bytes.
    ///
    /// # Errors
    /// As [`Operands::bytes`]; [`OpError::NotYet`] also when the shape is not known.
    fn tensor(&self, index: usize) -> Result<TensorRef<'_>, OpError>;

    /// The INT32 (or UINT32) scalar at input `index`.
    ///
    /// # Errors
    /// As [`Operands::bytes`]; [`OpError::Range`] when the operand is too short.
    fn i32(&self, index: usize) -> Result<i32, OpError> {
        let short = OpError::Range { what: "size of an INT32 scalar" };
        self.bytes(index)?.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or(short)
    }

    /// The BOOL scalar at input `index`; any byte but 0 is true.
    ///
    /// # Errors
    /// As [`Operands::bytes`]; [`OpError::Range`] when the operand is too short.
    fn bool(&self, index: usize) -> Result<bool, OpError> {
        let short = OpError::Range { what: "size of a BOOL scalar" };
        self.bytes(index)?.first().map(|byte| *byte != 0).ok_or(short)
    }

    /// The FLOAT32 scalar at input `index`, or the FLOAT16 scalar as `f32`.
    ///
    /// # Errors
    /// As [`Operands::bytes`]; [`OpError::Range`] when the operand is too short,
    /// [`OpError::Type`] when it is no float.
    fn float(&self, index: usize) -> Result<f32, OpError> {
        let bytes = self.bytes(index)?;
        let short = OpError::Range { what: "size of a float scalar" };
        match self.ty(index) {
            Some(OperandType::Float16 | OperandType::TensorFloat16) => {
                bytes.first_chunk().map(|bytes| f16::from_ne_bytes(*bytes).to_f32()).ok_or(short)
            }
            Some(OperandType::Float32 | OperandType::TensorFloat32) => {
                bytes.first_chunk().map(|bytes| f32::from_ne_bytes(*bytes)).ok_or(short)
            }
            Some(got) => Err(OpError::Type { want: "a float scalar", got }),
            None => Err(OpError::Arity { want: index + 1, got: self.count() }),
        }
    }
}

impl Operands for Args<'_> {
    fn count(&self) -> usize {
        self.inputs.len()
    }

    fn ty(&self, index: usize) -> Option<OperandType> {
        self.inputs.get(index).map(|arg| arg.info.ty)
    }

    fn has(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(|arg| !matches!(arg.value, Value::Omitted))
    }

    fn bytes(&self, index: usize) -> Result<&[u8], OpError> {
        match self.input(index)?.value {
            Value::Omitted => Err(OpError::Omitted { index }),
            Value::Unknown => Err(OpError::NotYet),
            Value::Bytes(bytes) => Ok(bytes),
        }
    }

    fn tensor(&self, index: usize) -> Result<TensorRef<'_>, OpError> {
        Args::tensor(self, index)
    }
}

impl Operands for Run<'_, '_> {
    fn count(&self) -> usize {
        self.inputs.len()
    }

    fn ty(&self, index: usize) -> Option<OperandType> {
        self.inputs.get(index).map(|input| input.info.ty)
    }

    fn has(&self, index: usize) -> bool {
        self.optional(index).is_some()
    }

    fn bytes(&self, index: usize) -> Result<&[u8], OpError> {
        self.input(index)?.bytes.ok_or(OpError::Omitted { index })
    }

    fn tensor(&self, index: usize) -> Result<TensorRef<'_>, OpError> {
        self.input(index)
    }
}
