//! Products of floats by the matrix library.

use std::sync::OnceLock;

use rten_gemm::{BiasVector, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_tensor::NdTensorView;

use crate::OpError;
use crate::budget::Budget;
use crate::compute;
use crate::kernels::simd::portable_kernel;

portable_kernel! {
    /// `matmul_float/library`: see [`FloatMatrix`]. Which instructions it takes is up to the
    /// library.
    LIBRARY = "matmul_float/library",
    operations: [Conv2d, FullyConnected],
    types: [TensorFloat32],
}

/// The executor can be shared but not sent, so the cell holds a reference to one that lives as long
/// as the process; it is a few bytes.
fn float_executor() -> &'static GemmExecutor<f32> {
    static EXECUTOR: OnceLock<&GemmExecutor<f32>> = OnceLock::new();
    EXECUTOR.get_or_init(|| Box::leak(Box::default()))
}

fn wrong_size<E>(_: E) -> OpError {
    OpError::Internal { what: "sizes of a matrix product" }
}

/// Packed weights of 32-bit floats.
pub(crate) struct FloatMatrix {
    packed: PackedBMatrix<f32>,
}

impl std::fmt::Debug for FloatMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FloatMatrix({} x {})", self.packed.rows(), self.packed.cols())
    }
}

impl FloatMatrix {
    /// Packs weights `[units, depth]`.
    ///
    /// # Errors
    /// [`OpError::Internal`] when there are not that many; what the budget says. The library packs
    /// them in one go.
    pub(crate) fn new(
        weights: &[f32],
        units: usize,
        depth: usize,
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        let rows = NdTensorView::try_from_data([units, depth], weights).map_err(wrong_size)?;
        budget.charge(packed_bytes(units, depth))?;
        budget.stop().check()?;
        Ok(FloatMatrix { packed: float_executor().prepack_b(rows.transposed()) })
    }

    /// `out[row, unit] = sum(rows[row, ..] * weights[unit, ..]) + bias[unit]`.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub(crate) fn multiply(
        &self,
        rows: &[f32],
        bias: &[f32],
        out: &mut [f32],
    ) -> Result<(), OpError> {
        let depth = self.packed.rows();
        let count = rows.len() / depth.max(1);
        let rows = NdTensorView::try_from_data([count, depth], rows).map_err(wrong_size)?;
        compute::enter();
        let options = GemmOptions { bias: Some(BiasVector::Row(bias)), ..Default::default() };
        float_executor()
            .gemm(out, GemmInputA::Unpacked(rows), GemmInputB::Packed(&self.packed), options)
            .map_err(wrong_size)
    }

    /// Bytes held.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> usize {
        packed_bytes(self.packed.cols(), self.packed.rows())
    }
}

fn packed_bytes(units: usize, depth: usize) -> usize {
    size_of::<f32>().saturating_mul(depth).saturating_mul(units.next_multiple_of(PANEL))
}

/// Columns that the library's packed matrices are padded to, at most.
const PANEL: usize = 32;
