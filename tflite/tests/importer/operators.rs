//! Single operators: which operations compute them, with which operands.

use burst_hal::{ExtraParams, Model, Operand, OperandLifeTime, OperandType, OperationType};
use burst_tflite::{ImportError, Imported, Note, Outcome, Refusal, import};

use crate::support::*;

/// Codes of operators in the file.
const ADD: i32 = 0;
const AVERAGE_POOL_2D: i32 = 1;
const CONCATENATION: i32 = 2;
const CONV_2D: i32 = 3;
const DEPTHWISE_CONV_2D: i32 = 4;
const DEQUANTIZE: i32 = 6;
const FULLY_CONNECTED: i32 = 9;
const LOGISTIC: i32 = 14;
const RELU: i32 = 19;
const RESIZE_BILINEAR: i32 = 23;
const RNN: i32 = 24;
const SOFTMAX: i32 = 25;
const MEAN: i32 = 40;
const STRIDED_SLICE: i32 = 45;
const ARG_MAX: i32 = 56;
const QUANTIZE: i32 = 114;

/// A file with one operator: its tensors, then the result.
fn one(tensors: Vec<Tensor>, operator: Operator) -> File {
    let is_input = |tensor: &Tensor| tensor.data.is_none() && !tensor.variable;
    let result = i32::try_from(tensors.len() - 1).expect("it fits");
    let inputs: Vec<i32> = (0..result)
        .filter(|&at| is_input(&tensors[usize::try_from(at).expect("it fits")]))
        .collect();
    File::new(tensors, vec![operator], (&inputs, &[result]))
}

fn imported(file: &File) -> Imported {
    let imported = import(&file.write()).unwrap_or_else(|error| panic!("{error}"));
    assert_valid(&imported.model, "one operator");
    imported
}

fn refusal(file: &File) -> Refusal {
    match import(&file.write()) {
        Err(ImportError::Refused { reason, .. }) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn operations(model: &Model) -> Vec<OperationType> {
    model.main.operations.iter().map(|operation| operation.ty).collect()
}

/// The operand at this position of the first operation's inputs.
fn input(model: &Model, at: usize) -> &Operand {
    &model.main.operands[model.main.operations[0].inputs[at] as usize]
}

fn bytes<'m>(model: &'m Model, operand: &Operand) -> &'m [u8] {
    let start = operand.location.offset as usize;
    &model.operand_values[start..start + operand.location.length as usize]
}

/// The scalars of the first operation from this input on.
fn scalars(model: &Model, from: usize) -> Vec<i32> {
    let inputs = &model.main.operations[0].inputs[from..];
    inputs
        .iter()
        .map(|&index| match bytes(model, &model.main.operands[index as usize]) {
            [byte] => i32::from(*byte),
            four => i32::from_le_bytes(four.try_into().expect("a scalar")),
        })
        .collect()
}

fn conv(filter: Tensor, bias: Option<Tensor>, dilation: i32) -> File {
    let mut tensors = vec![Tensor::new("image", INT8, &[1, 8, 8, 2]).quant(0.5, -3), filter];
    let mut inputs = vec![0, 1, -1];
    if let Some(bias) = bias {
        tensors.push(bias);
        inputs[2] = 2;
    }
    tensors.push(Tensor::new("result", INT8, &[1, 4, 4, 3]).quant(0.7, 5));
    let result = i32::try_from(tensors.len() - 1).expect("it fits");
    let fields = vec![
        Field::Byte(0, 0),
        Field::Int(1, 3),
        Field::Int(2, 2),
        Field::Byte(3, 1),
        Field::Int(4, dilation),
        Field::Int(5, 1),
    ];
    one(tensors, Operator::new(CONV_2D, &inputs, &[result]).options(1, fields))
}

fn per_channel(shape: &[i32], axis: i32) -> Tensor {
    let count = shape.iter().product::<i32>();
    Tensor::new("filter", INT8, shape)
        .channels(&[0.25, 0.5, 0.75], axis)
        .bytes(vec![1; usize::try_from(count).expect("it fits")])
}

#[test]
fn a_filter_with_a_scale_per_channel_has_a_bias_without_scale() {
    let bias = Tensor::new("bias", INT32, &[3]).channels(&[0.1, 0.2, 0.3], 0).ints(&[1, 2, 3]);
    let model = imported(&conv(per_channel(&[3, 1, 1, 2], 0), Some(bias), 1)).model;
    let filter = input(&model, 1);
    assert_eq!(filter.ty, OperandType::TensorQuant8SymmPerChannel);
    let want = ExtraParams::ChannelQuant { scales: vec![0.25, 0.5, 0.75].into(), channel_dim: 0 };
    assert_eq!((&filter.extra_params, filter.scale), (&want, 0.0));
    let bias = input(&model, 2);
    assert_eq!((bias.ty, bias.scale, bias.zero_point), (OperandType::TensorInt32, 0.0, 0));
    // Padding SAME, stride width and height, RELU; no dilation, so the form of HAL 1.0.
    assert_eq!(scalars(&model, 3), [1, 3, 2, 1]);
}

#[test]
fn dilation_uses_the_longer_form() {
    let imported = imported(&conv(per_channel(&[3, 1, 1, 2], 0), None, 2));
    assert_eq!(scalars(&imported.model, 3), [1, 3, 2, 1, 0, 2, 1]);
    assert_eq!(imported.verdicts[0].notes, [Note::ZeroBias]);
    assert_eq!(bytes(&imported.model, input(&imported.model, 2)), [0; 12]);
}

#[test]
fn a_filter_with_one_scale_gives_the_bias_the_product() {
    let filter = Tensor::new("filter", INT8, &[3, 1, 1, 2]).quant(0.2, 0).bytes(vec![1; 6]);
    let bias = Tensor::new("bias", INT32, &[3]).quant(0.1, 0).ints(&[1, 2, 3]);
    let model = imported(&conv(filter, Some(bias), 1)).model;
    assert_eq!(input(&model, 1).ty, OperandType::TensorQuant8AsymmSigned);
    assert_eq!(input(&model, 2).scale, 0.5_f32 * 0.2_f32);
}

#[test]
fn groups_become_a_grouped_convolution() {
    let model = imported(&conv(per_channel(&[3, 1, 1, 1], 0), None, 1)).model;
    assert_eq!(operations(&model), [OperationType::GroupedConv2d]);
    // Padding, strides, two groups, RELU, layout.
    assert_eq!(scalars(&model, 3), [1, 3, 2, 2, 1, 0]);
}

#[test]
fn filters_that_do_not_fit_are_refused() {
    let wrong_axis = conv(per_channel(&[3, 1, 1, 3], 3), None, 1);
    assert!(matches!(refusal(&wrong_axis), Refusal::OperandType { what: "the filter", .. }));
    let mut hybrid = conv(per_channel(&[3, 1, 1, 2], 0), None, 1);
    hybrid.tensors[0] = Tensor::new("image", FLOAT32, &[1, 8, 8, 2]);
    assert!(matches!(refusal(&hybrid), Refusal::OperandType { what: "the filter", .. }));
    let mut uneven = per_channel(&[3, 1, 1, 2], 0);
    uneven.scales.pop();
    assert!(matches!(refusal(&conv(uneven, None, 1)), Refusal::Quantization { .. }));
    let mut moved = per_channel(&[3, 1, 1, 2], 0);
    moved.zero_points = vec![0, 0, 1];
    assert!(matches!(refusal(&conv(moved, None, 1)), Refusal::Quantization { .. }));
    let short = Tensor::new("bias", INT32, &[2]).ints(&[1, 2]);
    let short = conv(per_channel(&[3, 1, 1, 2], 0), Some(short), 1);
    assert_eq!(refusal(&short), Refusal::Shape { what: "the bias" });
    let mut computed = conv(per_channel(&[3, 1, 1, 2], 0), None, 1);
    computed.tensors[1] = Tensor::new("filter", INT8, &[i32::MAX, 1, 1, 2]).quant(0.1, 0);
    computed.inputs.push(1);
    assert!(matches!(refusal(&computed), Refusal::NotConstant { .. }));
}

#[test]
fn fused_activations_that_nnapi_has_not_are_refused() {
    for code in [4, 5, -1, 99] {
        let tensors = vec![
            Tensor::new("a", FLOAT32, &[2]),
            Tensor::new("b", FLOAT32, &[2]),
            Tensor::new("sum", FLOAT32, &[2]),
        ];
        let add = Operator::new(ADD, &[0, 1], &[2]).options(11, vec![Field::Byte(0, code)]);
        assert_eq!(refusal(&one(tensors, add)), Refusal::Activation { code });
    }
}

#[test]
fn scalars_in_the_file_are_tensors_of_one_element_here() {
    let tensors = vec![
        Tensor::new("a", FLOAT32, &[2, 3]),
        Tensor::new("b", FLOAT32, &[]).floats(&[4.0]),
        Tensor::new("sum", FLOAT32, &[2, 3]),
    ];
    let model =
        imported(&one(tensors, Operator::new(ADD, &[0, 1], &[2]).options(11, vec![]))).model;
    assert_eq!(input(&model, 1).dimensions.as_slice(), [1]);
}

#[test]
fn depthwise_takes_its_multiplier_from_the_shapes() {
    let tensors = vec![
        Tensor::new("image", FLOAT32, &[1, 4, 4, 2]),
        Tensor::new("filter", FLOAT32, &[1, 2, 2, 6]).floats(&[0.5; 24]),
        Tensor::new("bias", FLOAT32, &[6]).floats(&[0.0; 6]),
        Tensor::new("result", FLOAT32, &[1, 3, 3, 6]),
    ];
    let fields = vec![Field::Byte(0, 1), Field::Int(1, 1), Field::Int(2, 1), Field::Int(3, 77)];
    let operator = Operator::new(DEPTHWISE_CONV_2D, &[0, 1, 2], &[3]).options(2, fields);
    let mut file = one(tensors, operator);
    // VALID, strides, multiplier 3 and not the option's 77, no activation.
    assert_eq!(scalars(&imported(&file).model, 3), [2, 1, 1, 3, 0]);
    // Where the shape is left out, the option is all there is.
    file.tensors[0].shape = vec![];
    assert_eq!(scalars(&imported(&file).model, 3), [2, 1, 1, 77, 0]);
}

#[test]
fn pools_put_width_before_height() {
    let tensors =
        vec![Tensor::new("a", FLOAT32, &[1, 9, 9, 1]), Tensor::new("b", FLOAT32, &[1, 3, 3, 1])];
    let fields = vec![
        Field::Byte(0, 1),
        Field::Int(1, 2),
        Field::Int(2, 3),
        Field::Int(3, 4),
        Field::Int(4, 5),
        Field::Byte(5, 3),
    ];
    let pool = Operator::new(AVERAGE_POOL_2D, &[0], &[1]).options(5, fields);
    assert_eq!(scalars(&imported(&one(tensors, pool)).model, 1), [2, 2, 3, 4, 5, 3]);
}

#[test]
fn a_layer_that_keeps_axes_is_followed_by_a_reshape() {
    for (shape, want) in [(vec![2, 5, 4], vec![2, 5, 3]), (vec![2, 4], vec![])] {
        let mut result = shape.clone();
        *result.last_mut().expect("it fits") = 3;
        let tensors = vec![
            Tensor::new("a", FLOAT32, &shape),
            Tensor::new("weights", FLOAT32, &[3, 4]).floats(&[1.0; 12]),
            Tensor::new("result", FLOAT32, &result),
        ];
        let operator = Operator::new(FULLY_CONNECTED, &[0, 1, -1], &[2])
            .options(8, vec![Field::Bool(2, true)]);
        let model = imported(&one(tensors, operator)).model;
        if want.is_empty() {
            assert_eq!(operations(&model), [OperationType::FullyConnected]);
            continue;
        }
        assert_eq!(operations(&model), [OperationType::FullyConnected, OperationType::Reshape]);
        let shape = &model.main.operands[model.main.operations[1].inputs[1] as usize];
        let found: Vec<i32> = bytes(&model, shape)
            .chunks(4)
            .map(|four| i32::from_le_bytes(four.try_into().expect("it fits")))
            .collect();
        assert_eq!(found, want);
    }
}

#[test]
fn between_quantized_types_goes_by_way_of_real_numbers() {
    for (from, to, note) in [
        ((UINT8, 0.5, 127), (INT8, 0.5, -1), Note::ZeroPointMoved),
        ((UINT8, 0.5, 127), (UINT8, 0.25, 0), Note::Requantized),
    ] {
        let tensors = vec![
            Tensor::new("a", from.0, &[2, 3]).quant(from.1, from.2),
            Tensor::new("b", to.0, &[2, 3]).quant(to.1, to.2),
        ];
        let imported = imported(&one(tensors, Operator::new(QUANTIZE, &[0], &[1])));
        assert_eq!(
            operations(&imported.model),
            [OperationType::Dequantize, OperationType::Quantize]
        );
        assert_eq!(imported.verdicts[0].notes, [note]);
    }
}

#[test]
fn another_scale_on_an_image_is_an_exact_convolution() {
    for (from, to, want, zero_point) in [
        (UINT8, UINT8, &[OperationType::DepthwiseConv2d][..], 7),
        // First the scale in the input's type, then the type.
        (
            UINT8,
            INT8,
            &[OperationType::DepthwiseConv2d, OperationType::Dequantize, OperationType::Quantize],
            135,
        ),
        (
            INT8,
            UINT8,
            &[OperationType::DepthwiseConv2d, OperationType::Dequantize, OperationType::Quantize],
            -121,
        ),
    ] {
        let tensors = vec![
            Tensor::new("x", from, &[1, 3, 3, 2]).quant(0.5, 3),
            Tensor::new("y", to, &[1, 3, 3, 2]).quant(0.3, 7),
        ];
        let imported = imported(&one(tensors, Operator::new(QUANTIZE, &[0], &[1])));
        assert_eq!(operations(&imported.model), want);
        assert_eq!(imported.verdicts[0].notes[0], Note::RescaledExactly);
        assert_eq!(bytes(&imported.model, input(&imported.model, 1)), [1, 1]);
        let rescaled = imported.model.main.operations[0].outputs[0];
        let rescaled = &imported.model.main.operands[rescaled as usize];
        assert_eq!((rescaled.scale, rescaled.zero_point), (0.3, zero_point));
    }
}

#[test]
fn float16_results_of_the_graph_are_cast_not_folded() {
    let tensors = vec![
        Tensor::new("half", FLOAT16, &[2]).bytes(vec![0, 0x3c, 0, 0x40]),
        Tensor::new("real", FLOAT32, &[2]),
    ];
    let model = imported(&one(tensors, Operator::new(DEQUANTIZE, &[0], &[1]))).model;
    assert_eq!(operations(&model), [OperationType::Cast]);
}

#[test]
fn folded_constants_have_the_values_of_the_file() {
    let model = imported(&sample()).model;
    let layer = &model.main.operations[3];
    assert_eq!(layer.ty, OperationType::FullyConnected);
    let weights = &model.main.operands[layer.inputs[1] as usize];
    assert_eq!(weights.lifetime, OperandLifeTime::ConstantCopy);
    assert_eq!(bytes(&model, weights), 1.0_f32.to_le_bytes().repeat(24));
}

#[test]
fn scales_that_nnapi_fixes_are_kept_to() {
    for (code, options, fits) in [(LOGISTIC, None, -128), (SOFTMAX, Some(9), -128)] {
        for (scale, zero_point, is_right) in
            [(1.0 / 256.0, fits, true), (1.0 / 255.0, fits, false), (1.0 / 256.0, 0, false)]
        {
            let tensors = vec![
                Tensor::new("a", INT8, &[1, 4]).quant(0.1, 0),
                Tensor::new("b", INT8, &[1, 4]).quant(scale, zero_point),
            ];
            let mut operator = Operator::new(code, &[0], &[1]);
            if let Some(kind) = options {
                operator = operator.options(kind, vec![Field::Float(0, 1.0)]);
            }
            let file = one(tensors, operator);
            if is_right {
                imported(&file);
            } else {
                assert!(matches!(refusal(&file), Refusal::FixedScale { .. }), "{code} {scale}");
            }
        }
    }
}

#[test]
fn a_relu_that_rescales_is_an_exact_convolution_on_images() {
    for (shape, want) in [
        (&[1, 2, 2, 3][..], vec![OperationType::DepthwiseConv2d]),
        (&[1, 12], vec![OperationType::Relu, OperationType::Dequantize, OperationType::Quantize]),
    ] {
        let tensors = vec![
            Tensor::new("a", INT8, shape).quant(1.2, -113),
            Tensor::new("b", INT8, shape).quant(1.0, -128),
        ];
        let imported = imported(&one(tensors, Operator::new(RELU, &[0], &[1])));
        assert_eq!(imported.verdicts[0].outcome, Outcome::Mapped(want));
    }
}

#[test]
fn a_mean_that_rescales_is_a_convolution_where_that_is_exact() {
    use OperationType::{DepthwiseConv2d, Dequantize, Mean, Quantize, Reshape};
    for (zero_point, axes, result, want) in [
        (-128, [1, 2], &[1, 1, 1, 5][..], vec![DepthwiseConv2d]),
        (-128, [-2, -3], &[1, 5], vec![DepthwiseConv2d, Reshape]),
        (0, [1, 2], &[1, 1, 1, 5], vec![Dequantize, Mean, Quantize]),
        (-128, [0, 1], &[1, 1, 2, 5], vec![Dequantize, Mean, Quantize]),
    ] {
        let tensors = vec![
            Tensor::new("a", INT8, &[1, 3, 2, 5]).quant(0.023_529_412, zero_point),
            Tensor::new("axes", INT32, &[2]).ints(&axes),
            Tensor::new("b", INT8, result).quant(0.022_328_35, -128),
        ];
        let keep = vec![Field::Bool(0, result.len() == 4)];
        let file = one(tensors, Operator::new(MEAN, &[0, 1], &[2]).options(27, keep));
        let imported = imported(&file);
        assert_eq!(imported.verdicts[0].outcome, Outcome::Mapped(want), "{axes:?}");
    }
}

#[test]
fn indexes_of_64_bits_become_32() {
    let tensors = vec![
        Tensor::new("a", FLOAT32, &[2, 4]),
        Tensor::new("axis", INT64, &[]).longs(&[-1]),
        Tensor::new("best", INT64, &[2]),
    ];
    let imported = imported(&one(tensors.clone(), Operator::new(ARG_MAX, &[0, 1], &[2])));
    assert_eq!(imported.outputs[0].ty, OperandType::TensorInt32);
    assert_eq!(imported.outputs[0].file_type.to_string(), "int64");
    assert_eq!(imported.verdicts[0].notes, [Note::Int64AsInt32]);

    let mut wide = tensors;
    wide[1] = Tensor::new("axis", INT64, &[]).longs(&[1 << 40]);
    let file = one(wide, Operator::new(ARG_MAX, &[0, 1], &[2]));
    assert!(matches!(refusal(&file), Refusal::Range { .. }));
}

#[test]
fn the_axis_of_a_concatenation_counts_from_the_front() {
    let tensors = vec![
        Tensor::new("a", FLOAT32, &[1, 2, 3]),
        Tensor::new("b", FLOAT32, &[1, 2, 4]),
        Tensor::new("both", FLOAT32, &[1, 2, 7]),
    ];
    for (axis, want) in [(-1, Some(2)), (2, Some(2)), (-4, None)] {
        let operator =
            Operator::new(CONCATENATION, &[0, 1], &[2]).options(10, vec![Field::Int(0, axis)]);
        let file = one(tensors.clone(), operator);
        match want {
            Some(want) => assert_eq!(scalars(&imported(&file).model, 2), [want]),
            None => assert!(matches!(refusal(&file), Refusal::OptionValue { .. })),
        }
    }
}

#[test]
fn masks_that_nnapi_has_not_are_refused() {
    let tensors = vec![
        Tensor::new("a", FLOAT32, &[4, 4]),
        Tensor::new("begin", INT32, &[2]).ints(&[0, 0]),
        Tensor::new("end", INT32, &[2]).ints(&[2, 2]),
        Tensor::new("strides", INT32, &[2]).ints(&[1, 1]),
        Tensor::new("b", FLOAT32, &[2, 2]),
    ];
    for (field, is_right) in [(0, true), (1, true), (2, false), (3, false), (4, true)] {
        let operator = Operator::new(STRIDED_SLICE, &[0, 1, 2, 3], &[4])
            .options(32, vec![Field::Int(field, 1)]);
        let file = one(tensors.clone(), operator);
        if is_right {
            imported(&file);
        } else {
            assert!(matches!(refusal(&file), Refusal::OptionValue { .. }), "{field}");
        }
    }
}

#[test]
fn resizing_puts_width_first_and_flags_only_where_set() {
    let tensors = vec![
        Tensor::new("a", FLOAT32, &[1, 2, 2, 1]),
        Tensor::new("size", INT32, &[2]).ints(&[6, 8]),
        Tensor::new("b", FLOAT32, &[1, 6, 8, 1]),
    ];
    for (fields, want) in [
        (vec![], vec![8, 6]),
        (vec![Field::Bool(2, true)], vec![8, 6, 0, 1, 0]),
        (vec![Field::Bool(3, true)], vec![8, 6, 0, 0, 1]),
    ] {
        let operator = Operator::new(RESIZE_BILINEAR, &[0, 1], &[2]).options(15, fields);
        assert_eq!(scalars(&imported(&one(tensors.clone(), operator)).model, 1), want);
    }
}

#[test]
fn states_are_inputs_and_outputs() {
    let tensors = vec![
        Tensor::new("x", FLOAT32, &[1, 2]),
        Tensor::new("weights", FLOAT32, &[3, 2]).floats(&[0.1; 6]),
        Tensor::new("recurrent", FLOAT32, &[3, 3]).floats(&[0.2; 9]),
        Tensor::new("bias", FLOAT32, &[3]).floats(&[0.0; 3]),
        Tensor::new("memory", FLOAT32, &[1, 3]).state(),
        Tensor::new("y", FLOAT32, &[1, 3]),
    ];
    let operator = Operator::new(RNN, &[0, 1, 2, 3, 4], &[5]).options(7, vec![Field::Byte(0, 4)]);
    let imported = imported(&one(tensors.clone(), operator.clone()));
    let names = |infos: &[burst_tflite::TensorInfo]| {
        infos.iter().map(|info| info.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&imported.inputs), ["x", "memory"]);
    assert_eq!(names(&imported.outputs), ["y", "memory"]);
    let pair = burst_tflite::StatePair { input_index: 1, output_index: 1 };
    assert_eq!(imported.states, [pair]);
    // TANH has the same code on both sides.
    assert_eq!(scalars(&imported.model, 5), [4]);

    let mut file = one(tensors, operator);
    file.tensors[4].variable = false;
    file.inputs.push(4);
    assert_eq!(refusal(&file), Refusal::NotState { tensor: 4 });
}

#[test]
fn open_sizes_of_results_are_unknown_unless_the_batch_says_them() {
    let open = |name, shape: &[i32], signature: &[i32]| {
        let mut tensor = Tensor::new(name, FLOAT32, shape);
        tensor.signature = Some(signature.to_vec());
        tensor
    };
    let tensors = vec![open("a", &[1, 4], &[-1, 4]), open("b", &[1, 4], &[-1, 4])];
    let kept = imported(&one(tensors, Operator::new(RELU, &[0], &[1])));
    assert_eq!(kept.inputs[0].dims.as_slice(), [1, 4]);
    assert_eq!(kept.outputs[0].dims.as_slice(), [1, 4]);

    let tensors = vec![open("a", &[1, 4], &[-1, 4]), open("b", &[1, 1], &[-1, -1])];
    let lost = imported(&one(tensors, Operator::new(RELU, &[0], &[1])));
    assert_eq!(lost.outputs[0].dims.as_slice(), [1, 0]);
}

#[test]
fn integers_without_scale_and_types_without_form_are_refused() {
    let tensors = vec![Tensor::new("a", UINT8, &[2]), Tensor::new("b", UINT8, &[2]).quant(1.0, 0)];
    let file = one(tensors, Operator::new(RELU, &[0], &[1]));
    let error = import(&file.write()).expect_err("no scale");
    assert!(matches!(error, ImportError::BoundaryType { role: "an input", .. }), "{error}");
    for (scale, zero_point) in
        [(0.0, 0), (-1.0, 0), (f32::NAN, 0), (f32::INFINITY, 0), (1.0, 256), (1.0, -1)]
    {
        let tensors = vec![
            Tensor::new("a", UINT8, &[2]).quant(scale, zero_point),
            Tensor::new("b", UINT8, &[2]).quant(1.0, 0),
        ];
        let file = one(tensors, Operator::new(RELU, &[0], &[1]));
        assert!(import(&file.write()).is_err(), "{scale} {zero_point}");
    }
    let tensors =
        vec![Tensor::new("a", COMPLEX64, &[2]).bytes(vec![0; 16]), Tensor::new("b", FLOAT32, &[2])];
    let file = one(tensors, Operator::new(RELU, &[0], &[1]));
    assert!(matches!(refusal(&file), Refusal::ElementType { tensor: 0, .. }));
}

#[test]
fn tensors_that_share_a_buffer_share_its_bytes() {
    let mut second = Tensor::new("two", FLOAT32, &[64]);
    second.buffer = Some(1);
    let tensors = vec![
        Tensor::new("x", FLOAT32, &[64]),
        Tensor::new("one", FLOAT32, &[64]).floats(&[1.0; 64]),
        second,
        Tensor::new("a", FLOAT32, &[64]),
        Tensor::new("b", FLOAT32, &[64]),
    ];
    let add = |inputs: &[i32], output| Operator::new(ADD, inputs, &[output]).options(11, vec![]);
    let operators = vec![add(&[0, 1], 3), add(&[3, 2], 4)];
    let model = imported(&File::new(tensors, operators, (&[0], &[4]))).model;
    let operand = |operation: usize| {
        &model.main.operands[model.main.operations[operation].inputs[1] as usize]
    };
    assert_eq!(operand(0).location, operand(1).location);
}
