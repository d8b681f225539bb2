//! What the attributes of a convolution make of the shapes of its operands.

use burst_hal::Dimensions;

use crate::OpError;
use crate::kernels::conv::{Axis, Conv, Filter, Images};
use crate::op::{Inferred, Parsed};
use crate::ops::attributes::{ConvAttributes, Layout};
use crate::ops::conv::one_bias_per_channel;
use crate::ops::conv::quantized::{Scales, Task};
use crate::tensor::{Args, element_count};

/// Works out a convolution from its attributes and the shapes of images and filter.
pub(super) type Geometry = fn(&ConvAttributes, &[u32], &[u32]) -> Result<Conv, OpError>;

/// Infers the shape of the only output, and checks bias and scales against it.
pub(super) fn infer(
    args: &Args<'_>,
    attributes: Parsed<'_, ConvAttributes>,
    geometry: Geometry,
) -> Result<Inferred, OpError> {
    let attributes = attributes?;
    let conv = geometry(attributes, args.dims(0)?, args.dims(1)?)?;
    check_operands(args, &conv, Task::Convolution)?;
    Ok(Inferred::one(dims_of(attributes.layout, &conv.output)?))
}

/// Checks that there is one bias per output channel, and that the scales go together.
pub(super) fn check_operands(args: &Args<'_>, conv: &Conv, task: Task) -> Result<(), OpError> {
    one_bias_per_channel(args, conv.filter.outputs)?;
    Scales::of_args(task, args)?.check(conv.filter.outputs)
}

/// CONV_2D: every output channel sees every input channel.
pub(super) fn dense(
    attributes: &ConvAttributes,
    input: &[u32],
    filter: &[u32],
) -> Result<Conv, OpError> {
    let images = images(attributes.layout, four("images of a convolution", input)?);
    let taps = four("filter of a convolution", filter)?;
    if taps[0] == 0 || taps[3] != images.channels {
        return Err(OpError::shape("channels of images and filter", input, filter));
    }
    of_sizes(attributes, images, Filter::dense(taps), 1)
}

/// DEPTHWISE_CONV_2D: every output channel sees one input channel.
pub(super) fn depthwise(
    attributes: &ConvAttributes,
    input: &[u32],
    filter: &[u32],
) -> Result<Conv, OpError> {
    let images = images(attributes.layout, four("images of a depthwise convolution", input)?);
    let [one, height, width, outputs] = four("filter of a depthwise convolution", filter)?;
    if one != 1 || images.channels.checked_mul(attributes.number) != Some(outputs) {
        return Err(OpError::shape("channels of images, filter and multiplier", input, filter));
    }
    of_sizes(attributes, images, Filter::depthwise([height, width, outputs]), images.channels)
}

/// GROUPED_CONV_2D: every output channel sees the input channels of its group.
pub(super) fn grouped(
    attributes: &ConvAttributes,
    input: &[u32],
    filter: &[u32],
) -> Result<Conv, OpError> {
    let images = images(attributes.layout, four("images of a grouped convolution", input)?);
    let taps @ [outputs, _, _, depth] = four("filter of a grouped convolution", filter)?;
    let groups = attributes.number;
    if images.batches == 0
        || outputs == 0
        || depth.checked_mul(groups) != Some(images.channels)
        || !outputs.is_multiple_of(groups)
    {
        return Err(OpError::shape("channels of images, filter and groups", input, filter));
    }
    of_sizes(attributes, images, Filter::dense(taps), groups)
}

/// FULLY_CONNECTED: a convolution of images of one pixel.
pub(super) fn fully_connected(input: &[u32], weights: &[u32]) -> Result<Conv, OpError> {
    let mismatch =
        || OpError::shape("input and weights of a fully connected layer", input, weights);
    let [units, inputs] = *weights else { return Err(mismatch()) };
    if !(2..=4).contains(&input.len()) || units == 0 || inputs == 0 {
        return Err(mismatch());
    }
    let (units, inputs) = (units as usize, inputs as usize);
    let values = element_count(input)?;
    if !values.is_multiple_of(inputs) {
        return Err(mismatch());
    }
    let batches = values / inputs;
    let still = Axis { stride: 1, dilation: 1, pad: 0 };
    Ok(Conv {
        input: Images::nhwc([batches, 1, 1, inputs]),
        filter: Filter::dense([units, 1, 1, inputs]),
        output: Images::nhwc([batches, 1, 1, units]),
        vertical: still,
        horizontal: still,
        groups: 1,
    })
}

/// A convolution of these images by this filter.
fn of_sizes(
    attributes: &ConvAttributes,
    input: Images,
    filter: Filter,
    groups: usize,
) -> Result<Conv, OpError> {
    let (vertical, height) = slide(attributes, 0, input.height, filter.height)?;
    let (horizontal, width) = slide(attributes, 1, input.width, filter.width)?;
    let output = output(attributes.layout, [input.batches, height, width, filter.outputs])?;
    Ok(Conv { input, filter, output, vertical, horizontal, groups })
}

/// Images of this shape.
pub(super) fn images(layout: Layout, dims: [usize; 4]) -> Images {
    match layout {
        Layout::Nhwc => Images::nhwc(dims),
        Layout::Nchw => Images::nchw(dims),
    }
}

/// Images of these batches, height, width and channels, whose elements can be counted.
pub(super) fn output(layout: Layout, sizes: [usize; 4]) -> Result<Images, OpError> {
    sizes
        .iter()
        .try_fold(1usize, |count, size| count.checked_mul(*size))
        .ok_or(OpError::Range { what: "output size of a convolution" })?;
    Ok(images(layout, layout.shape(sizes)))
}

/// The shape of images.
pub(super) fn dims_of(layout: Layout, images: &Images) -> Result<Dimensions, OpError> {
    let Images { batches, height, width, channels, .. } = *images;
    layout
        .shape([batches, height, width, channels])
        .into_iter()
        .map(|size| u32::try_from(size).map_err(|_| OpError::Range { what: "output size" }))
        .collect()
}

/// How a filter of `taps` moves over an input of `size` in one dimension (0: vertical, 1:
/// horizontal), and how many outputs that gives.
fn slide(
    attributes: &ConvAttributes,
    dimension: usize,
    size: usize,
    taps: usize,
) -> Result<(Axis, usize), OpError> {
    let (stride, dilation) = (attributes.strides[dimension], attributes.dilations[dimension]);
    let span = taps
        .checked_sub(1)
        .and_then(|gaps| gaps.checked_mul(dilation))
        .and_then(|span| span.checked_add(1))
        .ok_or(OpError::Range { what: "extent of a filter" })?;
    let (pad, outputs) = attributes.padding.slide(dimension, size, stride, span)?;
    Ok((Axis { stride, dilation, pad }, outputs))
}

/// A shape of rank 4 of which only the first dimension may be 0.
pub(super) fn four(what: &'static str, dims: &[u32]) -> Result<[usize; 4], OpError> {
    let [a, b, c, d] = *dims else { return Err(OpError::shape(what, dims, &[0; 4])) };
    if b == 0 || c == 0 || d == 0 {
        return Err(OpError::shape(what, dims, &[0; 4]));
    }
    Ok([a as usize, b as usize, c as usize, d as usize])
}

#[cfg(test)]
mod tests {
    use burst_hal::FusedActivation;

    use super::*;
    use crate::ops::attributes::Padding;

    fn attributes(padding: Padding, strides: [usize; 2], dilations: [usize; 2]) -> ConvAttributes {
        ConvAttributes {
            padding,
            strides,
            dilations,
            number: 1,
            activation: FusedActivation::None,
            layout: Layout::Nhwc,
        }
    }

    #[test]
    fn output_sizes() {
        for (what, padding, size, taps, stride, dilation, want) in [
            ("valid", Padding::Valid, 7, 3, 2, 1, Ok((0, 3))),
            ("same, odd total", Padding::Same, 6, 3, 2, 1, Ok((0, 3))),
            ("same, even total", Padding::Same, 7, 3, 2, 1, Ok((1, 4))),
            ("same, dilated", Padding::Same, 9, 3, 1, 2, Ok((2, 9))),
            ("same, stride over filter", Padding::Same, 5, 1, 3, 1, Ok((0, 2))),
            ("explicit", Padding::Explicit([(1, 0); 2]), 5, 2, 1, 1, Ok((1, 5))),
            ("explicit, too wide", Padding::Explicit([(2, 0); 2]), 5, 2, 1, 1, Err(())),
            ("explicit, negative", Padding::Explicit([(0, -1); 2]), 5, 2, 1, 1, Err(())),
            ("filter over input", Padding::Valid, 2, 3, 1, 1, Err(())),
            ("no taps", Padding::Valid, 2, 0, 1, 1, Err(())),
        ] {
            let attributes = attributes(padding, [stride; 2], [dilation; 2]);
            for dimension in [0, 1] {
                let got = slide(&attributes, dimension, size, taps);
                let got = got.map(|(axis, out)| (axis.pad, out)).map_err(|_| ());
                assert_eq!(got, want, "{what}");
            }
        }
    }

    #[test]
    fn parameters_of_a_hostile_model_do_not_overflow() {
        let huge = i32::MAX as usize;
        let explicit = Padding::Explicit([(i32::MAX, i32::MAX); 2]);
        for padding in [Padding::Same, Padding::Valid, explicit] {
            let attributes = attributes(padding, [huge; 2], [huge; 2]);
            for (size, taps) in [(u32::MAX as usize, u32::MAX as usize), (1, 2), (1, 1)] {
                let _ = slide(&attributes, 0, size, taps);
            }
        }
    }
}
