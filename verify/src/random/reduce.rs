//! What sums up elements along axes, or finds one.

use burst_hal::{OperandType, OperationType as Op, OutputSpec};

use super::Make;
use super::grower::Grower;
use super::shape::say_axis;
use super::value::{BOOL8, COMMON, FLOATS, I32, NUMBERS, Value};

pub(super) const RECIPES: &[(Op, Make)] = &[
    (Op::Mean, mean),
    (Op::ReduceAll, |g| reduce(g, Op::ReduceAll, &[BOOL8])),
    (Op::ReduceAny, |g| reduce(g, Op::ReduceAny, &[BOOL8])),
    (Op::ReduceMax, |g| reduce(g, Op::ReduceMax, COMMON)),
    (Op::ReduceMin, |g| reduce(g, Op::ReduceMin, COMMON)),
    (Op::ReduceSum, |g| reduce(g, Op::ReduceSum, FLOATS)),
    (Op::ReduceProd, |g| reduce(g, Op::ReduceProd, FLOATS)),
    (Op::Argmax, |g| arg(g, Op::Argmax)),
    (Op::Argmin, |g| arg(g, Op::Argmin)),
];

/// Some axes of a value: the list, whether they stay, and the shape that is left.
fn axes(g: &mut Grower<'_>, x: &Value) -> (u32, bool, Vec<u32>) {
    let keep = g.rng.chance(0.5);
    let mut listed: Vec<i32> = Vec::new();
    let mut dims = Vec::new();
    let rank = i32::try_from(x.rank()).unwrap_or(0);
    for (axis, size) in (0..rank).zip(&x.dims) {
        if g.rng.chance(0.4) {
            listed.push(if g.rng.chance(0.5) { axis } else { axis - rank });
            dims.extend(keep.then_some(1));
        } else {
            dims.push(*size);
        }
    }
    if listed.is_empty() {
        listed.push(-1);
        match dims.last_mut() {
            Some(last) if keep => *last = 1,
            _ => drop(dims.pop()),
        }
    }
    if dims.is_empty() {
        dims.push(1);
    }
    let count = u32::try_from(listed.len()).unwrap_or(0);
    (g.list(&[count], &listed), keep, dims)
}

fn mean(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 1..=4);
    let (list, keep, dims) = axes(g, &x);
    let keep = g.b.scalar_i32(i32::from(keep));
    g.apply(Op::Mean, &[x.operand, list, keep], x.with(&dims), x.bound);
}

fn reduce(g: &mut Grower<'_>, op: Op, types: &[OperandType]) {
    let x = g.tensor(types, 1..=4);
    // The product of many numbers stays small where none is larger than 1.
    let x = if op == Op::ReduceProd { g.tame_to(x, 1.0) } else { g.tame(x) };
    let (list, keep, dims) = axes(g, &x);
    let keep = g.b.scalar_bool(keep);
    let elements = f32::from(u16::try_from(x.elements()).unwrap_or(u16::MAX));
    let bound = if op == Op::ReduceSum { x.bound * elements } else { x.bound.max(1.0) };
    // In 16 bits a sum may not go beyond 65504.
    let x = if bound > 3e4 { g.tame_to(x, 1.0) } else { x };
    g.apply(op, &[x.operand, list, keep], x.with(&dims), bound.min(3e4));
}

fn arg(g: &mut Grower<'_>, op: Op) {
    let x = g.tensor(NUMBERS, 2..=4);
    let axis = g.rng.below(x.rank());
    let mut dims = x.dims.clone();
    dims.remove(axis);
    let said = say_axis(g, axis, x.rank());
    g.apply(op, &[x.operand, said], OutputSpec::new(I32, &dims), 20.0);
}
