//! Every operation has forms; versions by main type, by count, by rule.

use super::*;
use crate::OperandType::{
    Bool, Float32, Int32, TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm,
    TensorQuant8AsymmSigned,
};
use crate::{Dimensions, OperandType};

const V1_0: Option<HalVersion> = Some(HalVersion::V1_0);
const V1_1: Option<HalVersion> = Some(HalVersion::V1_1);
const V1_2: Option<HalVersion> = Some(HalVersion::V1_2);
const V1_3: Option<HalVersion> = Some(HalVersion::V1_3);

/// Since when an operation takes inputs of these types, of four dimensions where they are tensors, and
/// outputs likewise.
fn since_of(
    ty: OperationType,
    inputs: &[OperandType],
    outputs: &[OperandType],
) -> Option<HalVersion> {
    since_with(ty, inputs, outputs, |_| {})
}

fn since_with(
    ty: OperationType,
    inputs: &[OperandType],
    outputs: &[OperandType],
    change: impl FnOnce(&mut [Operand]),
) -> Option<HalVersion> {
    let operand = |ty: &OperandType| {
        let mut operand = Operand::new(*ty, OperandLifeTime::TemporaryVariable);
        if ty.is_tensor() {
            operand.dimensions = Dimensions::from_slice(&[1, 1, 1, 1]);
        }
        operand.scale = if ty.is_quantized() { 0.5 } else { 0.0 };
        operand
    };
    let mut model = Model::default();
    model.main.operands = inputs.iter().chain(outputs).map(operand).collect();
    change(&mut model.main.operands);
    let count = u32::try_from(inputs.len()).unwrap();
    let all = u32::try_from(model.main.operands.len()).unwrap();
    let operation = Operation { ty, inputs: (0..count).collect(), outputs: (count..all).collect() };
    since(&model, &model.main, &operation)
}

#[test]
fn every_operation_has_forms() {
    for ty in OperationType::ALL {
        assert!(forms_of(*ty).next().is_some(), "{ty}");
        let earliest = forms_of(*ty).flat_map(|form| form.main).map(|(_, since)| *since).min();
        assert!(earliest <= ty.since(), "{ty}: nothing takes it from the start");
    }
    let rows: usize = FAMILIES.iter().map(|family| family.len()).sum();
    let found: usize = OperationType::ALL.iter().map(|ty| forms_of(*ty).count()).sum();
    assert_eq!(found, rows, "a row whose operation is none");
}

#[test]
fn the_main_type_decides() {
    for (ty, want) in [
        (TensorFloat32, V1_0),
        (TensorQuant8Asymm, V1_0),
        (TensorFloat16, V1_2),
        (TensorQuant8AsymmSigned, V1_3),
        (TensorInt32, V1_3),
        (Float32, None),
    ] {
        assert_eq!(since_of(OperationType::Add, &[ty, ty, Int32], &[ty]), want, "{ty}");
    }
    let mixed = [TensorFloat32, TensorInt32, Int32];
    assert_eq!(since_of(OperationType::Add, &mixed, &[TensorFloat32]), None);
    let halves = [TensorFloat16];
    assert_eq!(since_of(OperationType::Dequantize, &[TensorQuant8Asymm], &halves), V1_2);
}

#[test]
fn counts_decide_too() {
    let f = TensorFloat32;
    let conv = |rest: &[OperandType]| {
        let inputs = [&[f, f, f, Int32, Int32, Int32, Int32], rest].concat();
        since_of(OperationType::Conv2d, &inputs, &[f])
    };
    assert_eq!(conv(&[]), V1_0, "a padding scheme");
    assert_eq!(conv(&[Int32; 3]), V1_0, "explicit padding");
    assert_eq!(conv(&[Bool]), V1_2, "a layout");
    assert_eq!(conv(&[Bool, Int32, Int32]), V1_2, "dilations");
    assert_eq!(conv(&[Int32, Int32, Int32, Bool, Int32, Int32]), V1_2, "all of it");
    assert_eq!(conv(&[Bool, Int32]), None);
    assert_eq!(since_of(OperationType::BatchToSpaceNd, &[f, TensorInt32], &[f]), V1_1);
    let states = |count| {
        since_of(
            OperationType::UnidirectionalSequenceRnn,
            &[f, f, f, f, f, Int32, Int32],
            &vec![f; count],
        )
    };
    assert_eq!((states(1), states(2), states(3)), (V1_2, V1_3, None));
}

#[test]
fn lists_of_any_length() {
    let f = TensorFloat32;
    let concatenation = |count| {
        let mut inputs = vec![f; count];
        inputs.push(Int32);
        since_of(OperationType::Concatenation, &inputs, &[f])
    };
    assert_eq!((concatenation(0), concatenation(1), concatenation(9)), (None, V1_0, V1_0));
    let split = |count| since_of(OperationType::Split, &[f, Int32, Int32], &vec![f; count]);
    assert_eq!((split(0), split(1), split(7)), (None, V1_2, V1_2));
    let condition = OperandType::TensorBool8;
    let graph = OperandType::Subgraph;
    let branch = |rest: &[OperandType], outputs: &[OperandType]| {
        let inputs = [&[condition, graph, graph], rest].concat();
        since_of(OperationType::If, &inputs, outputs)
    };
    assert_eq!(branch(&[], &[f]), V1_3);
    assert_eq!(branch(&[f, Int32, condition], &[condition, f]), V1_3);
    assert_eq!(branch(&[f], &[]), None);
    assert_eq!(since_of(OperationType::While, &[graph, graph], &[f]), None);
    assert_eq!(since_of(OperationType::While, &[graph, graph, f], &[f]), V1_3);
}

#[test]
fn old_versions_ask_more_of_ranks_and_scales() {
    let (f, q) = (TensorFloat32, TensorQuant8Asymm);
    let flat = |operands: &mut [Operand]| operands[0].dimensions.truncate(3);
    assert_eq!(since_with(OperationType::L2Normalization, &[f], &[f], flat), V1_2);
    assert_eq!(since_with(OperationType::Softmax, &[f, Float32], &[f], flat), V1_2);
    let zero = |operands: &mut [Operand]| operands[0].zero_point = 3;
    assert_eq!(since_of(OperationType::Pad, &[q, TensorInt32], &[q]), V1_1);
    assert_eq!(since_with(OperationType::Pad, &[q, TensorInt32], &[q], zero), V1_2);
    assert_eq!(since_with(OperationType::Concatenation, &[q, q, Int32], &[q], zero), V1_2);
    let connected = [q, q, TensorInt32, Int32];
    let with_scale = |scale: f32| {
        move |operands: &mut [Operand]| {
            operands[1].dimensions.truncate(2);
            operands[2].dimensions.truncate(1);
            operands[4].scale = scale;
        }
    };
    let layer = OperationType::FullyConnected;
    assert_eq!(since_with(layer, &connected, &[q], with_scale(0.5)), V1_0);
    assert_eq!(since_with(layer, &connected, &[q], with_scale(0.25)), V1_2);
}

#[test]
fn a_convolution_of_1_0_has_a_filter_scale_below_one() {
    let (q, b) = (TensorQuant8Asymm, TensorInt32);
    let conv = [&[q, q, b][..], &[Int32; 4]].concat();
    let depthwise = [&[q, q, b][..], &[Int32; 5]].concat();
    for (scales, since) in [
        ([0.5, 0.5, 0.5], V1_0),
        ([0.5, 0.5, 0.25], V1_0), // where the output's scale would decide it would not be
        ([0.5, 0.5, 0.01], V1_0),
        ([0.5, 1.0, 8.0], V1_2),
        ([0.001, 2.0, 8.0], V1_2),
        ([0.5, 0.999, 0.01], V1_0),
    ] {
        for (ty, inputs) in
            [(OperationType::Conv2d, &conv), (OperationType::DepthwiseConv2d, &depthwise)]
        {
            let set = |operands: &mut [Operand]| {
                [operands[0].scale, operands[1].scale] = [scales[0], scales[1]];
                operands[inputs.len()].scale = scales[2];
            };
            assert_eq!(since_with(ty, inputs, &[q], set), since, "{ty} {scales:?}");
        }
    }
}

#[test]
fn an_unsigned_product_has_a_scale_above_that_of_its_factors() {
    for (ty, scale, since) in [
        (TensorQuant8Asymm, 0.26, V1_0),
        (TensorQuant8Asymm, 0.25, None),
        (TensorQuant8Asymm, 0.1, None),
        (TensorQuant8AsymmSigned, 0.25, V1_3),
        (TensorQuant8AsymmSigned, 0.1, V1_3),
    ] {
        let set = |operands: &mut [Operand]| operands[3].scale = scale;
        let inputs = [ty, ty, Int32];
        assert_eq!(since_with(OperationType::Mul, &inputs, &[ty], set), since, "{ty} {scale}");
    }
}

#[test]
fn shapes_of_a_fully_connected_layer_go_together() {
    let f = TensorFloat32;
    let since = |shapes: [&[u32]; 3]| {
        since_with(OperationType::FullyConnected, &[f, f, f, Int32], &[f], |operands| {
            for (operand, shape) in operands.iter_mut().zip(shapes) {
                operand.dimensions = Dimensions::from_slice(shape);
            }
        })
    };
    for (input, weights, bias, fits) in [
        (&[4, 6][..], &[5, 6][..], &[5][..], true),
        (&[3, 4], &[5, 6], &[5], true),
        (&[2, 1, 2, 6], &[5, 6], &[5], true),
        (&[6], &[5, 6], &[5], false),
        (&[1, 1, 1, 1, 6], &[5, 6], &[5], false),
        (&[4, 6], &[6], &[5], false),
        (&[4, 6], &[5, 6, 1], &[5], false),
        (&[4, 6], &[5, 6], &[5, 1], false),
        (&[4, 6], &[5, 6], &[6], false),
        (&[4, 7], &[5, 6], &[5], false),
        (&[1, 3], &[5, 6], &[5], false),
        (&[0, 7], &[5, 6], &[5], true),
        (&[4, 7], &[5, 0], &[5], true),
        (&[4, 6], &[0, 6], &[5], true),
        (&[4, 6], &[5, 6], &[0], true),
        (&[], &[5, 6, 7], &[4], true),
        (&[6], &[], &[4], true),
        (&[6], &[5, 6], &[], true),
        (&[u32::MAX, u32::MAX, u32::MAX, 3], &[5, 3], &[5], true),
    ] {
        let want = if fits { V1_0 } else { None };
        assert_eq!(since([input, weights, bias]), want, "{input:?} {weights:?} {bias:?}");
    }
}

/// The verdict of [`check`] names the rule, and not some type that another form would have.
#[test]
fn a_broken_rule_is_named() {
    let mut builder = crate::ModelBuilder::new();
    let factor = crate::OutputSpec::new(TensorQuant8Asymm, &[2]).quantized(0.5, 0);
    let (a, b) = (builder.input_of(factor.clone()), builder.input_of(factor.clone()));
    let none = builder.scalar_i32(0);
    let product = builder.result_of(OperationType::Mul, &[a, b, none], factor.quantized(0.25, 0));
    builder.output(product);
    let model = builder.build().unwrap();
    let verdict = check(&model, &model.main, &model.main.operations[0], HalVersion::LATEST);
    let what = "the scale of the output is not above the product of the inputs'";
    assert_eq!(verdict, Err(FormMismatch::Rule { what }));
}

#[test]
fn what_others_define_takes_anything() {
    let (code, ty) = (OperationType::Extension(0x1_0001), OperandType::Extension(0x1_0002));
    assert_eq!(since_of(code, &[ty, TensorFloat32], &[ty]), V1_2);
    assert_eq!(since_of(code, &[TensorQuant8AsymmSigned], &[]), V1_3);
    assert_eq!(since_of(OperationType::OemOperation, &[OperandType::Oem], &[]), V1_0);
    assert_eq!(since_of(OperationType::Unknown(4711), &[TensorFloat32], &[TensorFloat32]), None);
}

#[test]
fn an_operation_of_operands_that_are_not_there_has_no_form() {
    let model = Model::default();
    let floor = Operation { ty: OperationType::Floor, inputs: vec![0], outputs: vec![1] };
    assert_eq!(since(&model, &model.main, &floor), None);
    assert_eq!(inputs_for(&model, &model.main, &floor, HalVersion::V1_3), None);
}
