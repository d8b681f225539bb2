//! DEPTHWISE_CONV_2D channel by channel, with weights prepared for
//! [`depthwise_float`], [`depthwise_quantized`].

use std::ops::Range;

use burst_hal::{MemoryCharge, OperandType};
use smallvec::SmallVec;

use crate::OpError;
use crate::aligned::AlignedBytes;
use crate::kernels::Isa;
use crate::kernels::conv::Conv;
use crate::kernels::depthwise_float::{self, FloatFilter};
use crate::kernels::depthwise_quantized::{self, ByteFilter, DepthwiseInput, DepthwisePairs};
use crate::kernels::quant::activation_range_f32;
use crate::kernels::requantize::Requantize;
use crate::op::{Budget, ByChannels, Kernel, PrepareContext, Prepared, Run};
use crate::ops::attributes::{ConvAttributes, Layout};
use crate::ops::conv::geometry;
use crate::ops::conv::quantized::{Scales, Task, is_quantized};
use crate::stop::STEPS_PER_CHECK;
use crate::tensor::{Args, TensorRef};
use crate::threads::{Tiling, speed};

/// Products between two looks at the deadline: well under a millisecond.
const PRODUCTS_PER_LOOK: usize = 1 << 20;

/// A kernel for these operands, when filter and bias are constants and each channel has one output.
pub(super) fn prepare(
    args: &Args<'_>,
    attributes: &ConvAttributes,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    if attributes.layout == Layout::Nchw || attributes.number != 1 {
        return Ok(None);
    }
    let (filter, bias) = (args.tensor(1)?, args.tensor(2)?);
    let ty = args.input(0)?.info.ty;
    let PrepareContext { isa, budget, .. } = *context;
    let attributes = *attributes;
    let kernel: Box<dyn Kernel> = if ty == OperandType::TensorFloat32 {
        let (weights, bias) = (aligned(filter.f32()?, budget)?, aligned(bias.f32()?, budget)?);
        Box::new(FloatChannels { attributes, weights, bias, isa })
    } else if is_quantized(ty) {
        let scales = Scales::of_args(Task::Convolution, args)?;
        let input_dims = args.input(0)?.dims;
        Box::new(ByteChannels::new(attributes, input_dims, &scales, (filter, bias), context)?)
    } else {
        return Ok(None);
    };
    Ok(Some(Prepared { kernel, packed_inputs: SmallVec::from_slice(&[1, 2]) }))
}

/// A copy that begins on a line of the cache, so that no load of a register takes two of them. It is charged with the
/// kernel.
fn aligned(values: &[f32], budget: &Budget<'_>) -> Result<AlignedBytes, OpError> {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    budget.charge(AlignedBytes::bytes_held_for(bytes.len()))?;
    AlignedBytes::copied(bytes.len(), MemoryCharge::default(), budget.stop(), |at, part| {
        part.copy_from_slice(&bytes[at..][..part.len()]);
        Ok(())
    })
}

/// Rows of output pixels, cut so that the deadline is looked at between them; a core does so many of the products in a
/// nanosecond.
fn tiling(conv: &Conv, pace: usize) -> Tiling {
    let row_len = conv.output.width * conv.output.channels;
    let products = row_len.saturating_mul(conv.depth());
    let rows = conv.output.batches * conv.output.height;
    Tiling {
        row_len,
        step: 1,
        share_step: Some(1),
        least: 1,
        most: (PRODUCTS_PER_LOOK / products.max(1)).max(1),
        nanos: speed::nanos(&[rows, products], pace),
    }
}

fn sizes_differ() -> OpError {
    OpError::Internal { what: "operand sizes of a depthwise convolution" }
}

#[derive(Debug)]
struct FloatChannels {
    attributes: ConvAttributes,
    weights: AlignedBytes,
    bias: AlignedBytes,
    isa: Isa,
}

impl Kernel for FloatChannels {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?;
        let conv = geometry::depthwise(&self.attributes, input.dims, run.input(1)?.dims)?;
        let input = input.f32()?;
        let out = run.outputs.first_mut().ok_or_else(sizes_differ)?.f32_mut()?;
        let [weights, bias] =
            [&self.weights, &self.bias].map(|floats| bytemuck::cast_slice(floats.as_slice()));
        let (low, high) = activation_range_f32(self.attributes.activation);
        let filter = FloatFilter { weights, bias, low, high };
        if !conv.fits(input.len(), filter.weights.len(), filter.bias.len(), out.len()) {
            return Err(sizes_differ());
        }
        let Run { scratch, stop, parallelism, .. } = run;
        let tiling = tiling(&conv, speed::CHANNEL_PRODUCTS);
        parallelism.tiles(&tiling, out, scratch, *stop, |first, out, _| {
            let rows = first..first + out.len() / tiling.row_len;
            depthwise_float::rows(self.isa, &conv, input, filter, rows, out);
            Ok(())
        })
    }

    fn held_bytes(&self) -> usize {
        self.weights.held_bytes() + self.bias.held_bytes()
    }

    fn name(&self) -> &'static str {
        "depthwise f32"
    }
}

#[derive(Debug)]
struct ByteChannels {
    attributes: ConvAttributes,
    form: ByteForm,
    /// Where images of all executions have one shape, and the form computes some channels by themselves.
    by_parts: Option<Box<Conv>>,
    isa: Isa,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each operation")]
enum ByteForm {
    /// For code that every CPU runs.
    Plain {
        /// Weights less their zero point.
        weights: Vec<i16>,
        rules: Requantize,
        flip: u8,
        zero: i32,
    },
    /// For vector units that take two taps at a time.
    Paired(DepthwisePairs),
}

impl ByteChannels {
    fn new(
        attributes: ConvAttributes,
        input_dims: Option<&[u32]>,
        scales: &Scales<'_>,
        (filter, bias): (TensorRef<'_>, TensorRef<'_>),
        context: &PrepareContext<'_>,
    ) -> Result<Self, OpError> {
        let PrepareContext { isa, budget, .. } = *context;
        let bad_zero = OpError::Range { what: "zero point of a depthwise convolution" };
        let filter_zero = i16::try_from(filter.info.zero_point)
            .ok()
            .filter(|zero| (-128..256).contains(zero))
            .ok_or(bad_zero)?;
        let weights = if filter.info.ty == OperandType::TensorQuant8Asymm {
            widened(filter.u8()?, filter_zero, budget)?
        } else {
            widened(filter.i8()?, filter_zero, budget)?
        };
        let is_signed = scales.input.ty == OperandType::TensorQuant8AsymmSigned;
        let zero = scales.input.zero_point;
        let bias = bias.i32()?;
        budget.charge(Requantize::bytes(bias.len()))?;
        let bias = bias.to_vec();
        let (zero_point, range) = (scales.output.zero_point, scales.range(attributes.activation));
        let rules = Requantize::new(bias, |channel| scales.multiplier(channel), zero_point, range)?;
        let is_dense = attributes.strides[1] == 1;
        let is_three_by_three =
            filter.dims.get(1..3) == Some(&[3, 3]) && attributes.dilations[1] == 1;
        let input = DepthwiseInput { zero, is_signed, is_dense, is_three_by_three };
        let paired = DepthwisePairs::new(isa, &weights, &rules, input, budget)?;
        let form = paired.map(ByteForm::Paired).unwrap_or_else(|| {
            let (flip, zero) = if is_signed { (0x80, zero + 128) } else { (0, zero) };
            ByteForm::Plain { weights, rules, flip, zero }
        });
        let has_parts = matches!(&form, ByteForm::Paired(filter) if filter.has_parts());
        let conv = input_dims.filter(|_| has_parts);
        let conv = conv.map(|dims| geometry::depthwise(&attributes, dims, filter.dims));
        let by_parts = conv.transpose()?.map(Box::new);
        Ok(ByteChannels { attributes, form, by_parts, isa })
    }
}

/// Weights less their zero point.
fn widened<W: Copy + Into<i16>>(
    weights: &[W],
    zero: i16,
    budget: &Budget<'_>,
) -> Result<Vec<i16>, OpError> {
    budget.charge(weights.len() * size_of::<i16>())?;
    let mut checkpoints = budget.stop().checkpoints();
    let mut wide = Vec::with_capacity(weights.len());
    for part in weights.chunks(STEPS_PER_CHECK) {
        checkpoints.after(part.len())?;
        wide.extend(part.iter().map(|weight| (*weight).into() - zero));
    }
    Ok(wide)
}

impl Kernel for ByteChannels {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?;
        let conv = geometry::depthwise(&self.attributes, input.dims, run.input(1)?.dims)?;
        let input = input.bytes.ok_or(OpError::Omitted { index: 0 })?;
        let out = run.outputs.first_mut().ok_or_else(sizes_differ)?.bytes_mut();
        let (weights_len, channels) = match &self.form {
            ByteForm::Plain { weights, rules, .. } => (weights.len(), rules.bias.len()),
            ByteForm::Paired(filter) => (filter.weights(), filter.channels()),
        };
        if !conv.fits(input.len(), weights_len, channels, out.len()) {
            return Err(sizes_differ());
        }
        let Run { scratch, stop, parallelism, .. } = run;
        let pace = speed::of_bytes(self.isa.avx512).channel_products;
        let tiling = tiling(&conv, pace);
        parallelism.tiles(&tiling, out, scratch, *stop, |first, out, scratch| {
            let rows = first..first + out.len() / tiling.row_len;
            match &self.form {
                ByteForm::Plain { weights, rules, flip, zero } => {
                    let filter = ByteFilter { weights, flip: *flip, zero: *zero };
                    let rules = rules.channels(0..channels);
                    let sums = scratch.i32(channels)?;
                    depthwise_quantized::rows(
                        self.isa, &conv, input, filter, rules, rows, sums, out,
                    );
                    Ok(())
                }
                ByteForm::Paired(filter) => filter.run(self.isa, &conv, input, rows, out),
            }
        })
    }

    fn held_bytes(&self) -> usize {
        let form = match &self.form {
            ByteForm::Plain { weights, rules, .. } => {
                size_of_val(weights.as_slice()) + rules.held_bytes()
            }
            ByteForm::Paired(filter) => filter.held_bytes(),
        };
        form + self.by_parts.as_deref().map_or(0, size_of_val)
    }

    fn by_channels(&self) -> Option<&dyn ByChannels> {
        self.by_parts.is_some().then_some(self)
    }

    fn name(&self) -> &'static str {
        match &self.form {
            ByteForm::Plain { .. } => "depthwise 8 bit",
            ByteForm::Paired(filter) => filter.name(),
        }
    }
}

impl ByChannels for ByteChannels {
    fn pixels(&self) -> (usize, usize) {
        self.by_parts.as_deref().map_or((0, 0), |conv| (conv.input.pixels(), conv.output.pixels()))
    }

    fn products(&self) -> usize {
        self.by_parts.as_deref().map_or(0, |conv| conv.output.values() * conv.depth())
    }

    fn run_channels(
        &self,
        channels: Range<usize>,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<(), OpError> {
        let (Some(conv), ByteForm::Paired(filter)) = (&self.by_parts, &self.form) else {
            return Err(sizes_differ());
        };
        let conv = conv.with_channels(channels.len());
        if input.len() != conv.input.values() || out.len() != conv.output.values() {
            return Err(sizes_differ());
        }
        filter.run_part(self.isa, &conv, input, channels.start, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::conv::depthwise_conv_2d::DEF;
    use crate::ops::conv::test_support::{
        Case, Numbers, Tensor, assert_close, assert_same_without_constants, kinds,
    };

    fn random(numbers: &mut Numbers, kind: usize) -> Case {
        let channels = 1 + numbers.below(90);
        let [down, across] = [1 + numbers.below(3), 1 + numbers.below(3)];
        let dilations = numbers.of(&[[1, 1], [1, 1], [2, 1], [1, 3]]);
        let spans = [(down - 1) * dilations[0] + 1, (across - 1) * dilations[1] + 1];
        let images = [
            1 + numbers.below(2),
            spans[0] + numbers.below(7),
            spans[1] + numbers.below(7),
            channels,
        ];
        let strides = [1 + numbers.below(2), 1 + numbers.below(3)];
        let mut list = match numbers.below(3) {
            0 => vec![1],
            1 => vec![2],
            _ => [spans[1], spans[1], spans[0], spans[0]].map(|span| numbers.below(span)).to_vec(),
        };
        list.extend([strides[0], strides[1], 1, numbers.below(4)]);
        let mut rest: Vec<Tensor> = list.into_iter().map(Tensor::uint).collect();
        rest.push(Tensor::flag(false));
        rest.extend([dilations[1], dilations[0]].map(Tensor::uint));
        let filter = [1, down, across, channels];
        kinds::case(&DEF, numbers, kind, &images, (&filter, channels, 3), rest)
    }

    #[test]
    fn kernels_equal_the_reference() {
        for kind in 0..kinds::COUNT {
            for seed in 0..80 {
                let case = random(&mut Numbers::new(seed), kind);
                let want = case.reference().unwrap();
                for isa in Isa::each_here() {
                    let got = case.fast(isa).unwrap().expect("a kernel for constant weights");
                    let what = format!("kind {kind}, seed {seed}");
                    assert_close(&case, &got, &want, &what);
                    assert_same_without_constants(&case, isa, &got, &what);
                }
            }
        }
    }

    #[test]
    fn long_work_is_cut_into_parts_that_fit_together() {
        for kind in 0..kinds::COUNT {
            let numbers = &mut Numbers::new(3);
            let rest = [1, 1, 1, 1, 0].map(Tensor::uint).to_vec();
            let images = [2, 40, 40, 70];
            let case = kinds::case(&DEF, numbers, kind, &images, (&[1, 5, 5, 70], 70, 3), rest);
            let got = case.fast(Isa::detect()).unwrap().expect("a kernel for constant weights");
            assert_close(&case, &got, &case.reference().unwrap(), &format!("kind {kind}"));
        }
    }
}
