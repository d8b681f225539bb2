//! Rescaling of quantized values that NNAPI has no operation for: as a depthwise convolution whose
//! weights are all equal. Convolutions may have any output scale, and round exactly as TFLite's
//! kernels do.

use burst_hal::{Dimensions, ExtraParams, OperandType, OperationType};

use super::fixed_point::Factor;
use crate::error::Refusal;
use crate::graph::{OperandIndex, Quant};
use crate::mapper::{Mapper, element_count};
use crate::verdict::Note;

/// NNAPI's code of padding VALID.
const VALID: i32 = 2;
/// More weights than a mean over a large image has: shapes come from the file.
const MAX_WEIGHTS: u64 = 1 << 22;
/// Elements under one mean for which every possible sum is tried. 255 * 127 times it has 25 bits,
/// and the search ends soon.
const MAX_MEAN_ELEMENTS: u32 = 1 << 10;
/// Largest bias: small beside the largest sum.
const MAX_BIAS: f64 = 65_536.0;
/// Largest weight: the largest value of int8.
const MAX_WEIGHT: u8 = 127;

/// The equal weights of a convolution, and what is added to each sum.
struct Weights {
    height: u32,
    width: u32,
    value: u8,
    scale: f32,
    bias: i32,
}

/// Copies values to another scale, with a fused activation; `false` where the shape is not that of
/// an image with known channels.
pub(super) fn elementwise(
    m: &mut Mapper<'_, '_>,
    input: OperandIndex,
    output: OperandIndex,
    activation: i32,
) -> Result<bool, Refusal> {
    let unit = Weights { height: 1, width: 1, value: 1, scale: 1.0, bias: 0 };
    let Some((_, _, channels)) = image(&m.graph.operand(input).dimensions) else {
        return Ok(false);
    };
    convolve(m, input, output, channels, &unit, activation)
}

/// The mean over height and width at another scale; `false` where no convolution gives exactly
/// what TFLite gives.
pub(super) fn mean(
    m: &mut Mapper<'_, '_>,
    input: OperandIndex,
    axes: &[i32],
    output: OperandIndex,
) -> Result<bool, Refusal> {
    let (given, made) = (m.graph.operand(input), m.graph.operand(output));
    let Some((height, width, channels)) = image(&given.dimensions) else { return Ok(false) };
    let mut positive: Vec<i32> =
        axes.iter().map(|&axis| if axis < 0 { axis.saturating_add(4) } else { axis }).collect();
    positive.sort_unstable();
    // Sums are never negative where the smallest value stands for 0, as behind a RELU.
    let from_zero = given.zero_point == given.ty.zero_point_range().0;
    if positive != [1, 2] || !from_zero {
        return Ok(false);
    }
    let Some(weights) = mean_weights(height, width, given.scale, made.scale) else {
        return Ok(false);
    };
    if made.dimensions.len() == 4 {
        return convolve(m, input, output, channels, &weights, 0);
    }
    let (ty, quant) = (made.ty, Quant::of(made));
    let Ok(depth) = i32::try_from(channels) else { return Ok(false) };
    let kept = m.graph.temporary(ty, Dimensions::from_slice(&[0, 1, 1, channels]), quant)?;
    if !convolve(m, input, kept, channels, &weights, 0)? {
        return Ok(false);
    }
    let shape = m.graph.ints(&[-1, depth])?;
    m.emit_keeping_scale(OperationType::Reshape, vec![kept, shape], output)?;
    Ok(true)
}

/// Height, width and channels of an image batch, if all are known.
fn image(dimensions: &[u32]) -> Option<(u32, u32, u32)> {
    match *dimensions {
        [_, height, width, channels] if height > 0 && width > 0 && channels > 0 => {
            Some((height, width, channels))
        }
        _ => None,
    }
}

/// Weights and bias with which a convolution gives TFLite's mean for every possible sum.
///
/// Both round twice, but after different steps, which shifts where they go up to the next value. The
/// bias shifts it back; the larger the weight, the finer.
fn mean_weights(height: u32, width: u32, from: f32, to: f32) -> Option<Weights> {
    let count = height.checked_mul(width).filter(|&count| count <= MAX_MEAN_ELEMENTS)?;
    let tflite = Factor::of(f64::from(from) / f64::from(to))?.over(count.into())?;
    let largest = i64::from(count) * 255;
    (1..=MAX_WEIGHT).rev().find_map(|value| {
        let scale = narrow(1.0 / (f64::from(count) * f64::from(value)));
        let real = f64::from(from * scale) / f64::from(to);
        let ours = Factor::of(real)?;
        let middle = whole((tflite.excess() - ours.excess()) / real)?;
        (middle - 1..=middle + 1).find_map(|bias| {
            let exact = (0..=largest).all(|sum| {
                let ours = ours.times((sum * i64::from(value) + i64::from(bias)).max(0));
                ours == tflite.times(sum)
            });
            exact.then_some(Weights { height, width, value, scale, bias })
        })
    })
}

fn convolve(
    m: &mut Mapper<'_, '_>,
    input: OperandIndex,
    output: OperandIndex,
    channels: u32,
    weights: &Weights,
    activation: i32,
) -> Result<bool, Refusal> {
    let shape = Dimensions::from_slice(&[1, weights.height, weights.width, channels]);
    let count = element_count(&shape);
    let (Ok(bytes), true) = (usize::try_from(count), count <= MAX_WEIGHTS) else {
        return Ok(false);
    };
    let given = m.graph.operand(input);
    let (ty, input_scale) = (given.ty, given.scale);
    let location = m.graph.keep(&vec![weights.value; bytes])?;
    let quant = Quant { scale: weights.scale, zero_point: 0 };
    let filter = m.graph.constant(ty, shape, quant, ExtraParams::None, location)?;

    let depth = usize::try_from(channels).unwrap_or_default();
    let biases: Vec<u8> = weights.bias.to_le_bytes().repeat(depth);
    let location = m.graph.keep(&biases)?;
    let quant = Quant { scale: input_scale * weights.scale, zero_point: 0 };
    let bias = m.graph.constant(
        OperandType::TensorInt32,
        Dimensions::from_slice(&[channels]),
        quant,
        ExtraParams::None,
        location,
    )?;
    let mut inputs = vec![input, filter, bias];
    // Padding, strides, results per channel, activation.
    for value in [VALID, 1, 1, 1, activation] {
        inputs.push(m.graph.int(value)?);
    }
    m.emit(OperationType::DepthwiseConv2d, inputs, output, None)?;
    m.notes.push(Note::RescaledExactly);
    Ok(true)
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to the nearest float is meant")]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// The nearest integer, if it is a small one.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn whole(value: f64) -> Option<i32> {
    let rounded = value.round();
    (rounded.abs() <= MAX_BIAS).then_some(rounded as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_weights_exist_for_means_of_real_models() {
        for (height, width, from, to) in
            [(7, 7, 0.023_529_412, 0.019_077_832), (3, 2, 0.023_529_412, 0.022_328_35)]
        {
            let found = mean_weights(height, width, from, to).expect("exact weights");
            assert!(found.value > 1, "{height} x {width}: weight {}", found.value);
            assert!(found.bias != 0, "{height} x {width}: without bias it is not exact");
        }
    }

    #[test]
    fn hopeless_scales_are_given_up() {
        assert!(mean_weights(7, 7, 0.02, 0.0).is_none());
        assert!(mean_weights(7, 7, f32::MIN_POSITIVE, f32::MAX).is_none());
        assert!(mean_weights(u32::MAX, 2, 0.02, 0.02).is_none());
    }
}
