//! Convolutions as their definition says: plain loops, every type, every layout. What fast kernels
//! are compared with, and what runs where no fast kernel fits.

use super::geometry::{Axis, Conv};

/// Convolution with groups; with as many groups as input channels it is depthwise.
///
/// `step` adds the product of an input value and a weight to a sum that begins with `zero`;
/// `finish` makes an output value from the sum and the number of its channel. Input outside of the
/// image counts as real 0: it adds nothing. Slices must fit ([`Conv::fits`]).
pub(crate) fn convolve<I: Copy, F: Copy, A: Copy, O>(
    conv: &Conv,
    input: &[I],
    filter: &[F],
    output: &mut [O],
    zero: A,
    step: impl Fn(A, I, F) -> A,
    finish: impl Fn(A, usize) -> O,
) {
    let Conv { filter: weights, vertical, horizontal, .. } = conv;
    let outputs_per_group = weights.outputs / conv.groups;
    for_each_output(conv, |batch, row, column, channel, at| {
        let first_input = channel / outputs_per_group * weights.depth * conv.input.channel_step;
        let first_weight = channel * weights.output_step;
        let mut sum = zero;
        for down in vertical.taps(row, weights.height, conv.input.height) {
            let y = vertical.position(row, down);
            for right in horizontal.taps(column, weights.width, conv.input.width) {
                let x = horizontal.position(column, right);
                let from = conv.input.at(batch, y, x) + first_input;
                let weight = first_weight + down * weights.row_step + right * weights.column_step;
                for depth in 0..weights.depth {
                    sum = step(
                        sum,
                        input[from + depth * conv.input.channel_step],
                        filter[weight + depth * weights.depth_step],
                    );
                }
            }
        }
        output[at] = finish(sum, channel);
    });
}

/// Transposed convolution: every input pixel adds its value times the filter to the outputs that a
/// convolution of the same stride and padding would compute it from.
///
/// Written from the output's side, so that no sums have to be kept; taps run backwards, so that
/// sums are taken in the order of the input's pixels. As [`convolve`] otherwise; one group, no
/// dilation.
pub(crate) fn convolve_transposed<I: Copy, F: Copy, A: Copy, O>(
    conv: &Conv,
    input: &[I],
    filter: &[F],
    output: &mut [O],
    zero: A,
    step: impl Fn(A, I, F) -> A,
    finish: impl Fn(A, usize) -> O,
) {
    let Conv { filter: weights, vertical, horizontal, .. } = conv;
    for_each_output(conv, |batch, row, column, channel, at| {
        let first_weight = channel * weights.output_step;
        let mut sum = zero;
        for down in (0..weights.height).rev() {
            let Some(y) = source(*vertical, row, down, conv.input.height) else { continue };
            for right in (0..weights.width).rev() {
                let Some(x) = source(*horizontal, column, right, conv.input.width) else {
                    continue;
                };
                let from = conv.input.at(batch, y, x);
                let weight = first_weight + down * weights.row_step + right * weights.column_step;
                for depth in 0..weights.depth {
                    sum = step(
                        sum,
                        input[from + depth * conv.input.channel_step],
                        filter[weight + depth * weights.depth_step],
                    );
                }
            }
        }
        output[at] = finish(sum, channel);
    });
}

/// The input element that adds to output `out` through `tap`, if there is one.
fn source(axis: Axis, out: usize, tap: usize, size: usize) -> Option<usize> {
    let distance = (out + axis.pad).checked_sub(tap)?;
    let index = distance / axis.stride;
    (distance.is_multiple_of(axis.stride) && index < size).then_some(index)
}

/// Visits every output value: batch, row, column, channel, index.
fn for_each_output(conv: &Conv, mut visit: impl FnMut(usize, usize, usize, usize, usize)) {
    let output = &conv.output;
    for batch in 0..output.batches {
        for row in 0..output.height {
            for column in 0..output.width {
                let pixel = output.at(batch, row, column);
                for channel in 0..output.channels {
                    visit(batch, row, column, channel, pixel + channel * output.channel_step);
                }
            }
        }
    }
}
