//! TRANSPOSE_CONV_2D: the gradient of a convolution; every input pixel adds its value times the
//! filter to the outputs around `position * stride - padding`.
//!
//! Inputs: images `[batches, height, width, depth_in]`, filter `[depth_out, filter_height,
//! filter_width, depth_in]`, bias `[depth_out]`; then four paddings (explicit), or an output shape
//! and a padding scheme (implicit); strides, the activation and the layout.
//!
//! The original reads only height and width of the output shape, and only to find out the padding
//! of SAME; the size of the output follows from the padding. So do we: a shape that is not the one
//! that comes out is not an error here, but the output operand's declared shape has to agree.
//!
//! Source: NNAPI `types.hal`, `OperationType::TRANSPOSE_CONV_2D`.

use burst_hal::OperationType;

use crate::OpError;
use crate::kernels::conv::{Axis, Conv, Filter};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::{ConvAttributes, ConvForm, Padding};
use crate::ops::conv::forms::conv_forms;
use crate::ops::conv::geometry::{self, dims_of, four, images};
use crate::ops::conv::quantized::{Task, check_filter};
use crate::ops::conv::reference;
use crate::tensor::Args;

/// The definition of TRANSPOSE_CONV_2D.
pub static DEF: OpDef = OpDef {
    code: OperationType::TransposeConv2d,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = conv_forms!(
    explicit [I32, I32, I32, I32, I32, I32, I32, BOOL] counts [(11, V1_2)],
    implicit [TI32, I32, I32, I32, I32, BOOL] counts [(9, V1_2)],
    since V1_2,
);

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)?;
    check_filter(signature, 0)
}

/// What the operands after the bias say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attributes {
    conv: ConvAttributes,
    /// Height and width that a padding of SAME is asked for; 0 with any other padding.
    wanted: [i32; 2],
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let is_explicit = operands.count() == 11;
    let padding = if is_explicit { 3 } else { 4 };
    let form = ConvForm { padding, is_explicit, has_number: false };
    let conv = ConvAttributes::parse(operands, form)?;
    let wanted = match conv.padding {
        Padding::Same => {
            let shape = operands.tensor(3)?.i32()?;
            let shape = <[i32; 4]>::try_from(shape)
                .map_err(|_| OpError::Range { what: "length of the output shape" })?;
            let [_, height, width, _] = conv.layout.sizes(shape);
            [height, width]
        }
        _ => [0; 2],
    };
    Ok(Attributes { conv, wanted })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    let attributes = attributes?;
    let conv = geometry(attributes, args.dims(0)?, args.dims(1)?)?;
    geometry::check_operands(args, &conv, Task::TransposedConvolution)?;
    Ok(Inferred::one(dims_of(attributes.conv.layout, &conv.output)?))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    let conv = geometry(attributes, run.input(0)?.dims, run.input(1)?.dims)?;
    reference::execute(run, &conv, attributes.conv.activation, Task::TransposedConvolution)
}

fn geometry(attributes: &Attributes, input: &[u32], filter: &[u32]) -> Result<Conv, OpError> {
    let conv = &attributes.conv;
    let images = images(conv.layout, four("images of a transposed convolution", input)?);
    let taps = four("filter of a transposed convolution", filter)?;
    if taps[0] == 0 || taps[3] != images.channels {
        return Err(OpError::shape("channels of images and filter", input, filter));
    }
    let filter = Filter::dense(taps);
    let (vertical, height) = slide(attributes, 0, images.height, filter.height)?;
    let (horizontal, width) = slide(attributes, 1, images.width, filter.width)?;
    let output = geometry::output(conv.layout, [images.batches, height, width, filter.outputs])?;
    Ok(Conv { input: images, filter, output, vertical, horizontal, groups: 1 })
}

/// Padding before the first output, and the number of outputs, in one dimension.
fn slide(
    attributes: &Attributes,
    dimension: usize,
    size: usize,
    taps: usize,
) -> Result<(Axis, usize), OpError> {
    let range = OpError::Range { what: "output size of a transposed convolution" };
    let number = |value: usize| i64::try_from(value).map_err(|_| range.clone());
    let (size, taps) = (number(size)?, number(taps)?);
    let stride = number(attributes.conv.strides[dimension])?;
    let (head, tail) = match attributes.conv.padding {
        Padding::Valid => (0, 0),
        Padding::Explicit(pads) => {
            let (head, tail) = pads[dimension];
            if head < 0 {
                return Err(OpError::value("padding before the first output", head));
            }
            (i64::from(head), i64::from(tail))
        }
        Padding::Same => {
            let wanted = attributes.wanted[dimension];
            if wanted <= 0 {
                return Err(OpError::value("output shape", wanted));
            }
            // No overflow: sizes are below 2^32, the stride below 2^31.
            let wanted = i64::from(wanted);
            let total = (wanted + stride - 1) / stride * stride - stride + taps - wanted;
            let head = (total / 2).max(0);
            (head, total - head)
        }
    };
    let outputs = (size - 1) * stride + taps - head - tail;
    let outputs = usize::try_from(outputs).ok().filter(|outputs| *outputs > 0).ok_or(range)?;
    let pad = usize::try_from(head).map_err(|_| OpError::value("padding", head))?;
    Ok((Axis { stride: attributes.conv.strides[dimension], dilation: 1, pad }, outputs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::conv::test_support::{Case, Tensor};

    /// Explicit padding (left, right, top, bottom), strides across and down, no activation.
    fn explicit(numbers: [i32; 6]) -> Vec<Tensor> {
        [numbers.map(Tensor::int).to_vec(), vec![Tensor::int(0), Tensor::flag(false)]].concat()
    }

    /// An output shape, SAME or VALID, strides of 2, no activation.
    fn implicit(shape: &[i32; 4], scheme: i32, nchw: bool) -> Vec<Tensor> {
        let numbers = [scheme, 2, 2, 0].map(Tensor::int).to_vec();
        [vec![Tensor::i32(&[4], shape)], numbers, vec![Tensor::flag(nchw)]].concat()
    }

    fn two_pixels(rest: Vec<Tensor>) -> Case {
        let images = Tensor::f32(&[1, 1, 2, 1], &[1., 10.]);
        let filter = Tensor::f32(&[1, 1, 3, 1], &[1., 2., 3.]);
        let bias = Tensor::f32(&[1], &[0.5]);
        Case::float(&DEF, [vec![images, filter, bias], rest].concat())
    }

    #[test]
    fn pixels_add_up_where_filters_overlap() {
        let whole = two_pixels(explicit([0, 0, 0, 0, 2, 1]));
        assert_eq!(whole.values(), (vec![1, 1, 5, 1], vec![1.5f32, 2.5, 13.5, 20.5, 30.5]));
        let cut = two_pixels(explicit([1, 0, 0, 0, 2, 1]));
        assert_eq!(cut.values(), (vec![1, 1, 4, 1], vec![2.5f32, 13.5, 20.5, 30.5]));
        // A negative padding extends the output by what only the bias gives.
        let extended = two_pixels(explicit([2, -2, 0, 0, 2, 1]));
        assert_eq!(extended.values(), (vec![1, 1, 5, 1], vec![13.5f32, 20.5, 30.5, 0.5, 0.5]));
        assert!(two_pixels(explicit([-1, 0, 0, 0, 2, 1])).infer(|_| true).is_err());
        assert!(two_pixels(explicit([3, 2, 0, 0, 2, 1])).infer(|_| true).is_err(), "no outputs");
    }

    #[test]
    fn same_padding_follows_from_the_output_shape() {
        // 4 columns: (2 - 1) * 2 + 3 - 4 = 1 too many, cut at the end; 1 row of a stride of 2.
        let same = two_pixels(implicit(&[1, 1, 4, 1], 1, false));
        assert_eq!(same.values(), (vec![1, 1, 4, 1], vec![1.5f32, 2.5, 13.5, 20.5]));
        // 3 columns: 2 too many, one cut at each end.
        let odd = two_pixels(implicit(&[1, 1, 3, 1], 1, false));
        assert_eq!(odd.values(), (vec![1, 1, 3, 1], vec![2.5f32, 13.5, 20.5]));
        // VALID does not look at the shape.
        let valid = two_pixels(implicit(&[9, 9, 9, 9], 2, false));
        assert_eq!(valid.infer(|index| index != 3).unwrap().as_slice(), [1, 1, 5, 1]);
        assert!(two_pixels(implicit(&[1, 0, 3, 1], 1, false)).infer(|_| true).is_err());
    }

    #[test]
    fn planes_and_quantized_values() {
        let images = Tensor::u8(&[1, 2, 1, 1], &[12, 13]).quantized(0.5, 10);
        let filter = Tensor::u8(&[1, 1, 2, 2], &[1, 2, 3, 4]).quantized(0.5, 0);
        let bias = Tensor::i32(&[1], &[4]).quantized(0.25, 0);
        let rest = implicit(&[1, 1, 1, 2], 2, true);
        let case = Case::quantized(&DEF, [vec![images, filter, bias], rest].concat(), 0.5, 3);
        // 2 * 1 + 3 * 2 + 4 = 12 and 2 * 3 + 3 * 4 + 4 = 22, by a half, plus 3.
        assert_eq!(case.values(), (vec![1, 1, 1, 2], vec![9u8, 14]));
    }

    #[test]
    fn sizes_of_a_hostile_model_do_not_overflow() {
        let max = i32::MAX;
        for numbers in [[max, max, max, max, max, max], [0, i32::MIN, 0, i32::MIN, max, max]] {
            let _ = two_pixels(explicit(numbers)).infer(|_| true);
        }
        let shape = [max; 4];
        let mut rest = implicit(&shape, 1, false);
        rest[2] = Tensor::int(max);
        let _ = two_pixels(rest).infer(|_| true);
    }
}
