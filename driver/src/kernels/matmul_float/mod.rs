//! Products of rows of floats with packed weights.
//!
//! [`Product`] is ours; [`FloatMatrix`] is the matrix library's, which has kernels for more instruction
//! sets.

use crate::OpError;
use crate::kernels::conv::MatrixRows;
use crate::kernels::panels::LANES;
use crate::kernels::simd::{Isa, has_avx2};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
mod library;
mod portable;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{CLAMP, PANELS, clamp};
pub(crate) use library::{FloatMatrix, LIBRARY};
pub(crate) use portable::{EVERYTHING, FloatPanels, Product, Start};

/// Units that are computed together where there is only one row: as many sums as hide how long a
/// multiplication takes.
pub(crate) const ONE_ROW_UNITS: usize = 8 * LANES;

/// Rows of floats.
pub(crate) type FloatRows<'a> = MatrixRows<'a, f32>;

/// Whether [`Product::run`] has a kernel of its own with these instructions.
pub(crate) fn has_panels(isa: Isa) -> bool {
    has_avx2(isa)
}

impl Product<'_> {
    /// Computes the product. Values of `out` between the rows stay.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub(crate) fn run(&self, isa: Isa, out: &mut [f32]) -> Result<(), OpError> {
        let units = self.units.count();
        let count = self.rows.count();
        if count == 0 {
            return Ok(());
        }
        let bias_fits = match self.start {
            Start::Bias(bias) => bias.len() == units,
            Start::Output => true,
        };
        let fits = self.rows.depth() == self.units.depth()
            && bias_fits
            && self.out_step >= units
            && out.len() >= (count - 1) * self.out_step + units;
        if !fits {
            return Err(portable::wrong_size());
        }
        dispatch::multiply(isa, self, out);
        Ok(())
    }
}
