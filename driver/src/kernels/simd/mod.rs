//! The only module of this crate with `unsafe` code: kernels for instruction sets that the program
//! finds at run time.
//!
//! 1. A function with `#[target_feature]` is called only after this module itself asked the CPU for
//!    those features; what a caller says in an [`Isa`] can only take features away.
//! 2. The functions here are safe to call: slices are checked before a pointer is made of them.
#![allow(unsafe_code, reason = "calls of functions for instruction sets that are checked first")]

use std::ops::Range;

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::arg_bytes;
use crate::kernels::conv_geometry::Conv;
use crate::kernels::depthwise::{self, ByteFilter, FloatFilter, PairedFilter};
use crate::kernels::float_panels::{self, Product};
use crate::kernels::gemm_pairs::PairMatrix;
use crate::kernels::gemm_quads::QuadPanels;
use crate::kernels::lstm_packed::{self, PackedLstm};
use crate::kernels::requantize::{Channels, Requantize};
use crate::kernels::resize::Resize;
use crate::kernels::resize_lines;
use crate::kernels::sum;

/// Whether code for AVX-512 F, BW, DQ and VL may run: allowed by the caller, and there.
#[cfg(target_arch = "x86_64")]
fn has_avx512(isa: Isa) -> bool {
    use std::arch::is_x86_feature_detected as has;
    isa.avx512 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl")
}

/// Whether code for AVX2 may run: allowed by the caller, and there.
#[cfg(target_arch = "x86_64")]
fn has_avx2(isa: Isa) -> bool {
    isa.avx2 && std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

/// Defines a function that runs one portable body compiled for the best instruction set there is.
///
/// With `avx512 = path` there is a kernel of its own for AVX-512, with `avx2 = path` one for AVX2.
macro_rules! compiled_for_each_isa {
    ($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:path) => {
        compiled_for_each_isa! { $(#[$doc])* $name($($arg: $ty),*) = $body, avx512 = $body }
    };
    ($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:path,
     avx512 = $avx512:path) => {
        compiled_for_each_isa! {
            $(#[$doc])* $name($($arg: $ty),*) = $body, avx512 = $avx512, avx2 = $body
        }
    };
    ($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:path,
     avx512 = $avx512:path, avx2 = $avx2:path) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "those of the kernel, and the instructions")]
        pub(crate) fn $name(isa: Isa, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512_form($($arg: $ty),*) {
                    $avx512($($arg),*);
                }
                #[target_feature(enable = "avx2")]
                fn avx2_form($($arg: $ty),*) {
                    $avx2($($arg),*);
                }
                if has_avx512(isa) {
                    // SAFETY: the CPU has the features that the function is compiled for: asked
                    // in the line above.
                    return unsafe { avx512_form($($arg),*) };
                }
                if has_avx2(isa) {
                    // SAFETY: as above.
                    return unsafe { avx2_form($($arg),*) };
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = isa;
            $body($($arg),*);
        }
    };
}

compiled_for_each_isa! {
    /// Rows of sums into stored values, see [`Requantize::rows`].
    ///
    /// [`Requantize::rows`]: crate::kernels::requantize::Requantize::rows
    requantize_rows(rules: Channels<'_>, sums: &[i32], row_terms: &[i32], out: &mut [u8]) = requantize,
    avx512 = avx512::requantize_rows
}

#[inline(always)]
fn requantize(rules: Channels<'_>, sums: &[i32], row_terms: &[i32], out: &mut [u8]) {
    rules.rows(sums, row_terms, out);
}

compiled_for_each_isa! {
    /// Products of bytes, see [`PairMatrix::multiply`].
    multiply_pairs(matrix: &PairMatrix, rows: &[u8], out: &mut [i32]) = pairs,
    avx512 = avx2::multiply_pairs, avx2 = avx2::multiply_pairs
}

#[inline(always)]
fn pairs(matrix: &PairMatrix, rows: &[u8], out: &mut [i32]) {
    matrix.product(rows, out);
}

compiled_for_each_isa! {
    /// `out[row] = factor * sum(rows[row, ..])`; all rows have one length.
    row_sums(rows: &[u8], factor: i32, out: &mut [i32]) = sum_rows
}

#[inline(always)]
fn sum_rows(rows: &[u8], factor: i32, out: &mut [i32]) {
    let Some(depth) = rows.len().checked_div(out.len()).filter(|depth| *depth > 0) else {
        out.fill(0);
        return;
    };
    for (row, out) in rows.chunks_exact(depth).zip(out) {
        let sum = row.iter().fold(0i32, |sum, value| sum.wrapping_add(i32::from(*value)));
        *out = factor.wrapping_mul(sum);
    }
}

compiled_for_each_isa! {
    /// XORs a mask into every byte.
    flip(bytes: &mut [u8], mask: u8) = flip_bytes
}

#[inline(always)]
fn flip_bytes(bytes: &mut [u8], mask: u8) {
    for byte in bytes {
        *byte ^= mask;
    }
}

compiled_for_each_isa! {
    /// Holds every value between two bounds; NaN stays NaN.
    clamp(values: &mut [f32], low: f32, high: f32) = clamp_values
}

#[inline(always)]
fn clamp_values(values: &mut [f32], low: f32, high: f32) {
    for value in values {
        let x = *value;
        let x = if x < low { low } else { x };
        *value = if x > high { high } else { x };
    }
}

compiled_for_each_isa! {
    /// Rows of a quantized depthwise convolution, see [`depthwise::bytes`].
    depthwise_bytes(
        conv: &Conv,
        input: &[u8],
        filter: ByteFilter<'_>,
        rules: Channels<'_>,
        rows: Range<usize>,
        sums: &mut [i32],
        out: &mut [u8],
    ) = depthwise::bytes
}

compiled_for_each_isa! {
    /// Rows of a depthwise convolution of floats, see [`depthwise::floats`].
    depthwise_floats(
        conv: &Conv,
        input: &[f32],
        filter: FloatFilter<'_>,
        rows: Range<usize>,
        out: &mut [f32],
    ) = depthwise::floats, avx512 = avx512::depthwise_lines::depthwise_floats
}

/// A quantized depthwise filter for kernels that take two taps at a time.
#[derive(Debug, Clone)]
pub(crate) struct DepthwisePairs {
    filter: PairedFilter,
    #[cfg(target_arch = "x86_64")]
    rules: avx512::depthwise::PairedRules,
}

impl DepthwisePairs {
    /// Packs a filter, see [`PairedFilter::new`]; `None` where this CPU has no kernel for it.
    pub(crate) fn new(
        isa: Isa,
        weights: &[i16],
        rules: &Requantize,
        zero: i32,
        is_signed: bool,
    ) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if has_avx512(isa) {
            let filter = PairedFilter::new(weights, rules, zero, is_signed)?;
            // SAFETY: the CPU has the features that the function is compiled for: asked two lines
            // above.
            let rules = unsafe { avx512::depthwise::PairedRules::new(&filter) };
            return Some(DepthwisePairs { filter, rules });
        }
        let _ = (isa, weights, rules, zero, is_signed);
        None
    }

    /// How many channels there are.
    pub(crate) fn channels(&self) -> usize {
        self.filter.channels()
    }

    /// How many weights there are.
    pub(crate) fn weights(&self) -> usize {
        self.filter.taps() * self.filter.channels()
    }

    /// Rows of a quantized depthwise convolution, as [`depthwise_bytes`].
    pub(crate) fn run(
        &self,
        isa: Isa,
        conv: &Conv,
        input: &[u8],
        rows: Range<usize>,
        out: &mut [u8],
    ) -> Result<(), OpError> {
        #[cfg(target_arch = "x86_64")]
        if has_avx512(isa) {
            let DepthwisePairs { filter, rules } = self;
            // SAFETY: the CPU has the features that the function is compiled for: asked two lines
            // above.
            unsafe { avx512::depthwise::depthwise_pairs(conv, input, filter, rules, rows, out) };
            return Ok(());
        }
        let _ = (isa, conv, input, rows, out);
        Err(OpError::Internal { what: "a depthwise filter packed for another CPU" })
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        let rules = 0;
        #[cfg(target_arch = "x86_64")]
        let rules = rules + self.rules.held_bytes();
        self.filter.held_bytes() + rules
    }
}

/// Whether [`multiply_quads`] runs with these instructions.
pub(crate) fn has_quads(isa: Isa) -> bool {
    #[cfg(target_arch = "x86_64")]
    return isa.vnni && has_avx512(isa) && std::arch::is_x86_feature_detected!("avx512vnni");
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = isa;
        false
    }
}

/// Rows of activations times packed weights, and from the sums to stored values as
/// [`requantize_rows`] does; all exact.
pub(crate) fn multiply_quads(
    isa: Isa,
    matrix: QuadPanels<'_>,
    rows: &[u8],
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) -> Result<(), OpError> {
    let count = rows.len() / matrix.depth().max(1);
    let fits = rows.len() == count * matrix.depth()
        && out.len() == count * matrix.units()
        && rules.bias.len() == matrix.units();
    if !fits {
        return Err(OpError::Internal { what: "sizes of a matrix product" });
    }
    #[cfg(target_arch = "x86_64")]
    if has_quads(isa) {
        // SAFETY: the CPU has the features that the function is compiled for: asked in the line
        // above.
        unsafe { avx512::quads::multiply_quads(matrix, rows, rules, row_terms, out) };
        return Ok(());
    }
    let _ = (isa, row_terms);
    Err(OpError::Internal { what: "weights packed for another CPU" })
}

compiled_for_each_isa! {
    /// Quantized sums, see [`sum::Sum::unsigned`].
    sum_unsigned(rule: &sum::Sum, a: &[u8], b: &[u8], out: &mut [u8]) = sum::sum::<u8>
}

compiled_for_each_isa! {
    /// Quantized sums, see [`sum::Sum::signed`].
    sum_signed(rule: &sum::Sum, a: &[i8], b: &[i8], out: &mut [i8]) = sum::sum::<i8>
}

compiled_for_each_isa! {
    /// A product of floats, see [`Product::run`], which checks the sizes.
    multiply_panels(product: &Product<'_>, out: &mut [f32]) = float_panels::multiply,
    avx512 = avx512::panels::multiply_panels
}

compiled_for_each_isa! {
    /// The gates of a step, see [`lstm_packed::gates`].
    lstm_gates(layer: &PackedLstm, sums: &mut [f32], cell: &mut [f32]) = lstm_packed::gates
}

compiled_for_each_isa! {
    /// Lines of resized pictures of bytes, see [`resize_lines::lines`].
    resize_bytes(
        resize: &Resize,
        input: &[u8],
        first: usize,
        work: &mut resize_lines::Work<'_>,
        out: &mut [u8],
    ) = resize_lines::lines::<u8>, avx512 = avx512::resize::bytes
}

compiled_for_each_isa! {
    /// Lines of resized pictures of floats, see [`resize_lines::lines`].
    resize_floats(
        resize: &Resize,
        input: &[f32],
        first: usize,
        work: &mut resize_lines::Work<'_>,
        out: &mut [f32],
    ) = resize_lines::lines::<f32>, avx512 = avx512::resize::floats
}

compiled_for_each_isa! {
    /// Positions of the largest bytes, see [`arg_bytes::positions`].
    arg_bytes(rows: &[u8], len: usize, flip: u8, out: &mut [i32]) = arg_bytes::positions,
    avx512 = avx512::arg::positions
}

/// Whether [`multiply_panels`] has a kernel of its own with these instructions.
pub(crate) fn has_panels(isa: Isa) -> bool {
    #[cfg(target_arch = "x86_64")]
    return has_avx512(isa);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = isa;
        false
    }
}
