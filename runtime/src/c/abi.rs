//! What the structures of the header look like in memory.

#![allow(unsafe_code, reason = "says of structures that any bits are a value of them")]

use burst_hal::ResultCode;
use burst_hal::validate::MAX_RANK;

use super::arguments::{In, Plain};
use crate::{Error, OperandTypeDesc, Result};

/// `ANeuralNetworksOperandType`.
///
/// ```text
///  0       4       8                16      20      24
///  | type  | count | dimensions     | scale | zero  |     64 bits
/// ```
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct OperandType {
    ty: i32,
    dimension_count: u32,
    dimensions: In<u32>,
    scale: f32,
    zero_point: i32,
}

/// `ANeuralNetworksSymmPerChannelQuantParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SymmPerChannelQuantParams {
    pub(super) channel_dim: u32,
    pub(super) scale_count: u32,
    pub(super) scales: In<f32>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<OperandType>() == 24
        && std::mem::offset_of!(OperandType, dimensions) == 8
        && std::mem::offset_of!(OperandType, zero_point) == 20
        && size_of::<SymmPerChannelQuantParams>() == 16
);
#[cfg(target_pointer_width = "32")]
const _: () =
    assert!(size_of::<OperandType>() == 20 && size_of::<SymmPerChannelQuantParams>() == 12);

// SAFETY: numbers, and a pointer wrapped as `In`, which may hold any address.
unsafe impl Plain for OperandType {}
// SAFETY: the same.
unsafe impl Plain for SymmPerChannelQuantParams {}

impl OperandType {
    /// The same with the dimensions copied out.
    ///
    /// # Errors
    /// BAD_DATA for more dimensions than any operand may have, and for dimensions that are counted but
    /// not there.
    pub(super) fn desc(self) -> Result<OperandTypeDesc> {
        let count = self.dimension_count;
        if count > 0 && self.dimensions.is_null() {
            let cause = format!("{count} dimensions, and a null pointer to them");
            return Err(Error::new(ResultCode::BadData, cause));
        }
        let dimensions = match count {
            0 => Vec::new(),
            _ => self.dimensions.read_many(count, MAX_RANK, "dimensions")?,
        };
        Ok(OperandTypeDesc {
            code: self.ty,
            dimensions,
            scale: self.scale,
            zero_point: self.zero_point,
        })
    }
}
