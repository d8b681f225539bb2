//! CONV_2D and FULLY_CONNECTED as products of matrices, with weights packed at prepare time.
//!
//! Rows are pixels: the input as it lies in memory where the filter is one tap that does not skip
//! pixels, rows gathered into scratch memory otherwise. Work goes by tiles of rows that stay in the
//! cache until they are finished.
//!
//! Quantized operands are brought to unsigned activations `a` and signed weights `w` by flipping
//! the top bit where they are not, which moves values and zero points alike by 128. With zero
//! points `p` and `q`:
//!
//! `sum((a - p) * (w - q)) = sum(a * w) - p * sum(w) + n * p * q - q * sum(a)`
//!
//! The first term is the product, the next two join the bias, the last is a number per row; where
//! weights are packed with 16 bits, `w - q` is, and there is no last term. All of it wraps around at 32 bits as the reference does, so that the results are the same bit by bit.

use std::ops::Range;

use burst_hal::{Dimensions, FusedActivation, OperandType};
use smallvec::SmallVec;

use crate::OpError;
use crate::kept::{KeptValue, What};
use crate::kernels::Isa;
use crate::kernels::conv::{Conv, Source, fill_rows};
use crate::kernels::matmul_quantized::{self, ByteMatrix, ByteRows, MAX_EXACT_DEPTH, RowsInPlace};
use crate::kernels::quant::activation_range_f32;
use crate::kernels::requantize::Requantize;
use crate::op::{Behind, ByChannels, Kernel, PrepareContext, Prepared, Run};
use crate::ops::attributes::Layout;
use crate::ops::conv::channel_blocks::{ChannelBlocks, Piece, are_few_rows};
use crate::ops::conv::float_product::FloatProduct;
use crate::ops::conv::quantized::{Scales, is_quantized};
use crate::ops::conv::row_tiles::{
    PACKED_INPUTS, Rows, SHARE_ROWS, SHARED_STEP, one_row_tiling, sizes_differ, tile_rows,
};
use crate::scratch::Scratch;
use crate::tensor::{Args, TensorRef};
use crate::threads::{Parallelism, TileRunner, Tiling, speed};

/// A kernel for these operands, when filter and bias are constants.
pub(super) fn prepare(
    args: &Args<'_>,
    rows: Rows,
    activation: FusedActivation,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    if matches!(rows, Rows::Images(attributes) if attributes.layout == Layout::Nchw) {
        return Ok(None);
    }
    let (filter, bias) = (args.tensor(1)?, args.tensor(2)?);
    let units = filter.dims.first().map_or(0, |units| *units as usize);
    let depth = filter.dims.iter().skip(1).map(|size| *size as usize).product();
    if bias.dims.iter().map(|size| *size as usize).product::<usize>() != units {
        // The input's shape is not known yet, or this would be refused by now: each execution will be.
        return Ok(None);
    }
    let ty = args.input(0)?.info.ty;
    let kernel: Box<dyn Kernel> = if ty == OperandType::TensorFloat32 {
        let range = activation_range_f32(activation);
        let product = FloatProduct::new(rows, filter, bias, (units, depth), range, context)?;
        let Some(product) = product else { return Ok(None) };
        Box::new(product)
    } else if is_quantized(ty) && depth <= MAX_EXACT_DEPTH {
        let scales = Scales::of_args(rows.task(), args)?;
        let sizes = (units, depth);
        let product = ByteProduct::new(rows, &scales, filter, bias, sizes, activation, context)?;
        let conv = args.input(0)?.dims.map(|dims| rows.geometry(dims, filter.dims));
        let has_few_rows = conv.transpose()?.is_some_and(|conv| are_few_rows(&conv));
        Box::new(ByteProduct { has_few_rows, ..product })
    } else {
        return Ok(None);
    };
    Ok(Some(Prepared { kernel, packed_inputs: SmallVec::from_slice(&PACKED_INPUTS) }))
}

/// Rows of activations, a term for each row, and numbers to compute with.
type RowsTermsSums<'s> = (&'s [u8], &'s [i32], &'s mut [i32]);

#[derive(Debug)]
struct ByteProduct {
    rows: Rows,
    weights: ByteMatrix,
    /// Rules of requantization; the biases have the constant terms of zero points in them.
    rules: Requantize,
    /// What is XORed into each activation: the top bit where they are signed.
    flip: u8,
    /// Whether activations are flipped in a copy, where that is the shorter way, and not while they are multiplied.
    is_flipped_before: bool,
    /// The activation that stands for real 0, before it is flipped.
    zero: u8,
    /// Zero point of the weights after they were flipped; 0 where they are multiplied without it.
    weight_zero: i32,
    depth: usize,
    /// Whether in all executions rows are few, so that threads share channels.
    has_few_rows: bool,
    /// A kernel that reads the product, channel by channel, and whose output this is instead.
    behind: Option<Behind>,
    isa: Isa,
}

/// What it takes to find a row of pixels, in bytes that could be copied meanwhile: most of a row of few values.
const ROW_BYTES: usize = 100;

/// The bit that takes unsigned values to signed ones and back.
const TOP_BIT: u8 = 0x80;

impl ByteProduct {
    fn new(
        rows: Rows,
        scales: &Scales<'_>,
        filter: TensorRef<'_>,
        bias: TensorRef<'_>,
        (units, depth): (usize, usize),
        activation: FusedActivation,
        context: &PrepareContext<'_>,
    ) -> Result<Self, OpError> {
        let PrepareContext { isa, .. } = *context;
        let is_flipped = filter.info.ty == OperandType::TensorQuant8Asymm;
        let weight_zero = filter.info.zero_point - if is_flipped { 128 } else { 0 };
        let input_zero = scales.input.zero_point;
        let is_signed = scales.input.ty == OperandType::TensorQuant8AsymmSigned;
        let flipped_zero = if is_signed { input_zero + 128 } else { input_zero };
        let out_of_range = OpError::Range { what: "zero point of the input" };
        let zero = u8::try_from(flipped_zero).map_err(|_| out_of_range)?;
        let flip = if is_signed { TOP_BIT } else { 0 };

        let zeros = Zeros { input: flipped_zero, weights: weight_zero };
        let PackedWeights { weights, bias } =
            PackedWeights::kept_or_new(filter, bias, (units, depth), zeros, context)?;
        let (is_less_zero, is_flipped_before) =
            (weights.is_less_zero(), flip != 0 && weights.is_flipped_before(isa));
        let zero_point = scales.output.zero_point;
        let range = scales.range(activation);
        let rules = Requantize::new(bias, |unit| scales.multiplier(unit), zero_point, range)?;
        Ok(ByteProduct {
            rows,
            weights,
            rules: Requantize { rounding: scales.rounding, ..rules },
            flip,
            is_flipped_before,
            zero: zero ^ flip,
            weight_zero: if is_less_zero { 0 } else { weight_zero },
            depth,
            has_few_rows: false,
            behind: None,
            isa,
        })
    }
}

/// Zero points of unsigned activations and signed weights.
#[derive(Clone, Copy)]
struct Zeros {
    input: i32,
    weights: i32,
}

/// The weights as the kernel reads them, and the biases with the constant terms of zero points in them.
struct PackedWeights {
    weights: ByteMatrix,
    bias: Vec<i32>,
}

impl PackedWeights {
    /// What an earlier preparation has kept; else made of the operands, and kept where that is wanted.
    fn kept_or_new(
        filter: TensorRef<'_>,
        bias: TensorRef<'_>,
        sizes: (usize, usize),
        zeros: Zeros,
        context: &PrepareContext<'_>,
    ) -> Result<Self, OpError> {
        let kept = context.budget.kept();
        if let Some(values) = kept.take(What::Packed) {
            return Self::restored(&values, sizes, zeros, context);
        }
        let packed = Self::new(filter, bias, sizes, zeros, context)?;
        if kept.is_recording()
            && let Some(weights) = packed.weights.packed_bytes(context.budget)?
        {
            let bias = context.budget.copy_of(bytemuck::cast_slice(&packed.bias))?;
            let values = [weights, bias].map(|bytes| Ok((Dimensions::new(), bytes)));
            kept.record(What::Packed, &PACKED_INPUTS, values.into_iter())?;
        }
        Ok(packed)
    }

    fn restored(
        values: &[KeptValue],
        (units, depth): (usize, usize),
        zeros: Zeros,
        context: &PrepareContext<'_>,
    ) -> Result<Self, OpError> {
        let PrepareContext { isa, budget, .. } = *context;
        let other = || OpError::Internal { what: "what was kept of a matrix" };
        let [weights, bias] = values else { return Err(other()) };
        let bias: &[i32] = bytemuck::try_cast_slice(bias.bytes()).map_err(|_| other())?;
        if bias.len() != units {
            return Err(other());
        }
        budget.charge(Requantize::bytes(units))?;
        let weights = ByteMatrix::restored(isa, weights, (units, depth), zeros.weights, budget)?;
        Ok(PackedWeights { weights, bias: bias.to_vec() })
    }

    fn new(
        filter: TensorRef<'_>,
        bias: TensorRef<'_>,
        (units, depth): (usize, usize),
        zeros: Zeros,
        context: &PrepareContext<'_>,
    ) -> Result<Self, OpError> {
        let PrepareContext { isa, budget, .. } = *context;
        let is_signed = filter.info.ty != OperandType::TensorQuant8Asymm;
        let flip = if is_signed { 0 } else { TOP_BIT };
        let filter = filter.bytes.ok_or(OpError::Omitted { index: 1 })?;
        let out_of_range = OpError::Range { what: "zero point of the input" };
        let count = i32::try_from(depth).map_err(|_| out_of_range)?;
        let both_zeros = count.wrapping_mul(zeros.input).wrapping_mul(zeros.weights);
        let biases = bias.i32()?;
        budget.charge(Requantize::bytes(biases.len()))?;
        let mut bias = biases.to_vec();
        let with_constants = |unit: usize, weights: &[u8]| {
            let mut sum = 0;
            matmul_quantized::signed_sums(isa, weights, flip, std::slice::from_mut(&mut sum));
            if let Some(bias) = bias.get_mut(unit) {
                let constants = both_zeros.wrapping_sub(zeros.input.wrapping_mul(sum));
                *bias = bias.wrapping_add(constants);
            }
        };
        let (weights, sizes) = ((filter, flip), (units, depth));
        let weights = ByteMatrix::new(isa, weights, sizes, zeros.weights, with_constants, budget)?;
        Ok(PackedWeights { weights, bias })
    }
}

impl Kernel for ByteProduct {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?;
        let conv = self.rows.geometry(input.dims, run.input(1)?.dims)?;
        let input = input.bytes.ok_or(OpError::Omitted { index: 0 })?;
        let (out, mut runner) = run.output_and_runner()?;
        let (out, units) = (out.bytes_mut(), conv.filter.outputs);
        let behind = self.behind();
        let (pixels, out_pixels) = behind
            .map_or_else(|| (conv.output.pixels(), conv.output.pixels()), |behind| behind.pixels());
        let (len, out_len) = (pixels * units, out_pixels * units);
        if !conv.fits(input.len(), conv.filter.values(), self.rules.bias.len(), len)
            || out.len() != out_len
        {
            return Err(sizes_differ());
        }
        match (self.blocks_of_channels(&conv, runner.parallelism), behind) {
            (Some(blocks), None) => blocks.run(out, &mut runner, |channels, piece, scratch| {
                self.block(&conv, input, channels, piece.out, scratch)
            }),
            (Some(blocks), Some(behind)) => {
                let blocks = blocks.for_rows_behind(out_pixels);
                blocks.run(out, &mut runner, |channels, Piece { out, room }, scratch| {
                    self.block(&conv, input, channels.clone(), room, scratch)?;
                    behind.run_channels(channels, room, out)
                })
            }
            (None, None) => self.all_channels(&conv, input, out, &mut runner),
            (None, Some(behind)) => {
                let mut between = runner.scratch.take_parts(len)?;
                let product = &mut between[..len];
                let done = self
                    .all_channels(&conv, input, product, &mut runner)
                    .and_then(|()| behind.run_channels(0..units, product, out));
                runner.scratch.return_parts(between);
                done
            }
        }
    }

    fn held_bytes(&self) -> usize {
        let behind = self
            .behind
            .as_ref()
            .map_or(0, |behind| behind.kernel.held_bytes() + size_of_val(&*behind.kernel));
        self.weights.held_bytes() + self.rules.held_bytes() + behind
    }

    fn name(&self) -> &'static str {
        match (self.weights.name(), &self.behind) {
            (name, None) => name,
            ("matrix 8 bit, vnni", Some(_)) => "matrix 8 bit, vnni, depthwise",
            (_, Some(_)) => "matrix 8 bit, depthwise",
        }
    }

    fn take_behind(&mut self, behind: Behind) -> Result<(), Behind> {
        if !self.has_few_rows || self.behind.is_some() || behind.kernel.by_channels().is_none() {
            return Err(behind);
        }
        self.behind = Some(behind);
        Ok(())
    }

    fn products(&self) -> Option<u64> {
        let behind = self.behind()?;
        let own = behind.pixels().0 * self.rules.bias.len() * self.depth;
        Some((own + behind.products()) as u64)
    }
}

impl ByteProduct {
    fn behind(&self) -> Option<&dyn ByChannels> {
        self.behind.as_ref()?.kernel.by_channels()
    }

    /// How the outputs are cut by channels rather than by rows, where that is better.
    fn blocks_of_channels(
        &self,
        conv: &Conv,
        parallelism: Parallelism<'_>,
    ) -> Option<ChannelBlocks> {
        self.weights.channel_step()?;
        ChannelBlocks::new(conv, parallelism, self.tiling(conv).nanos)
    }

    /// A block of channels: all rows, and only its own part of the weights.
    fn block(
        &self,
        conv: &Conv,
        input: &[u8],
        channels: Range<usize>,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), OpError> {
        let count = conv.output.pixels();
        let of = (&self.rules, channels);
        if let Some(step) = self.weights.piece_step().filter(|_| self.weight_zero == 0) {
            let (rows, flip, space) = self.in_place(conv, input, step, (0, count), scratch)?;
            let rows = RowsInPlace { rows: &rows, flip, terms: &[] };
            return self.weights.multiply_in_place(self.isa, rows, of, space, out);
        }
        let space_len = self.weights.sums_len(0);
        let (rows, terms, space) = self.rows(conv, input, 0, count, space_len, scratch)?;
        let rows = &ByteRows::Matrix { values: rows, depth: conv.depth() };
        let rows = RowsInPlace { rows, flip: 0, terms };
        self.weights.multiply_in_place(self.isa, rows, of, space, out)
    }

    /// All channels, by tiles of rows, or of a single row's channels.
    fn all_channels(
        &self,
        conv: &Conv,
        input: &[u8],
        out: &mut [u8],
        runner: &mut TileRunner<'_>,
    ) -> Result<(), OpError> {
        if let (1, Some(step)) = (conv.output.pixels(), self.weights.channel_step()) {
            let tiling = one_row_tiling(conv, step, 1);
            let space = self.weights.sums_len(0);
            return runner.tiles(&tiling, out, |first, out, scratch| {
                let (row, terms, space) = self.rows(conv, input, 0, 1, space, scratch)?;
                let rows = &ByteRows::Matrix { values: row, depth: conv.depth() };
                let (row, channels) =
                    (RowsInPlace { rows, flip: 0, terms }, first..first + out.len());
                self.weights.multiply_in_place(self.isa, row, (&self.rules, channels), space, out)
            });
        }
        let units = conv.filter.outputs;
        if let Some(step) = self.weights.piece_step().filter(|_| self.weight_zero == 0) {
            return runner.tiles(&self.tiling(conv), out, |first, out, scratch| {
                let range = (first, out.len() / units);
                let (rows, flip, space) = self.in_place(conv, input, step, range, scratch)?;
                let rows = RowsInPlace { rows: &rows, flip, terms: &[] };
                let all = (&self.rules, 0..units);
                self.weights.multiply_in_place(self.isa, rows, all, space, out)
            });
        }
        runner.tiles(&self.tiling(conv), out, |first, out, scratch| {
            let sums_len = self.weights.sums_len(out.len());
            let (rows, terms, sums) =
                self.rows(conv, input, first, out.len() / units, sums_len, scratch)?;
            self.weights.multiply(self.isa, rows, &self.rules, terms, sums, out)
        })
    }

    fn tiling(&self, conv: &Conv) -> Tiling {
        let (depth, units) = (conv.depth(), conv.filter.outputs);
        let rows = conv.output.pixels();
        let moved = if conv.is_pointwise() { 0 } else { rows };
        let row_sums = self.weights.sums_len(units) - self.weights.sums_len(0);
        let pace = speed::of_bytes(self.isa.avx512);
        let computing = speed::nanos(&[rows, depth, units], pace.products);
        let storing = speed::nanos(&[rows, units], pace.values);
        Tiling {
            row_len: units,
            step: SHARED_STEP,
            share_step: Some(SHARE_ROWS),
            least: SHARED_STEP,
            most: tile_rows(depth + row_sums * size_of::<i32>() + units),
            nanos: computing
                .saturating_add(storing)
                .saturating_add(speed::nanos(&[moved, depth + ROW_BYTES], speed::BYTES)),
        }
    }

    /// `count` rows of activations from row `first` on where they lie, what each byte has yet to be XORed with, and
    /// numbers to compute with.
    fn in_place<'s>(
        &self,
        conv: &'s Conv,
        input: &'s [u8],
        step: usize,
        (first, count): (usize, usize),
        scratch: &'s mut Scratch,
    ) -> Result<(ByteRows<'s>, u8, &'s mut [i32]), OpError> {
        let space_len = self.weights.sums_len(0);
        let edges = ByteRows::gathered_len(conv, step, (first, count));
        let reach = conv.reach(first, count);
        let is_copied = self.is_flipped_before && reach.len() <= count * conv.depth();
        let copied = if is_copied { reach.len() } else { 0 };
        let (bytes, space) = scratch.u8_and_i32(copied + edges, space_len)?;
        let (copy, edges) = bytes.split_at_mut(copied);
        let (mut source, mut flip) = (Source::whole(input, self.zero), self.flip);
        if is_copied {
            let values = input.get(reach.clone()).ok_or_else(sizes_differ)?;
            matmul_quantized::copy_flipped(self.isa, values, flip, copy);
            source = Source { values: copy, base: reach.start, zero: self.zero ^ flip };
            flip = 0;
        }
        let rows = ByteRows::of_conv(conv, source, step, (first, count), |_| Ok(edges))?;
        Ok((rows, flip, space))
    }

    /// `count` rows of unsigned activations from row `first` on, a term for each if there are any,
    /// and `sums_len` numbers to compute with.
    fn rows<'s>(
        &self,
        conv: &Conv,
        input: &'s [u8],
        first: usize,
        count: usize,
        sums_len: usize,
        scratch: &'s mut Scratch,
    ) -> Result<RowsTermsSums<'s>, OpError> {
        let depth = conv.depth();
        let in_place = conv.is_pointwise() && self.flip == 0;
        let gathered_len = if in_place { 0 } else { count * depth };
        let terms_len = if self.weight_zero == 0 { 0 } else { count };
        let (gathered, sums) = scratch.u8_and_i32(gathered_len, sums_len + terms_len)?;
        let (sums, terms) = sums.split_at_mut(sums_len);
        let rows = if in_place {
            &input[first * depth..][..count * depth]
        } else {
            self.gather(conv, input, first, gathered);
            gathered
        };
        if terms_len > 0 {
            matmul_quantized::row_sums(self.isa, rows, -self.weight_zero, terms);
        }
        Ok((rows, terms, sums))
    }

    /// Rows of unsigned activations.
    fn gather(&self, conv: &Conv, input: &[u8], first: usize, rows: &mut [u8]) {
        if conv.is_pointwise() {
            rows.copy_from_slice(&input[first * conv.depth()..][..rows.len()]);
        } else {
            fill_rows(conv, Source::whole(input, self.zero), first, rows);
        }
        if self.flip != 0 {
            matmul_quantized::flip(self.isa, rows, self.flip);
        }
    }
}

#[cfg(test)]
#[path = "matrix_tests.rs"]
mod tests;
