//! Announces the kernels of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first; [`DepthwisePairs`], which has no portable kernel, asks itself.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use std::ops::Range;

use burst_hal::{OperandType, OperationType};

#[cfg(target_arch = "x86_64")]
use super::columns::ColumnFilter;
#[cfg(target_arch = "aarch64")]
use super::neon;
use super::pairs::PairedFilter;
#[cfg(target_arch = "x86_64")]
use super::pairs::{Packed, neighbours, widened};
use super::portable::{self, ByteFilter};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512, columns};
use crate::OpError;
use crate::budget::Budget;
use crate::kernels::conv::Conv;
use crate::kernels::requantize::{Channels, Requantize};
use crate::kernels::simd::{Isa, KernelInfo, Level, kernel};
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::{has_avx2, has_avx512, has_vnni};

kernel! {
    /// Rows `rows` of the output of a depthwise convolution, see [`portable::rows`].
    fn rows(
        conv: &Conv,
        input: &[u8],
        filter: ByteFilter<'_>,
        rules: Channels<'_>,
        rows: Range<usize>,
        sums: &mut [i32],
        out: &mut [u8],
    );
    announced as ROWS = "depthwise_quantized/rows",
    operations: [DepthwiseConv2d],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
    portable: portable::rows,
    neon: neon::rows,
}

/// `depthwise_quantized/pairs`: see [`DepthwisePairs`].
pub(crate) const PAIRS: KernelInfo = KernelInfo {
    name: "depthwise_quantized/pairs",
    operations: &[OperationType::DepthwiseConv2d],
    types: &[OperandType::TensorQuant8Asymm, OperandType::TensorQuant8AsymmSigned],
    compiled_for: &[Level::Avx2, Level::Avx512],
    written_for: &[Level::Avx2, Level::Avx512],
};

/// `depthwise_quantized/columns`: see [`DepthwisePairs`]; filters of 3 by 3 whose weights are bytes.
pub(crate) const COLUMNS: KernelInfo = KernelInfo {
    name: "depthwise_quantized/columns",
    operations: &[OperationType::DepthwiseConv2d],
    types: &[OperandType::TensorQuant8Asymm, OperandType::TensorQuant8AsymmSigned],
    compiled_for: &[Level::Vnni],
    written_for: &[Level::Vnni],
};

/// A quantized depthwise filter for kernels that take several taps at a time: two, or a column of three.
#[derive(Debug, Clone)]
pub(crate) struct DepthwisePairs {
    #[cfg(target_arch = "x86_64")]
    packed: ForIsa,
    #[cfg(not(target_arch = "x86_64"))]
    filter: PairedFilter,
}

/// A filter as the kernel of an instruction set reads it.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone)]
enum ForIsa {
    Avx2(Packed<avx2::PairedRules>),
    Avx512(Packed<avx512::PairedRules>),
    Vnni(ColumnFilter),
}

/// What input values of a depthwise convolution mean, and how its filter moves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DepthwiseInput {
    /// The stored value of real 0.
    pub(crate) zero: i32,
    /// Whether values are signed.
    pub(crate) is_signed: bool,
    /// Whether the filter moves on by one pixel to the right.
    pub(crate) is_dense: bool,
    /// Whether the filter has 3 by 3 taps, of which those of a row are neighbours.
    pub(crate) is_three_by_three: bool,
}

impl DepthwisePairs {
    /// Packs a filter, see [`PairedFilter::new`]; `None` where this CPU has no kernel for it.
    ///
    /// # Errors
    /// What the budget says.
    pub(crate) fn new(
        isa: Isa,
        weights: &[i16],
        rules: &Requantize,
        input: DepthwiseInput,
        budget: &Budget<'_>,
    ) -> Result<Option<Self>, OpError> {
        #[cfg(target_arch = "x86_64")]
        if has_avx2(isa) || has_avx512(isa) {
            let DepthwiseInput { zero, is_signed, is_dense, is_three_by_three } = input;
            if is_three_by_three && has_vnni(isa) {
                // SAFETY: the CPU has the features that the function is compiled for: asked in the line above.
                let filter =
                    unsafe { ColumnFilter::new(weights, rules, (zero, is_signed), budget) };
                if let Some(filter) = filter? {
                    return Ok(Some(DepthwisePairs { packed: ForIsa::Vnni(filter) }));
                }
            }
            let single = PairedFilter::new(weights, rules, zero, is_signed, budget)?;
            let Some(single) = single else { return Ok(None) };
            let mut wide = None;
            let pixels = neighbours(rules.bias.len());
            if is_dense && pixels > 1 {
                let (weights, rules) = widened(weights, rules, pixels, budget)?;
                let filter = PairedFilter::new(&weights, &rules, zero, is_signed, budget)?;
                let Some(filter) = filter else { return Ok(None) };
                wide = Some((filter, pixels));
            }
            let bytes =
                if has_avx512(isa) { avx512::PairedRules::bytes } else { avx2::PairedRules::bytes };
            budget.charge(bytes(&single) + wide.as_ref().map_or(0, |(wide, _)| bytes(wide)))?;
            let packed = if has_avx512(isa) {
                // SAFETY: the CPU has the features that the function is compiled for: asked above.
                let rules = |filter: &PairedFilter| unsafe { avx512::PairedRules::new(filter) };
                ForIsa::Avx512(Packed::new(single, wide, rules))
            } else {
                // SAFETY: as above; without AVX-512 it has AVX2.
                let rules = |filter: &PairedFilter| unsafe { avx2::PairedRules::new(filter) };
                ForIsa::Avx2(Packed::new(single, wide, rules))
            };
            return Ok(Some(DepthwisePairs { packed }));
        }
        let _ = (isa, weights, rules, input, budget);
        Ok(None)
    }

    /// How many channels and taps there are.
    fn sizes(&self) -> (usize, usize) {
        let sizes = |filter: &PairedFilter| (filter.channels(), filter.taps());
        #[cfg(target_arch = "x86_64")]
        return match &self.packed {
            ForIsa::Avx2(packed) => sizes(&packed.single.0),
            ForIsa::Avx512(packed) => sizes(&packed.single.0),
            ForIsa::Vnni(filter) => (filter.channels(), filter.taps()),
        };
        #[cfg(not(target_arch = "x86_64"))]
        return sizes(&self.filter);
    }

    /// How many channels there are.
    pub(crate) fn channels(&self) -> usize {
        self.sizes().0
    }

    /// How many weights there are.
    pub(crate) fn weights(&self) -> usize {
        let (channels, taps) = self.sizes();
        channels * taps
    }

    /// What an operation that uses it is called.
    pub(crate) fn name(&self) -> &'static str {
        #[cfg(target_arch = "x86_64")]
        if let ForIsa::Vnni(_) = &self.packed {
            return "depthwise 8 bit, tap columns";
        }
        "depthwise 8 bit, tap pairs"
    }

    /// Rows of a quantized depthwise convolution, as [`rows`].
    pub(crate) fn run(
        &self,
        isa: Isa,
        conv: &Conv,
        input: &[u8],
        rows: Range<usize>,
        out: &mut [u8],
    ) -> Result<(), OpError> {
        #[cfg(target_arch = "x86_64")]
        match &self.packed {
            ForIsa::Avx2(packed) if has_avx2(isa) => {
                // SAFETY: the CPU has the features that the function is compiled for: asked in the line
                // above.
                unsafe { avx2::depthwise_pairs(conv, input, packed, rows, out) };
                return Ok(());
            }
            ForIsa::Avx512(packed) if has_avx512(isa) => {
                // SAFETY: as above.
                unsafe { avx512::depthwise_pairs(conv, input, packed, rows, out) };
                return Ok(());
            }
            ForIsa::Vnni(filter) if has_vnni(isa) && filter.fits(conv, 0) => {
                // SAFETY: as above.
                unsafe { columns::depthwise(conv, input, (filter, 0), rows, out) };
                return Ok(());
            }
            _ => {}
        }
        let _ = (isa, conv, input, rows, out);
        Err(OpError::Internal { what: "a depthwise filter packed for another CPU" })
    }

    /// Whether [`run_part`](DepthwisePairs::run_part) computes some of the channels by themselves.
    pub(crate) fn has_parts(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return matches!(self.packed, ForIsa::Vnni(_));
        #[cfg(not(target_arch = "x86_64"))]
        return false;
    }

    /// All rows of the convolution by the part of the filter from channel `first` on; `conv`, `input` and `out` have
    /// the channels of that part alone. It begins with a block of 32 channels, and ends with one or with the filter.
    ///
    /// # Errors
    /// [`OpError::Internal`] where the filter has no such part.
    pub(crate) fn run_part(
        &self,
        isa: Isa,
        conv: &Conv,
        input: &[u8],
        first: usize,
        out: &mut [u8],
    ) -> Result<(), OpError> {
        #[cfg(target_arch = "x86_64")]
        if let ForIsa::Vnni(filter) = &self.packed
            && has_vnni(isa)
            && filter.fits(conv, first)
        {
            let rows = 0..conv.output.batches * conv.output.height;
            // SAFETY: the CPU has the features that the function is compiled for: asked above.
            unsafe { columns::depthwise(conv, input, (filter, first), rows, out) };
            return Ok(());
        }
        let _ = (isa, conv, input, first, out);
        Err(OpError::Internal { what: "a part of a depthwise filter" })
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        #[cfg(target_arch = "x86_64")]
        return match &self.packed {
            ForIsa::Avx2(packed) => packed.held_bytes(),
            ForIsa::Avx512(packed) => packed.held_bytes(),
            ForIsa::Vnni(filter) => filter.held_bytes(),
        };
        #[cfg(not(target_arch = "x86_64"))]
        return self.filter.held_bytes();
    }
}
