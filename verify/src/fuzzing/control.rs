//! IF and WHILE: small graphs that fit together, more often than not.

use burst_hal::{ModelBuilder, OperandType, OperationType, OutputSpec};

use super::bytes::Bytes;

/// Adds one of the two on a value of `[2]` floats; gives its result.
pub(super) fn operation(
    builder: &mut ModelBuilder,
    bytes: &mut Bytes<'_>,
    ty: OperationType,
) -> (u32, OutputSpec) {
    let spec = OutputSpec::f32(&[2]);
    let result = match ty {
        OperationType::While => while_loop(builder, bytes),
        _ => branches(builder, bytes),
    };
    (result, spec)
}

fn branches(builder: &mut ModelBuilder, bytes: &mut Bytes<'_>) -> u32 {
    let (then, otherwise) = (branch(builder, bytes), branch(builder, bytes));
    let (then, otherwise) = (builder.subgraph(then), builder.subgraph(otherwise));
    let condition = match bytes.below(3) {
        0 => builder.input(OperandType::TensorBool8, &[1]),
        value => builder.constant_bool(&[1], &[value == 1]),
    };
    let x = builder.input_of(OutputSpec::f32(&[2]));
    let outer = bytes.pick(SHAPES_OUTSIDE);
    let inputs = [condition, then, otherwise, x];
    builder.result_of(OperationType::If, &inputs, OutputSpec::f32(outer))
}

/// What the model says of the result, whose shape the graphs inside know.
const SHAPES_OUTSIDE: [&[u32]; 6] = [&[2], &[2], &[2], &[0], &[], &[3]];

fn branch(builder: &mut ModelBuilder, bytes: &mut Bytes<'_>) -> u32 {
    use OperationType::{Abs, Exp, Floor, Logistic, Neg, Relu, Softmax, Sqrt};
    let ty = bytes.pick([Floor, Relu, Abs, Neg, Exp, Logistic, Sqrt, Softmax]);
    let size = if bytes.rarely(12) { 3 } else { 2 };
    builder.referenced(|graph| {
        let x = graph.input_of(OutputSpec::f32(&[2]));
        let y = graph.result_of(ty, &[x], OutputSpec::f32(&[size]));
        graph.output(y);
    })
}

/// While x is less than a bound, x grows; some bounds are never reached.
fn while_loop(builder: &mut ModelBuilder, bytes: &mut Bytes<'_>) -> u32 {
    let bound = bytes.pick([3.0, 0.0, 40.0, f32::INFINITY, f32::NAN]);
    let step = bytes.pick([1.0, 0.5, 0.0, -1.0]);
    let spec = || OutputSpec::f32(&[1]);
    let condition = builder.referenced(|graph| {
        let x = graph.input_of(spec());
        let bound = graph.constant_f32(&[1], &[bound]);
        let less = OutputSpec::new(OperandType::TensorBool8, &[1]);
        let less = graph.result_of(OperationType::Less, &[x, bound], less);
        graph.output(less);
    });
    let body = builder.referenced(|graph| {
        let x = graph.input_of(spec());
        let step = graph.constant_f32(&[1], &[step]);
        let none = graph.scalar_i32(0);
        let y = graph.result_of(OperationType::Add, &[x, step, none], spec());
        graph.output(y);
    });
    let (condition, body) = (builder.subgraph(condition), builder.subgraph(body));
    let x = builder.input_of(spec());
    let wide = if bytes.rarely(8) { OutputSpec::f32(&[0]) } else { spec() };
    let y = builder.result_of(OperationType::While, &[condition, body, x], wide);
    // The result is as the others are: two numbers.
    let axis = builder.scalar_i32(0);
    builder.result_of(OperationType::Concatenation, &[y, y, axis], OutputSpec::f32(&[2]))
}
