//! Matrix products: rows of activations times packed weights.
//!
//! Weights come as `[units, depth]`, one row per output channel, and are packed once. Floats go
//! through the matrix library. So do 8-bit products where its instructions do not saturate, unless
//! there is a kernel of ours that brings sums to stored values before they leave the registers
//! ([`gemm_quads`](crate::kernels::gemm_quads)); other CPUs take
//! [`gemm_pairs`](crate::kernels::gemm_pairs). Sums of 8-bit products are exact in all of them, as
//! long as the depth is at most [`MAX_EXACT_DEPTH`].

use std::sync::OnceLock;

use rten_gemm::{BiasVector, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_tensor::NdTensorView;

use crate::OpError;
use crate::kernels::gemm_pairs::PairMatrix;
use crate::kernels::gemm_quads::QuadMatrix;
use crate::kernels::requantize::Requantize;
use crate::kernels::{Isa, gemm_quads, simd};

/// Products that a 32-bit sum holds whatever their values: `(2^31 - 1) / (255 * 128)`.
pub const MAX_EXACT_DEPTH: usize = 65_792;

// Executors can be shared but not sent, so the cells hold references to ones that live as long as the
// process; each is a few bytes.

fn float_executor() -> &'static GemmExecutor<f32> {
    static EXECUTOR: OnceLock<&GemmExecutor<f32>> = OnceLock::new();
    EXECUTOR.get_or_init(|| Box::leak(Box::default()))
}

fn byte_executor() -> &'static GemmExecutor<u8, i8, i32> {
    static EXECUTOR: OnceLock<&GemmExecutor<u8, i8, i32>> = OnceLock::new();
    EXECUTOR.get_or_init(|| Box::leak(Box::default()))
}

fn wrong_size<E>(_: E) -> OpError {
    OpError::Internal { what: "sizes of a matrix product" }
}

/// Packed weights of 32-bit floats.
pub struct FloatMatrix {
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
    /// [`OpError::Internal`] when there are not that many.
    pub fn new(weights: &[f32], units: usize, depth: usize) -> Result<Self, OpError> {
        let rows = NdTensorView::try_from_data([units, depth], weights).map_err(wrong_size)?;
        Ok(FloatMatrix { packed: float_executor().prepack_b(rows.transposed()) })
    }

    /// `out[row, unit] = sum(rows[row, ..] * weights[unit, ..]) + bias[unit]`.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub fn multiply(&self, rows: &[f32], bias: &[f32], out: &mut [f32]) -> Result<(), OpError> {
        let depth = self.packed.rows();
        let count = rows.len() / depth.max(1);
        let rows = NdTensorView::try_from_data([count, depth], rows).map_err(wrong_size)?;
        let options = GemmOptions { bias: Some(BiasVector::Row(bias)), ..Default::default() };
        float_executor()
            .gemm(out, GemmInputA::Unpacked(rows), GemmInputB::Packed(&self.packed), options)
            .map_err(wrong_size)
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        size_of::<f32>() * self.packed.rows() * self.packed.cols().next_multiple_of(PANEL)
    }
}

/// Columns that the library's packed matrices are padded to, at most.
const PANEL: usize = 32;

/// Packed weights of 8 bits, for products with unsigned bytes.
pub struct ByteMatrix(Form);

enum Form {
    Quads(QuadMatrix),
    Library(PackedBMatrix<i8>),
    Pairs(PairMatrix),
}

impl std::fmt::Debug for ByteMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Form::Library(packed) => {
                write!(f, "ByteMatrix({} x {})", packed.rows(), packed.cols())
            }
            Form::Pairs(pairs) => pairs.fmt(f),
            Form::Quads(quads) => quads.fmt(f),
        }
    }
}

/// Whether the library's products of bytes are exact here, and the instructions it takes are among
/// those allowed.
fn library_is_exact(isa: Isa) -> bool {
    let allowed = isa.vnni || !cfg!(target_arch = "x86_64");
    allowed && !byte_executor().may_saturate()
}

impl ByteMatrix {
    /// Packs weights `[units, depth]`.
    ///
    /// # Errors
    /// [`OpError::Internal`] when there are not that many, or the depth is over
    /// [`MAX_EXACT_DEPTH`].
    pub fn new(isa: Isa, weights: &[i8], units: usize, depth: usize) -> Result<Self, OpError> {
        let rows = NdTensorView::try_from_data([units, depth], weights).map_err(wrong_size)?;
        if depth > MAX_EXACT_DEPTH {
            return Err(wrong_size(depth));
        }
        if units == 0 || depth == 0 {
            return Err(wrong_size(depth));
        }
        Ok(ByteMatrix(if simd::has_quads(isa) {
            Form::Quads(QuadMatrix::new(weights, units, depth))
        } else if library_is_exact(isa) {
            Form::Library(byte_executor().prepack_b(rows.transposed()))
        } else {
            Form::Pairs(PairMatrix::new(weights, units, depth))
        }))
    }

    /// Numbers of working memory that [`ByteMatrix::multiply`] needs for so many outputs.
    #[must_use]
    pub fn sums_len(&self, outputs: usize) -> usize {
        if matches!(self.0, Form::Quads(_)) { 0 } else { outputs }
    }

    /// `out[row, unit]` from `sum(rows[row, ..] * weights[unit, ..]) + row_terms[row]` by the rules;
    /// no terms stand for zeros.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub fn multiply(
        &self,
        isa: Isa,
        rows: &[u8],
        rules: &Requantize,
        row_terms: &[i32],
        sums: &mut [i32],
        out: &mut [u8],
    ) -> Result<(), OpError> {
        match &self.0 {
            Form::Quads(quads) => {
                let (rules, all) = (rules.channels(0..rules.bias.len()), quads.units());
                let panels = quads.channels(0, all);
                return simd::multiply_quads(isa, panels, rows, rules, row_terms, out);
            }
            Form::Pairs(pairs) => pairs.multiply(isa, rows, sums)?,
            Form::Library(packed) => {
                let depth = packed.rows();
                let rows = NdTensorView::try_from_data([rows.len() / depth.max(1), depth], rows)
                    .map_err(wrong_size)?;
                let (rows, packed) = (GemmInputA::Unpacked(rows), GemmInputB::Packed(packed));
                byte_executor()
                    .gemm(sums, rows, packed, GemmOptions::default())
                    .map_err(wrong_size)?;
            }
        }
        rules.rows(isa, sums, row_terms, out);
        Ok(())
    }

    /// How many outputs [`ByteMatrix::multiply_channels`] takes at a time, or a multiple of it;
    /// `None` where it is not there.
    #[must_use]
    pub fn channel_step(&self) -> Option<usize> {
        matches!(self.0, Form::Quads(_)).then_some(4 * gemm_quads::LANES)
    }

    /// As [`ByteMatrix::multiply`] of one row, for the outputs from `first` on, as many as `out` has
    /// room for.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit, or there is no such product.
    pub fn multiply_channels(
        &self,
        isa: Isa,
        row: &[u8],
        rules: &Requantize,
        row_terms: &[i32],
        first: usize,
        out: &mut [u8],
    ) -> Result<(), OpError> {
        let Form::Quads(quads) = &self.0 else { return Err(wrong_size(first)) };
        let channels = first..first + out.len();
        if channels.end > quads.units() || !first.is_multiple_of(gemm_quads::LANES) {
            return Err(wrong_size(first));
        }
        let panels = quads.channels(first, out.len());
        simd::multiply_quads(isa, panels, row, rules.channels(channels), row_terms, out)
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match &self.0 {
            Form::Library(packed) => packed.rows() * packed.cols().next_multiple_of(PANEL),
            Form::Pairs(pairs) => pairs.held_bytes(),
            Form::Quads(quads) => quads.held_bytes(),
        }
    }

    /// Which algorithm it is, for profiles.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Form::Quads(_) => "matrix 8 bit, vnni",
            Form::Library(_) => "matrix 8 bit, library",
            Form::Pairs(_) => "matrix 8 bit, pairs",
        }
    }
}
