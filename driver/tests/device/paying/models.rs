//! Models that hold something of every kind that is paid for.

use burst_hal::*;

use super::{F32, I32};

pub(super) fn out() -> OutputSpec {
    OutputSpec::new(F32, &[])
}

pub(super) fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|index| f32::from(u8::try_from(index % 200).unwrap()) / 64.0 - 1.5).collect()
}

pub(super) fn constant(b: &mut ModelBuilder, dims: &[u32]) -> u32 {
    b.constant_f32(dims, &numbers(dims.iter().product::<u32>() as usize))
}

/// A FILL of so many values.
pub(super) fn filled(b: &mut ModelBuilder, dims: &[u32], value: f32) -> u32 {
    let list: Vec<i32> = dims.iter().map(|size| i32::try_from(*size).unwrap()).collect();
    let list = b.constant_i32(&[u32::try_from(list.len()).unwrap()], &list);
    let value = b.scalar_f32(value);
    b.result_of(OperationType::Fill, &[list, value], out())
}

/// A convolution of a picture of 8 x 8 with 3 x 3 taps.
pub(super) fn convolution() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[1, 8, 8, 16]);
    let (filter, bias) = (constant(&mut b, &[40, 3, 3, 16]), constant(&mut b, &[40]));
    let [same, one, none] = [1, 1, 0].map(|value| b.scalar_i32(value));
    let y = b.result_of(OperationType::Conv2d, &[x, filter, bias, same, one, one, none], out());
    let (taps, bias) = (constant(&mut b, &[1, 3, 3, 40]), constant(&mut b, &[40]));
    let operands = [y, taps, bias, same, one, one, one, none];
    let z = b.result_of(OperationType::DepthwiseConv2d, &operands, out());
    b.output(z);
    b.build().unwrap()
}

/// A convolution with 3 x 3 taps of a picture of 8 x 8, whose filter and bias are inputs.
pub(super) fn convolution_of_inputs() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[1, 8, 8, 16]);
    let (filter, bias) = (b.input(F32, &[40, 3, 3, 16]), b.input(F32, &[40]));
    let [same, one, none] = [1, 1, 0].map(|value| b.scalar_i32(value));
    let y = b.result_of(OperationType::Conv2d, &[x, filter, bias, same, one, one, none], out());
    b.output(y);
    b.build().unwrap()
}

/// Two layers of bytes: a convolution and a depthwise one, and a table.
pub(super) fn bytes() -> Model {
    let mut b = ModelBuilder::new();
    let quantized = |dims: &[u32], scale, zero| {
        OutputSpec::new(OperandType::TensorQuant8Asymm, dims).quantized(scale, zero)
    };
    let x = b.input_of(quantized(&[1, 8, 8, 20], 0.5, 10));
    let weights = |count: usize| (0..=255_u8).cycle().take(count).collect::<Vec<u8>>();
    let filter = b.constant_bytes(quantized(&[33, 3, 3, 20], 0.25, 120), &weights(33 * 180));
    let bias = OutputSpec::new(I32, &[33]).quantized(0.125, 0);
    let bias = b.constant_i32_of(bias, &[7; 33]);
    let [same, one, none] = [1, 1, 0].map(|value| b.scalar_i32(value));
    let operands = [x, filter, bias, same, one, one, none];
    let y = b.result_of(OperationType::Conv2d, &operands, quantized(&[], 4.0, 3));
    let taps = b.constant_bytes(quantized(&[1, 3, 3, 33], 0.25, 120), &weights(9 * 33));
    let bias = b.constant_i32_of(OutputSpec::new(I32, &[33]).quantized(1.0, 0), &[1; 33]);
    let operands = [y, taps, bias, same, one, one, one, none];
    let z = b.result_of(OperationType::DepthwiseConv2d, &operands, quantized(&[], 4.0, 3));
    let last = b.result_of(OperationType::Logistic, &[z], quantized(&[], 1.0 / 256.0, 0));
    b.output(last);
    b.build().unwrap()
}

/// A recurrent layer of so many units.
pub(super) fn recurrent() -> Model {
    let mut b = ModelBuilder::new();
    let (batches, inputs, units) = (2, 12, 20);
    let x = b.input(F32, &[batches, inputs]);
    let mut operands = vec![x];
    for _ in 0..4 {
        operands.push(constant(&mut b, &[units, inputs]));
    }
    for _ in 0..4 {
        operands.push(constant(&mut b, &[units, units]));
    }
    operands.extend((0..3).map(|_| b.omitted(F32)));
    for _ in 0..4 {
        operands.push(constant(&mut b, &[units]));
    }
    operands.extend((0..2).map(|_| b.omitted(F32)));
    operands.extend([b.input(F32, &[batches, units]), b.input(F32, &[batches, units])]);
    operands.push(b.scalar_i32(4));
    operands.extend([b.scalar_f32(0.0), b.scalar_f32(0.0)]);
    let results: Vec<u32> = (0..4).map(|_| b.temporary(out())).collect();
    b.operation_into(OperationType::Lstm, &operands, &results);
    b.output(results[3]);
    for unread in [results[0], results[1], results[2]] {
        let copy = b.result_of(OperationType::Relu, &[unread], out());
        b.output(copy);
    }
    b.build().unwrap()
}

/// Values that depend on constants alone, some read as they are and some only on the way.
pub(super) fn folded() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[1]);
    let none = b.scalar_i32(0);
    let big = filled(&mut b, &[100, 100], 1.0);
    let also = constant(&mut b, &[100, 1]);
    let product = b.result_of(OperationType::Mul, &[big, also, none], out());
    let unread = b.result_of(OperationType::Add, &[product, big, none], out());
    let sum = b.result_of(OperationType::Sub, &[product, unread, none], out());
    let y = b.result_of(OperationType::Add, &[x, sum, none], out());
    b.output(y);
    b.build().unwrap()
}

/// An IF of a graph that adds a large constant and one that does not, in a WHILE; the shape of what comes
/// of it is only known when it runs.
pub(super) fn controlled() -> Model {
    let mut b = ModelBuilder::new();
    let int = || OutputSpec::new(I32, &[1]);
    let x = b.input(I32, &[1]);
    let none = b.scalar_i32(0);
    let below = b.referenced(|b| {
        let x = b.input(I32, &[1]);
        let limit = b.constant_i32(&[1], &[5]);
        let truth = OutputSpec::new(OperandType::TensorBool8, &[1]);
        let less = b.result_of(OperationType::Less, &[x, limit], truth);
        b.output(less);
    });
    let next = b.referenced(|b| {
        let x = b.input(I32, &[1]);
        let (one, none) = (b.constant_i32(&[1], &[1]), b.scalar_i32(0));
        let sum = b.result_of(OperationType::Add, &[x, one, none], int());
        b.output(sum);
    });
    let (below, next) = (b.subgraph(below), b.subgraph(next));
    let last = b.result_of(OperationType::While, &[below, next, x], int());
    let rows = b.result_of(OperationType::Add, &[last, last, none], int());
    let value = b.scalar_f32(0.5);
    let late = b.result_of(OperationType::Fill, &[rows, value], out());
    b.output(late);
    b.build().unwrap()
}

pub(super) fn models() -> [(&'static str, Model); 6] {
    [
        ("convolution", convolution()),
        ("bytes", bytes()),
        ("recurrent", recurrent()),
        ("folded", folded()),
        ("controlled", controlled()),
        ("unfolded", four_large_constants()),
    ]
}

/// A model of a few hundred bytes whose constants, once computed, are 4 times 64 MiB: an input plus each of
/// four FILLs, of which one value each is kept.
pub(super) fn four_large_constants() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[1]);
    let none = b.scalar_i32(0);
    let [begin, size] = [0, 1].map(|value| b.constant_i32(&[1], &[value]));
    let mut parts = Vec::new();
    for value in [1.0, 2.0, 3.0, 4.0] {
        let large = filled(&mut b, &[16 << 20], value);
        let sum = b.result_of(OperationType::Add, &[large, x, none], out());
        parts.push(b.result_of(OperationType::Slice, &[sum, begin, size], out()));
    }
    parts.push(none);
    let all = b.result_of(OperationType::Concatenation, &parts, out());
    b.output(all);
    b.build().unwrap()
}

/// Operations of which each takes a long time for a few constants.
pub(super) fn slow() -> Vec<(OperationType, Model)> {
    let with = |fill: &dyn Fn(&mut ModelBuilder) -> u32| {
        let mut b = ModelBuilder::new();
        let x = b.input(F32, &[1]);
        let none = b.scalar_i32(0);
        let slow = fill(&mut b);
        let sum = b.result_of(OperationType::Add, &[x, slow, none], out());
        b.output(sum);
        b.build().unwrap()
    };
    let convolution = |op, before: &'static [i32], after: &'static [i32], taps: [u32; 4]| {
        let model = with(&|b| {
            let image = filled(b, &[1, 256, 256, 8], 0.25);
            let (taps, bias) = (filled(b, &taps, 0.5), filled(b, &[8], 1.0));
            let mut operands = vec![image, taps, bias];
            operands.extend(before.iter().map(|value| b.scalar_i32(*value)));
            if op == OperationType::TransposeConv2d || op == OperationType::GroupedConv2d {
                operands.push(b.scalar_bool(false));
            }
            operands.extend(after.iter().map(|value| b.scalar_i32(*value)));
            b.result_of(op, &operands, out())
        });
        (op, model)
    };
    vec![
        // Padding, strides, activation.
        convolution(OperationType::Conv2d, &[1, 1, 1, 0], &[], [8, 65, 65, 8]),
        convolution(OperationType::DepthwiseConv2d, &[1, 1, 1, 1, 0], &[], [1, 129, 129, 8]),
        convolution(OperationType::GroupedConv2d, &[1, 1, 1, 2, 0], &[], [8, 65, 65, 4]),
        (
            OperationType::AveragePool2d,
            with(&|b| {
                let image = filled(b, &[1, 1024, 1024, 4], 0.25);
                let [same, one, side, none] = [1, 1, 512, 0].map(|value| b.scalar_i32(value));
                let operands = [image, same, one, one, side, side, none];
                b.result_of(OperationType::AveragePool2d, &operands, out())
            }),
        ),
        (
            OperationType::LocalResponseNormalization,
            with(&|b| {
                let image = filled(b, &[1, 1, 1, 1 << 20], 0.25);
                let radius = b.scalar_i32(1 << 20);
                let [bias, alpha, beta] = [1.0, 1.0, 0.5].map(|value| b.scalar_f32(value));
                let operands = [image, radius, bias, alpha, beta];
                b.result_of(OperationType::LocalResponseNormalization, &operands, out())
            }),
        ),
        (
            OperationType::ResizeBilinear,
            with(&|b| {
                let image = filled(b, &[1, 1, 1 << 20, 1], 0.25);
                let [width, height] = [1, 1 << 20].map(|value| b.scalar_i32(value));
                b.result_of(OperationType::ResizeBilinear, &[image, width, height], out())
            }),
        ),
    ]
}
