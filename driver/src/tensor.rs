//! Tensors as kernels see them: what the numbers mean, the shape, and the bytes.

use std::sync::Arc;

use burst_hal::{Dimensions, ExtraParams, Operand, OperandType};
use half::f16;

use crate::extension_type::ExtensionType;
use crate::guarded::GuardedBytes;
use crate::{OpError, aligned::AlignedBytes};

/// What the stored numbers of a tensor or scalar mean.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorInfo {
    /// Element type.
    pub ty: OperandType,
    /// Real value of one step of a quantized type.
    pub scale: f32,
    /// Stored value that stands for real 0.
    pub zero_point: i32,
    /// Per-channel scales and the dimension they run along.
    pub channel_scales: Option<(Arc<[f32]>, usize)>,
    /// What the type is, where an extension that the device knows brought it.
    pub extension: Option<ExtensionType>,
}

impl TensorInfo {
    /// What an operand's numbers mean; of an extension's type what the device knows of it.
    pub(crate) fn new(operand: &Operand, extension: Option<ExtensionType>) -> Self {
        let channel_scales = match &operand.extra_params {
            ExtraParams::ChannelQuant { scales, channel_dim } => {
                Some((Arc::clone(scales), *channel_dim as usize))
            }
            _ => None,
        };
        TensorInfo {
            ty: operand.ty,
            scale: operand.scale,
            zero_point: operand.zero_point,
            channel_scales,
            extension,
        }
    }

    /// Bytes of one element; `None` where the type has no known size.
    #[must_use]
    pub fn element_bytes(&self) -> Option<usize> {
        match &self.extension {
            Some(extension) => usize::try_from(extension.def.byte_size).ok(),
            None => self.ty.element_bytes(),
        }
    }

    /// Whether its values have dimensions, as far as is known.
    #[must_use]
    pub fn is_tensor(&self) -> bool {
        self.extension.as_ref().map_or(self.ty.is_tensor(), |extension| extension.def.is_tensor)
    }

    /// Bytes that a value of this shape takes.
    ///
    /// # Errors
    /// [`OpError::Range`] when that does not fit in memory, [`OpError::Type`] when the type has no
    /// known element size.
    pub fn byte_count(&self, dims: &[u32]) -> Result<usize, OpError> {
        let unknown = OpError::Type { want: "a type of known size", got: self.ty };
        element_count(dims)?
            .checked_mul(self.element_bytes().ok_or(unknown)?)
            .ok_or(OpError::Range { what: "size of a tensor in bytes" })
    }
}

/// Number of elements of a shape.
///
/// # Errors
/// [`OpError::Range`] when it does not fit in memory.
pub(crate) fn element_count(dims: &[u32]) -> Result<usize, OpError> {
    dims.iter()
        .try_fold(1usize, |count, dim| count.checked_mul(*dim as usize))
        .ok_or(OpError::Range { what: "number of elements" })
}

/// An operand as far as it is known: all of it while running, parts of it while preparing.
#[derive(Debug, Clone, Copy)]
pub struct Arg<'a> {
    /// What the numbers mean.
    pub info: &'a TensorInfo,
    /// The shape, where it is known.
    pub dims: Option<&'a [u32]>,
    /// The bytes, where they are known.
    pub value: Value<'a>,
}

/// What is known of an operand's bytes.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// The operand was left out.
    Omitted,
    /// Not known before the model runs.
    Unknown,
    /// These.
    Bytes(&'a [u8]),
}

/// The inputs and outputs of one operation, for shape inference and kernel choice.
#[derive(Debug, Clone, Copy)]
pub struct Args<'a> {
    /// Inputs in order.
    pub inputs: &'a [Arg<'a>],
    /// What the outputs' numbers mean, and the shape the model declares for each (0 or an empty
    /// list: not known).
    pub outputs: &'a [(&'a TensorInfo, &'a [u32])],
}

impl<'a> Args<'a> {
    /// Input `index`, present or omitted.
    ///
    /// # Errors
    /// [`OpError::Arity`] when there are not that many.
    pub fn input(&self, index: usize) -> Result<&Arg<'a>, OpError> {
        self.inputs.get(index).ok_or(OpError::Arity { want: index + 1, got: self.inputs.len() })
    }

    /// Whether input `index` is there and has a value.
    #[must_use]
    pub fn has(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(|arg| !matches!(arg.value, Value::Omitted))
    }

    /// The shape of input `index`.
    ///
    /// # Errors
    /// [`OpError::NotYet`] when it is not known, [`OpError::Omitted`] when it was left out.
    pub fn dims(&self, index: usize) -> Result<&'a [u32], OpError> {
        let arg = self.input(index)?;
        if matches!(arg.value, Value::Omitted) {
            return Err(OpError::Omitted { index });
        }
        arg.dims.ok_or(OpError::NotYet)
    }

    /// The bytes of input `index`.
    ///
    /// # Errors
    /// [`OpError::NotYet`] when they are not known, [`OpError::Omitted`] when it was left out.
    pub fn bytes(&self, index: usize) -> Result<&'a [u8], OpError> {
        match self.input(index)?.value {
            Value::Omitted => Err(OpError::Omitted { index }),
            Value::Unknown => Err(OpError::NotYet),
            Value::Bytes(bytes) => Ok(bytes),
        }
    }

    /// Input `index` as a tensor with shape and bytes.
    ///
    /// # Errors
    /// As [`Args::dims`] and [`Args::bytes`].
    pub fn tensor(&self, index: usize) -> Result<TensorRef<'a>, OpError> {
        let dims = self.dims(index)?;
        let bytes = self.bytes(index)?;
        Ok(TensorRef { info: self.input(index)?.info, dims, bytes: Some(bytes) })
    }
}

/// An operand that a kernel reads.
#[derive(Debug, Clone, Copy)]
pub struct TensorRef<'a> {
    /// What the numbers mean.
    pub info: &'a TensorInfo,
    /// The shape; empty for scalars.
    pub dims: &'a [u32],
    /// The bytes; `None` where the operand was left out.
    pub bytes: Option<&'a [u8]>,
}

/// Typed views of the bytes. Each fails on an omitted operand and on another element size.
macro_rules! views {
    ($($(#[$doc:meta])* $name:ident $name_mut:ident $ty:ty;)*) => {
        impl<'a> TensorRef<'a> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`OpError::Omitted`], or [`OpError::Type`] when the bytes are no such elements.
                pub fn $name(&self) -> Result<&'a [$ty], OpError> {
                    let bytes = self.bytes.ok_or(OpError::Omitted { index: usize::MAX })?;
                    bytemuck::try_cast_slice(bytes)
                        .map_err(|_| OpError::Type { want: stringify!($ty), got: self.info.ty })
                }
            )*
        }

        impl TensorMut<'_> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`OpError::Type`] when the bytes are no such elements.
                pub fn $name_mut(&mut self) -> Result<&mut [$ty], OpError> {
                    let got = self.info.ty;
                    bytemuck::try_cast_slice_mut(self.bytes_mut())
                        .map_err(|_| OpError::Type { want: stringify!($ty), got })
                }
            )*
        }
    };
}

views! {
    /// The elements as `f32`.
    f32 f32_mut f32;
    /// The elements as IEEE half.
    f16 f16_mut f16;
    /// The elements as `i32`.
    i32 i32_mut i32;
    /// The elements as `u8` (quantized asymmetric, or BOOL8 as 0 and 1).
    u8 u8_mut u8;
    /// The elements as `i8` (quantized signed, symmetric, per channel).
    i8 i8_mut i8;
    /// The elements as `u16` (quantized 16-bit asymmetric).
    u16 u16_mut u16;
    /// The elements as `i16` (quantized 16-bit symmetric).
    i16 i16_mut i16;
}

impl TensorRef<'_> {
    /// Whether the operand has a value.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.bytes.is_some()
    }
}

/// An operand that a kernel writes.
#[derive(Debug)]
pub struct TensorMut<'a> {
    /// What the numbers mean.
    pub info: &'a TensorInfo,
    /// The shape; an operation whose output shape depends on its data changes it by
    /// [`TensorMut::resize`].
    pub dims: &'a mut Dimensions,
    pub(crate) storage: Storage<'a>,
}

/// Where an output's bytes lie.
#[derive(Debug)]
pub(crate) enum Storage<'a> {
    /// A range whose size was planned.
    Fixed(&'a mut [u8]),
    /// Memory that follows the shape.
    Dynamic(&'a mut AlignedBytes),
    /// Memory that follows the shape, with guards around it.
    Guarded(&'a mut GuardedBytes),
}

impl TensorMut<'_> {
    /// The bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.storage {
            Storage::Fixed(bytes) => bytes,
            Storage::Dynamic(bytes) => bytes.as_mut_slice(),
            Storage::Guarded(bytes) => bytes.as_mut_slice(),
        }
    }

    /// Sets the output's shape, where it depends on data; new elements are zero.
    ///
    /// # Errors
    /// [`OpError::Range`] for a shape that does not fit in memory, [`OpError::Internal`] when the
    /// plan gave this output a fixed allocation of another size.
    pub fn resize(&mut self, dims: &[u32]) -> Result<(), OpError> {
        let bytes = self.info.byte_count(dims)?;
        match &mut self.storage {
            Storage::Dynamic(storage) => storage.resize(bytes)?,
            Storage::Guarded(storage) => storage.resize(bytes)?,
            Storage::Fixed(fixed) if fixed.len() == bytes => {}
            Storage::Fixed(_) => {
                return Err(OpError::Internal { what: "a planned output changed its size" });
            }
        }
        self.dims.clear();
        self.dims.extend_from_slice(dims);
        Ok(())
    }
}
