//! The plain loops of [`conv`](crate::kernels::conv) for whatever type the
//! operands have.

use burst_hal::{FusedActivation, OperandType};
use half::f16;

use crate::OpError;
use crate::kernels::conv::Conv;
use crate::kernels::conv::{Operands, Rule, convolve, convolve_transposed};
use crate::kernels::quant::activation_range_f32;
use crate::op::Run;
use crate::ops::conv::quantized::{SPACE_PER_CHANNEL, Scales, Task};
use crate::scratch::Scratch;
use crate::stop::STEPS_PER_CHECK;
use crate::threads::{Tiling, speed};

/// Outputs of a tile are a multiple of this: whole cache lines, so that no two threads write to one.
const STEP: usize = 64;

/// How the outputs are cut: so that the deadline is looked at between tiles.
fn tiling(conv: &Conv) -> Tiling {
    /// Products that a core takes in a nanosecond, type by type.
    const PRODUCTS: usize = 1;
    let depth = conv.depth().max(1);
    Tiling {
        row_len: 1,
        step: STEP,
        share_step: None,
        least: STEP,
        most: (STEPS_PER_CHECK / depth).max(1),
        nanos: speed::nanos(&[conv.output.values(), depth], PRODUCTS),
    }
}

/// Runs a convolution of inputs 0 (images), 1 (filter) and 2 (bias) into output 0.
pub(super) fn execute(
    run: &mut Run<'_, '_>,
    conv: &Conv,
    activation: FusedActivation,
    task: Task,
) -> Result<(), OpError> {
    let (input, filter, bias) = (run.input(0)?, run.input(1)?, run.input(2)?);
    let Run { scratch, stop, parallelism, .. } = run;
    let (stop, parallelism, tiling) = (*stop, *parallelism, tiling(conv));
    let out = run.outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
    let out_info = out.info;
    let (low, high) = activation_range_f32(activation);

    // One branch per combination of input, filter and output type.
    macro_rules! loops {
        ($input:expr, $filter:expr, $bias:expr, $out:expr, $zero:expr, $step:expr, $finish:expr) => {{
            let (input, filter, out) = ($input, $filter, $out);
            if !conv.fits(input.len(), filter.len(), $bias.len(), out.len()) {
                return Err(OpError::Internal { what: "operand sizes of a convolution" });
            }
            let operands = Operands { conv, input, filter, stop };
            let rule = Rule { zero: $zero, step: $step, finish: $finish };
            // The loops need no working memory: that of this thread may hold the rules.
            let none = &mut Scratch::default();
            parallelism.tiles(&tiling, out, none, stop, |first, out, _| {
                if task == Task::TransposedConvolution {
                    convolve_transposed(operands, &rule, first, out)
                } else {
                    convolve(operands, &rule, first, out)
                }
            })
        }};
    }
    macro_rules! quantized_loops {
        ($input:expr, $filter:expr, $out:expr, $stored:ty) => {{
            let scales = Scales::of(task, [input.info, filter.info, bias.info], out_info);
            let bias = bias.i32()?;
            let space = scratch.i32(SPACE_PER_CHANNEL * bias.len())?;
            let rules = scales.channels(activation, bias, space)?;
            let (input_zero, filter_zero) = (input.info.zero_point, filter.info.zero_point);
            loops!(
                $input,
                $filter,
                bias,
                $out,
                0i32,
                |sum: i32, value, weight| {
                    let product =
                        (i32::from(value) - input_zero) * (i32::from(weight) - filter_zero);
                    sum.wrapping_add(product)
                },
                |sum: i32, channel: usize| {
                    // A byte of either sign, as the bits say.
                    let stored = rules.stored(channel, sum.wrapping_add(rules.bias[channel]));
                    <$stored>::from_ne_bytes([stored])
                }
            )
        }};
    }

    match (input.info.ty, filter.info.ty) {
        (OperandType::TensorFloat32, _) => {
            let bias = bias.f32()?;
            loops!(
                input.f32()?,
                filter.f32()?,
                bias,
                out.f32_mut()?,
                0f32,
                |sum: f32, value: f32, weight: f32| sum + value * weight,
                |sum: f32, channel: usize| clamp(sum + bias[channel], low, high)
            )
        }
        (OperandType::TensorFloat16, _) => {
            let bias = bias.f16()?;
            loops!(
                input.f16()?,
                filter.f16()?,
                bias,
                out.f16_mut()?,
                0f32,
                |sum: f32, value: f16, weight: f16| sum + value.to_f32() * weight.to_f32(),
                |sum: f32, channel: usize| f16::from_f32(clamp(
                    sum + bias[channel].to_f32(),
                    low,
                    high
                ))
            )
        }
        (OperandType::TensorQuant8Asymm, OperandType::TensorQuant8Asymm) => {
            quantized_loops!(input.u8()?, filter.u8()?, out.u8_mut()?, u8)
        }
        (OperandType::TensorQuant8Asymm, _) => {
            quantized_loops!(input.u8()?, filter.i8()?, out.u8_mut()?, u8)
        }
        (OperandType::TensorQuant8AsymmSigned, _) => {
            quantized_loops!(input.i8()?, filter.i8()?, out.i8_mut()?, i8)
        }
        (got, _) => Err(OpError::Type { want: "a type of convolution", got }),
    }
}

/// `x` held between two bounds; NaN stays NaN.
#[inline(always)]
pub(super) fn clamp(x: f32, low: f32, high: f32) -> f32 {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
