//! Sums of two quantized tensors of one shape: a rescaling of each, a sum, a rescaling of that.

use crate::OpError;
use crate::kernels::simd::Isa;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
mod portable;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{SIGNED, UNSIGNED};
pub(crate) use portable::{SHIFT, Sum};

impl Sum {
    /// Sums unsigned values.
    ///
    /// # Errors
    /// [`OpError::Internal`] for slices of different lengths.
    pub(crate) fn unsigned(
        &self,
        isa: Isa,
        a: &[u8],
        b: &[u8],
        out: &mut [u8],
    ) -> Result<(), OpError> {
        check_lengths(a.len(), b.len(), out.len())?;
        dispatch::unsigned(isa, self, a, b, out);
        Ok(())
    }

    /// Sums signed values.
    ///
    /// # Errors
    /// As [`Sum::unsigned`].
    pub(crate) fn signed(
        &self,
        isa: Isa,
        a: &[i8],
        b: &[i8],
        out: &mut [i8],
    ) -> Result<(), OpError> {
        check_lengths(a.len(), b.len(), out.len())?;
        dispatch::signed(isa, self, a, b, out);
        Ok(())
    }
}

/// Refuses slices of different lengths.
pub(crate) fn check_lengths(a: usize, b: usize, out: usize) -> Result<(), OpError> {
    if a == out && b == out {
        return Ok(());
    }
    Err(OpError::Internal { what: "summands of different lengths" })
}
