//! Operations on each element.

use burst_hal::{OperandType, OperationType as Op, OutputSpec};

use super::Make;
use super::grower::{Grower, Within};
use super::value::{
    BOOL8, COMMON, F16, F32, FLOATS, I32, NUMBERS, Q8S, Q16, Q16S, TQ8, TQ8S, Value,
};

pub(super) const RECIPES: &[(Op, Make)] = &[
    (Op::Add, |g| sum(g, Op::Add)),
    (Op::Sub, |g| sum(g, Op::Sub)),
    (Op::Mul, mul),
    (Op::Div, div),
    (Op::Maximum, |g| extremum(g, Op::Maximum)),
    (Op::Minimum, |g| extremum(g, Op::Minimum)),
    (Op::Pow, pow),
    (Op::Prelu, prelu),
    (Op::Equal, |g| compare(g, Op::Equal)),
    (Op::NotEqual, |g| compare(g, Op::NotEqual)),
    (Op::Less, |g| compare(g, Op::Less)),
    (Op::LessEqual, |g| compare(g, Op::LessEqual)),
    (Op::Greater, |g| compare(g, Op::Greater)),
    (Op::GreaterEqual, |g| compare(g, Op::GreaterEqual)),
    (Op::LogicalAnd, |g| logic(g, Op::LogicalAnd)),
    (Op::LogicalOr, |g| logic(g, Op::LogicalOr)),
    (Op::LogicalNot, logical_not),
    (Op::Select, select),
    (Op::Abs, |g| same(g, Op::Abs, &[F32, F16, I32])),
    (Op::Neg, |g| same(g, Op::Neg, &[F32, F16, I32])),
    (Op::Floor, |g| same(g, Op::Floor, FLOATS)),
    (Op::Relu, |g| same(g, Op::Relu, COMMON)),
    (Op::Relu1, |g| same(g, Op::Relu1, COMMON)),
    (Op::Relu6, |g| same(g, Op::Relu6, COMMON)),
    (Op::Sin, |g| same(g, Op::Sin, FLOATS)),
    (Op::Exp, exp),
    (Op::Log, |g| of_positive(g, Op::Log)),
    (Op::Sqrt, |g| of_positive(g, Op::Sqrt)),
    (Op::Rsqrt, |g| of_positive(g, Op::Rsqrt)),
    (Op::Logistic, |g| {
        let x = any(g, COMMON);
        g.logistic(&x);
    }),
    (Op::Tanh, |g| {
        let x = any(g, COMMON);
        g.tanh(&x);
    }),
    (Op::Elu, elu),
    (Op::HardSwish, hard_swish),
    (Op::Dequantize, dequantize),
    (Op::Quantize, quantize),
    (Op::Cast, cast),
];

fn any(g: &mut Grower<'_>, types: &[OperandType]) -> Value {
    g.tensor(types, 1..=4)
}

/// A value that broadcasts to the shape of `x`, of the same type.
fn partner(g: &mut Grower<'_>, x: &Value, within: Within) -> Value {
    if within == Within::USUAL
        && g.rng.chance(0.5)
        && let Some(other) = g.pick(|other| other.ty == x.ty && other.dims == x.dims)
    {
        return other;
    }
    let mut dims = x.dims.clone();
    match g.rng.below(4) {
        0 => dims = vec![1],
        1 => drop(dims.drain(..dims.len() - 1)),
        2 => {
            let axis = g.rng.below(dims.len());
            dims[axis] = 1;
        }
        _ => {}
    }
    let spec = g.spec(x.ty, &dims);
    g.leaf_of(spec, within)
}

fn sum(g: &mut Grower<'_>, op: Op) {
    let x = any(g, NUMBERS);
    let (x, y) = pair(g, x);
    let bound = x.bound + y.bound;
    let out = g.spec_for(x.ty, &x.dims, bound);
    let activation = g.activation(x.ty);
    let inputs = if g.rng.chance(0.5) { [x.operand, y.operand] } else { [y.operand, x.operand] };
    g.apply(op, &[inputs[0], inputs[1], activation], out, bound.max(6.0));
}

/// Two small values, of which the second broadcasts to the first.
fn pair(g: &mut Grower<'_>, x: Value) -> (Value, Value) {
    let x = g.tame(x);
    let y = partner(g, &x, Within::USUAL);
    (x, g.tame(y))
}

fn mul(g: &mut Grower<'_>) {
    let x = any(g, NUMBERS);
    let (x, y) = pair(g, x);
    let bound = x.bound * y.bound;
    let mut out = g.spec_for(x.ty, &x.dims, bound);
    if x.is_quantized() {
        // The contract asks for more than the product of the inputs' scales.
        out.scale = out.scale.max(x.scale * y.scale * 1.5);
    }
    let activation = g.activation(x.ty);
    g.apply(Op::Mul, &[x.operand, y.operand, activation], out, bound.max(6.0));
}

fn div(g: &mut Grower<'_>) {
    let x = any(g, &[F32, F16, I32]);
    let x = g.tame(x);
    let y = match x.ty {
        I32 => partner(g, &x, Within::USUAL),
        _ => partner(g, &x, Within(0.5, 4.0)),
    };
    let activation = g.activation(x.ty);
    g.apply(Op::Div, &[x.operand, y.operand, activation], x.spec(), 2.0 * x.bound.max(3.0));
}

fn extremum(g: &mut Grower<'_>, op: Op) {
    let x = any(g, NUMBERS);
    let (x, y) = pair(g, x);
    let bound = x.bound.max(y.bound);
    let out = g.spec_for(x.ty, &x.dims, bound);
    g.apply(op, &[x.operand, y.operand], out, bound);
}

fn pow(g: &mut Grower<'_>) {
    let x = any(g, FLOATS);
    let x = g.positive(&x);
    let y = partner(g, &x, Within(-2.0, 2.01));
    g.apply(Op::Pow, &[x.operand, y.operand], x.spec(), 5.0);
}

fn prelu(g: &mut Grower<'_>) {
    let x = any(g, COMMON);
    let (x, alpha) = pair(g, x);
    let bound = x.bound * alpha.bound.max(1.0);
    let mut out = g.spec_for(x.ty, &x.dims, bound);
    if x.is_quantized() {
        out.scale = out.scale.max(x.scale * alpha.scale * 1.5);
    }
    g.apply(Op::Prelu, &[x.operand, alpha.operand], out, bound);
}

fn compare(g: &mut Grower<'_>, op: Op) {
    let x = any(g, &[F32, F16, TQ8, TQ8S, I32, BOOL8]);
    let y = partner(g, &x, Within::USUAL);
    g.apply(op, &[x.operand, y.operand], OutputSpec::new(BOOL8, &x.dims), 1.0);
}

fn logic(g: &mut Grower<'_>, op: Op) {
    let x = any(g, &[BOOL8]);
    let y = partner(g, &x, Within::USUAL);
    g.apply(op, &[x.operand, y.operand], x.spec(), 1.0);
}

fn logical_not(g: &mut Grower<'_>) {
    let x = any(g, &[BOOL8]);
    g.apply(Op::LogicalNot, &[x.operand], x.spec(), 1.0);
}

fn select(g: &mut Grower<'_>) {
    let x = any(g, NUMBERS);
    let y = g.another(&x);
    let condition = match g.pick(|value| value.ty == BOOL8 && value.dims == x.dims) {
        Some(condition) => condition,
        None => g.leaf(BOOL8, &x.dims),
    };
    let bound = x.bound.max(y.bound);
    g.apply(Op::Select, &[condition.operand, x.operand, y.operand], x.spec(), bound);
}

fn same(g: &mut Grower<'_>, op: Op, types: &[OperandType]) {
    let x = any(g, types);
    g.apply(op, &[x.operand], x.spec(), x.bound.max(1.0));
}

fn exp(g: &mut Grower<'_>) {
    let x = any(g, FLOATS);
    let x = g.tame_to(x, 3.0);
    g.apply(Op::Exp, &[x.operand], x.spec(), 21.0);
}

fn of_positive(g: &mut Grower<'_>, op: Op) {
    let x = any(g, FLOATS);
    let x = g.positive(&x);
    g.apply(op, &[x.operand], x.spec(), 2.0);
}

fn elu(g: &mut Grower<'_>) {
    let x = any(g, FLOATS);
    let alpha = g.rng.real(0.1, 1.5);
    let alpha = g.real(x.ty, alpha);
    g.apply(Op::Elu, &[x.operand, alpha], x.spec(), x.bound.max(1.5));
}

fn hard_swish(g: &mut Grower<'_>) {
    let x = any(g, COMMON);
    let x = g.tame(x);
    let out = g.spec_for(x.ty, &x.dims, x.bound);
    g.apply(Op::HardSwish, &[x.operand], out, x.bound.max(1.0));
}

fn dequantize(g: &mut Grower<'_>) {
    let to = g.rng.one_of(FLOATS);
    let x = match g.rng.below(6) {
        0 => {
            let dims = g.dims(1..=4);
            let spec = OutputSpec::new(OperandType::TensorQuant8Symm, &dims).quantized(0.05, 0);
            g.leaf_of(spec, Within::USUAL)
        }
        1 => {
            let dims = g.dims(2..=4);
            let axis = g.rng.below(dims.len());
            let scales: Vec<f32> = (0..dims[axis]).map(|_| g.rng.real(0.01, 0.1)).collect();
            let axis = u32::try_from(axis).unwrap_or(0);
            let ty = OperandType::TensorQuant8SymmPerChannel;
            g.leaf_of(OutputSpec::new(ty, &dims).per_channel(&scales, axis), Within::USUAL)
        }
        _ => any(g, &[TQ8, TQ8S]),
    };
    let x_bound = if x.scale > 0.0 { x.bound } else { 13.0 };
    let x = if x.ty == TQ8 || x.ty == TQ8S { g.tame(x) } else { x };
    let bound = x_bound.min(x.bound.max(13.0));
    g.apply(Op::Dequantize, &[x.operand], OutputSpec::new(to, &x.dims), bound);
}

fn quantize(g: &mut Grower<'_>) {
    let x = any(g, FLOATS);
    let x = g.tame(x);
    let to = g.rng.one_of(&[TQ8, TQ8S]);
    let out = g.spec_for(to, &x.dims, x.bound);
    g.apply(Op::Quantize, &[x.operand], out, x.bound);
}

fn cast(g: &mut Grower<'_>) {
    // Types that are cast to themselves alone.
    let alone = [BOOL8, TQ8S, Q16, Q16S, Q8S];
    if g.rng.chance(0.25) {
        let ty = g.rng.one_of(&alone);
        let x = g.tensor(&[ty], 1..=4);
        g.apply(Op::Cast, &[x.operand], x.spec(), x.bound);
        return;
    }
    let x = any(g, &[F32, F16, I32, TQ8]);
    // Whole numbers may be as large as they like, and 16-bit floats may not.
    let x = if x.ty == I32 { g.leaf(I32, &x.dims) } else { g.tame(x) };
    let to = g.rng.one_of(&[F32, F16, I32, TQ8]);
    let out = g.spec(to, &x.dims);
    g.apply(Op::Cast, &[x.operand], out, x.bound.max(255.0));
}
