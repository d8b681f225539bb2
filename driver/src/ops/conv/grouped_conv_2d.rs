//! GROUPED_CONV_2D: CONV_2D where output channels of a group see only the input channels of the
//! group of the same number.
//!
//! Inputs: images `[batches, height, width, depth_in]`, filter `[depth_out, filter_height,
//! filter_width, depth_in / groups]`, bias `[depth_out]`; then four paddings (explicit) or a padding
//! scheme (implicit), strides, the number of groups, the activation and the layout.
//!
//! Source: NNAPI `types.hal`, `OperationType::GROUPED_CONV_2D`.

use burst_hal::OperationType;

use crate::OpError;
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::{ConvAttributes, ConvForm};
use crate::ops::conv::forms::conv_forms;
use crate::ops::conv::quantized::{Task, check_filter};
use crate::ops::conv::{geometry, reference};
use crate::tensor::Args;

/// The definition of GROUPED_CONV_2D.
pub static DEF: OpDef = OpDef {
    code: OperationType::GroupedConv2d,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = conv_forms!(
    explicit [I32, I32, I32, I32, I32, I32, I32, I32, BOOL] counts [(12, V1_2)],
    implicit [I32, I32, I32, I32, I32, BOOL] counts [(9, V1_2)],
    since V1_2,
);

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)?;
    check_filter(signature, 0)
}

fn parse(operands: &dyn Operands) -> Result<ConvAttributes, OpError> {
    let is_explicit = operands.count() == 12;
    ConvAttributes::parse(operands, ConvForm { padding: 3, is_explicit, has_number: true })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, ConvAttributes>) -> Result<Inferred, OpError> {
    geometry::infer(args, attributes, geometry::grouped)
}

fn execute(run: &mut Run<'_, '_>, attributes: &ConvAttributes) -> Result<(), OpError> {
    let conv = geometry::grouped(attributes, run.input(0)?.dims, run.input(1)?.dims)?;
    reference::execute(run, &conv, attributes.activation, Task::Convolution)
}

#[cfg(test)]
mod tests {
    use burst_hal::HalVersion::{V1_2, V1_3};

    use super::*;
    use crate::ops::conv::test_support::{Case, Tensor};

    /// No padding, strides 1, so many groups, no activation.
    fn plain(groups: i32, nchw: bool) -> Vec<Tensor> {
        let numbers = [0, 0, 0, 0, 1, 1, groups, 0].map(Tensor::int);
        [numbers.to_vec(), vec![Tensor::flag(nchw)]].concat()
    }

    #[test]
    fn a_group_sees_its_own_channels() {
        // Two groups of two inputs and one output each.
        let filter = Tensor::f32(&[2, 1, 1, 2], &[1., 2., 3., 4.]);
        let bias = Tensor::f32(&[2], &[10., 20.]);
        for (nchw, dims) in [(false, [1, 1, 1, 4]), (true, [1, 4, 1, 1])] {
            let images = Tensor::f32(&dims, &[1., 2., 3., 4.]);
            let inputs = [vec![images, filter.clone(), bias.clone()], plain(2, nchw)].concat();
            // 1 * 1 + 2 * 2 + 10, 3 * 3 + 4 * 4 + 20.
            assert_eq!(Case::float(&DEF, inputs).values::<f32>().1, [15., 45.]);
        }
    }

    #[test]
    fn several_outputs_per_group_and_a_scale_per_channel() {
        // One input per group, two outputs of each: 4 * 1, 4 * 2, 6 * 3, 6 * 4.
        let images = Tensor::i8(&[1, 1, 1, 2], &[4, 6]).quantized(0.5, 0);
        let filter = Tensor::i8(&[4, 1, 1, 1], &[1, 2, 3, 4]).per_channel(&[1., 1., 2., 0.5], 0);
        let bias = Tensor::i32(&[4], &[0; 4]);
        let inputs = [vec![images, filter, bias], plain(2, false)].concat();
        let case = Case::quantized(&DEF, inputs, 0.5, 1);
        assert_eq!(case.values::<i8>().1, [5, 9, 37, 13]);
        assert!(case.is_valid(V1_3));
        assert!(!case.is_valid(V1_2), "signed values came with 1.3");
    }

    #[test]
    fn groups_must_divide_the_channels() {
        let bias = Tensor::f32(&[3], &[0.; 3]);
        let inputs = |channels: u32, depth: u32, groups| {
            let images = Tensor::f32(&[1, 1, 1, channels], &vec![0.; channels as usize]);
            let filter = Tensor::f32(&[3, 1, 1, depth], &vec![0.; 3 * depth as usize]);
            let rest = plain(groups, false);
            Case::float(&DEF, [vec![images, filter, bias.clone()], rest].concat()).infer(|_| true)
        };
        assert!(inputs(6, 2, 3).is_ok());
        assert!(inputs(6, 3, 2).is_err(), "3 outputs in 2 groups");
        assert!(inputs(6, 2, 2).is_err(), "6 inputs in 2 groups of 2");
        assert!(inputs(6, 2, 0).is_err(), "no groups");
    }
}
