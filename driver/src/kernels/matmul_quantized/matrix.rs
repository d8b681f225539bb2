//! Matrices of packed weights of 8 bits in the form that is fastest with the instructions at hand.

use std::ops::Range;
use std::sync::OnceLock;

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_tensor::NdTensorView;

use super::ByteRows;
use super::dispatch;
use super::pairs::PairMatrix;
use super::quads::{self, QUAD, QuadMatrix};
use crate::OpError;
use crate::aligned::AlignedBytes;
use crate::budget::Budget;
use crate::compute;
use crate::kept::KeptValue;
use crate::kernels::requantize::Requantize;
use crate::kernels::simd::{Isa, has_avx2, has_halved_vnni, portable_kernel};

portable_kernel! {
    /// `matmul_quantized/library`: see [`ByteMatrix`]. Which instructions it takes is up to
    /// the library.
    LIBRARY = "matmul_quantized/library",
    operations: [Conv2d, FullyConnected],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
}

/// Products that a 32-bit sum holds whatever their values: `(2^31 - 1) / (255 * 128)`.
pub(crate) const MAX_EXACT_DEPTH: usize = 65_792;

/// The executor can be shared but not sent, so the cell holds a reference to one that lives as long
/// as the process; it is a few bytes.
fn byte_executor() -> &'static GemmExecutor<u8, i8, i32> {
    static EXECUTOR: OnceLock<&GemmExecutor<u8, i8, i32>> = OnceLock::new();
    EXECUTOR.get_or_init(|| Box::leak(Box::default()))
}

fn wrong_size<E>(_: E) -> OpError {
    OpError::Internal { what: "sizes of a matrix product" }
}

/// Columns that the library's packed matrices are padded to, at most.
const PANEL: usize = 32;

/// Numbers of 32 bits that the library keeps beside the packed weights of each unit, at most: their sum.
const SUMS: usize = 4;

fn library_bytes(units: usize, depth: usize) -> usize {
    units
        .next_multiple_of(PANEL)
        .saturating_mul(depth.next_multiple_of(4) + SUMS * size_of::<i32>())
}

/// Rows of activations where they lie.
#[derive(Clone, Copy)]
pub(crate) struct RowsInPlace<'a> {
    pub(crate) rows: &'a ByteRows<'a>,
    /// What each byte is XORed with.
    pub(crate) flip: u8,
    /// What is added to all sums of a row, for each row, or for none.
    pub(crate) terms: &'a [i32],
}

/// Packed weights of 8 bits, for products with unsigned bytes.
pub(crate) struct ByteMatrix(Form);

enum Form {
    Quads(QuadMatrix),
    Library(PackedBMatrix<i8>),
    /// For AVX2.
    WidePairs(PairMatrix),
    Pairs(PairMatrix),
}

impl std::fmt::Debug for ByteMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Form::Library(packed) => {
                write!(f, "ByteMatrix({} x {})", packed.rows(), packed.cols())
            }
            Form::WidePairs(pairs) | Form::Pairs(pairs) => pairs.fmt(f),
            Form::Quads(quads) => quads.fmt(f),
        }
    }
}

/// Whether the library's products of bytes are exact here, and the instructions it takes are among
/// those allowed.
fn library_is_exact(isa: Isa) -> bool {
    let is_asked = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    let allowed = isa.vnni || isa.neon || !is_asked;
    allowed && !byte_executor().may_saturate()
}

/// Bytes of a weight of 8 bits as it is packed with these instructions.
pub(crate) fn packed_weight_bytes(isa: Isa) -> usize {
    let is_whole = dispatch::has_quads(isa) || library_is_exact(isa);
    if is_whole { size_of::<u8>() } else { size_of::<i16>() }
}

/// The library packs all weights in one go.
fn library_form(
    isa: Isa,
    (weights, flip): (&[u8], u8),
    (units, depth): (usize, usize),
    budget: &Budget<'_>,
) -> Result<PackedBMatrix<i8>, OpError> {
    let flipped = flipped(isa, (weights, flip), budget)?;
    let weights = bytemuck::cast_slice(flipped.as_ref().map_or(weights, AlignedBytes::as_slice));
    budget.charge(library_bytes(units, depth))?;
    budget.stop().check()?;
    let rows = NdTensorView::try_from_data([units, depth], weights).map_err(wrong_size)?;
    Ok(byte_executor().prepack_b(rows.transposed()))
}

/// A copy of weights that are not signed yet, with each byte XORed; `None` where there is nothing to change.
fn flipped(
    isa: Isa,
    (weights, flip): (&[u8], u8),
    budget: &Budget<'_>,
) -> Result<Option<AlignedBytes>, OpError> {
    if flip == 0 {
        return Ok(None);
    }
    AlignedBytes::copied(weights.len(), budget.same_account(), budget.stop(), |at, part| {
        dispatch::copy_flipped(isa, &weights[at..][..part.len()], flip, part);
        Ok(())
    })
    .map(Some)
}

/// So many bytes in memory that the budget's account pays for.
fn collected(
    count: usize,
    mut bytes: impl Iterator<Item = u8>,
    budget: &Budget<'_>,
) -> Result<AlignedBytes, OpError> {
    AlignedBytes::copied(count, budget.same_account(), budget.stop(), |_, part| {
        part.iter_mut().zip(&mut bytes).for_each(|(to, byte)| *to = byte);
        Ok(())
    })
}

/// The zero point of weights that pairs are packed less of; `None` where it is none of 8 bits, or there is no
/// kernel with these instructions.
fn wide_zero(isa: Isa, zero: i32) -> Option<i8> {
    i8::try_from(zero).ok().filter(|_| has_avx2(isa))
}

impl ByteMatrix {
    /// Packs weights `[units, depth]` with this zero point, which are signed once each byte is XORed with `flip`. `seen` is
    /// told of each row when it is about to be packed, so that it comes from memory once.
    ///
    /// # Errors
    /// [`OpError::Internal`] when there are not that many, or the depth is over
    /// [`MAX_EXACT_DEPTH`]; what the budget says.
    pub(crate) fn new(
        isa: Isa,
        (weights, flip): (&[u8], u8),
        (units, depth): (usize, usize),
        zero: i32,
        mut seen: impl FnMut(usize, &[u8]),
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        if Some(weights.len()) != units.checked_mul(depth) || depth > MAX_EXACT_DEPTH {
            return Err(wrong_size(depth));
        }
        if units == 0 || depth == 0 {
            return Err(wrong_size(depth));
        }
        let sizes = (units, depth);
        let row = |unit: usize| {
            let row = &weights[unit * depth..][..depth];
            seen(unit, row);
            row
        };
        Ok(ByteMatrix(if dispatch::has_quads(isa) {
            Form::Quads(QuadMatrix::new(isa, row, flip, sizes, budget)?)
        } else if library_is_exact(isa) {
            let mut checkpoints = budget.stop().checkpoints();
            for row in (0..units).map(row) {
                checkpoints.after(row.len())?;
            }
            Form::Library(library_form(isa, (weights, flip), sizes, budget)?)
        } else if let Some(zero) = wide_zero(isa, zero) {
            Form::WidePairs(PairMatrix::new(isa, row, (flip, zero), sizes, budget)?)
        } else {
            Form::Pairs(PairMatrix::new(isa, row, (flip, 0), sizes, budget)?)
        }))
    }

    /// The weights as bytes in the order in which a kernel of our own reads them, from which
    /// [`ByteMatrix::restored`] makes the same again; `None` where the order is the library's.
    ///
    /// # Errors
    /// What the budget says.
    pub(crate) fn packed_bytes(
        &self,
        budget: &Budget<'_>,
    ) -> Result<Option<AlignedBytes>, OpError> {
        match &self.0 {
            Form::Quads(quads) => budget.copy_of(quads.bytes()).map(Some),
            Form::WidePairs(pairs) | Form::Pairs(pairs) => {
                let count = pairs.held_bytes() / size_of::<i16>();
                collected(count, pairs.bytes(), budget).map(Some)
            }
            Form::Library(_) => Ok(None),
        }
    }

    /// Weights that [`ByteMatrix::packed_bytes`] gave with the same instructions.
    ///
    /// # Errors
    /// [`OpError::Internal`] for another number of bytes; what the budget says.
    pub(crate) fn restored(
        isa: Isa,
        packed: &KeptValue,
        (units, depth): (usize, usize),
        zero: i32,
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        let sizes = (units, depth);
        Ok(ByteMatrix(if dispatch::has_quads(isa) {
            Form::Quads(QuadMatrix::kept(packed, units, depth)?)
        } else if let Some(zero) = wide_zero(isa, zero) {
            Form::WidePairs(PairMatrix::restored(packed.bytes(), sizes, zero, budget)?)
        } else {
            Form::Pairs(PairMatrix::restored(packed.bytes(), sizes, 0, budget)?)
        }))
    }

    /// Whether products are those of weights less their zero point, so that rows need no terms for it.
    pub(crate) fn is_less_zero(&self) -> bool {
        matches!(self.0, Form::WidePairs(_))
    }

    /// Numbers of working memory that products need for so many outputs.
    #[must_use]
    pub(crate) fn sums_len(&self, outputs: usize) -> usize {
        match &self.0 {
            Form::Quads(_) => 0,
            Form::WidePairs(pairs) => dispatch::wide_len(pairs.depth()),
            Form::Library(_) | Form::Pairs(_) => outputs,
        }
    }

    /// `out[row, unit]` from `sum(rows[row, ..] * weights[unit, ..]) + row_terms[row]` by the rules;
    /// no terms stand for zeros.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub(crate) fn multiply(
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
                let rows = (&ByteRows::Matrix { values: rows, depth: quads.depth() }, 0);
                let (rules, all) = (rules.channels(0..rules.bias.len()), quads.units());
                let panels = quads.channels(0, all);
                return dispatch::multiply_quads(isa, panels, rows, rules, row_terms, out);
            }
            Form::WidePairs(pairs) => {
                if !row_terms.is_empty() {
                    return Err(wrong_size(row_terms));
                }
                let rows = (&ByteRows::Matrix { values: rows, depth: pairs.depth() }, 0);
                let (rules, all) = (rules.channels(0..rules.bias.len()), pairs.units());
                let panels = pairs.channels(0, all);
                return dispatch::multiply_wide(isa, panels, rows, rules, sums, out);
            }
            Form::Pairs(pairs) => multiply_pairs(isa, pairs, rows, sums)?,
            Form::Library(packed) => {
                let depth = packed.rows();
                let rows = NdTensorView::try_from_data([rows.len() / depth.max(1), depth], rows)
                    .map_err(wrong_size)?;
                compute::enter();
                let (rows, packed) = (GemmInputA::Unpacked(rows), GemmInputB::Packed(packed));
                byte_executor()
                    .gemm(sums, rows, packed, GemmOptions::default())
                    .map_err(wrong_size)?;
            }
        }
        rules.rows(isa, sums, row_terms, out);
        Ok(())
    }

    /// Values that pieces of rows must have a multiple of for [`ByteMatrix::multiply_in_place`]; `None` where
    /// it is not there.
    pub(crate) fn piece_step(&self) -> Option<usize> {
        match self.0 {
            Form::Quads(_) => Some(QUAD),
            Form::WidePairs(_) => Some(1),
            Form::Library(_) | Form::Pairs(_) => None,
        }
    }

    /// Whether [`ByteMatrix::multiply_in_place`] had better be given bytes that were flipped once before: it reads and
    /// flips a byte for each tap that meets it, and that takes time from the products.
    pub(crate) fn is_flipped_before(&self, isa: Isa) -> bool {
        matches!(self.0, Form::Quads(_)) && !has_halved_vnni(isa)
    }

    /// As [`ByteMatrix::multiply`] of rows where they lie, each byte XORed with `flip`, for these outputs, which
    /// begin a panel. `out` has only theirs, row by row.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit, or there is no such product.
    pub(crate) fn multiply_in_place(
        &self,
        isa: Isa,
        RowsInPlace { rows, flip, terms }: RowsInPlace<'_>,
        (rules, channels): (&Requantize, Range<usize>),
        space: &mut [i32],
        out: &mut [u8],
    ) -> Result<(), OpError> {
        if channels.end > rules.bias.len() || !channels.start.is_multiple_of(quads::LANES) {
            return Err(wrong_size(channels));
        }
        let (first, count, rules) = (channels.start, channels.len(), rules.channels(channels));
        match &self.0 {
            Form::Quads(quads) => {
                let panels = quads.channels(first, count);
                dispatch::multiply_quads(isa, panels, (rows, flip), rules, terms, out)
            }
            Form::WidePairs(pairs) if terms.is_empty() => {
                let panels = pairs.channels(first, count);
                dispatch::multiply_wide(isa, panels, (rows, flip), rules, space, out)
            }
            _ => Err(wrong_size(flip)),
        }
    }

    /// How many outputs of a row [`ByteMatrix::multiply_in_place`] takes at a time, or a multiple of it;
    /// `None` where it is not there.
    #[must_use]
    pub(crate) fn channel_step(&self) -> Option<usize> {
        matches!(self.0, Form::Quads(_) | Form::WidePairs(_)).then_some(4 * quads::LANES)
    }

    /// Bytes held.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.0 {
            Form::Library(packed) => library_bytes(packed.cols(), packed.rows()),
            Form::WidePairs(pairs) | Form::Pairs(pairs) => pairs.held_bytes(),
            Form::Quads(quads) => quads.held_bytes(),
        }
    }

    /// Which algorithm it is, for profiles.
    #[must_use]
    pub(crate) fn name(&self) -> &'static str {
        match &self.0 {
            Form::Quads(_) if cfg!(target_arch = "aarch64") => "matrix 8 bit, arm quads",
            Form::Quads(_) => "matrix 8 bit, vnni",
            Form::Library(_) => "matrix 8 bit, library",
            Form::WidePairs(_) => "matrix 8 bit, avx2 pairs",
            Form::Pairs(_) => "matrix 8 bit, pairs",
        }
    }
}

/// `out[row, unit] = sum(rows[row, ..] * weights[unit, ..])`.
///
/// # Errors
/// [`OpError::Internal`] when sizes do not fit.
pub(super) fn multiply_pairs(
    isa: Isa,
    matrix: &PairMatrix,
    rows: &[u8],
    out: &mut [i32],
) -> Result<(), OpError> {
    let (units, depth) = (matrix.units(), matrix.depth());
    let count = out.len() / units.max(1);
    if rows.len() != count * depth || out.len() != count * units {
        return Err(OpError::Internal { what: "sizes of a matrix product" });
    }
    if depth == 0 {
        out.fill(0);
    } else {
        dispatch::multiply_pairs(isa, matrix, rows, out);
    }
    Ok(())
}
