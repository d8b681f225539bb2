//! IF and WHILE, with small graphs of their own.

use burst_hal::{OperationType as Op, OutputSpec};

use super::Make;
use super::grower::{Grower, Within};
use super::value::{BOOL8, I32, NUMBERS, Value};

pub(super) const RECIPES: &[(Op, Make)] = &[(Op::If, choose), (Op::While, repeat)];

/// Graphs that may be around one.
const MAX_DEPTH: usize = 2;
/// Rounds that a loop makes at most, where its counter begins at 0.
const MAX_ROUNDS: i32 = 4;

/// How often a result of a graph is made of constants alone.
const FOLDED: f32 = 0.15;

/// A graph's number, and how far from 0 its outputs are at most.
struct Made {
    number: u32,
    bounds: Vec<f32>,
}

/// A graph that takes these values; `fill` makes its outputs.
fn graph(
    g: &mut Grower<'_>,
    takes: &[Value],
    fill: impl FnOnce(&mut Grower<'_>, &[Value]) -> Vec<Value>,
) -> Made {
    let (rng, at) = (g.rng.fork(), (g.depth + 1, g.style));
    let mut bounds = Vec::new();
    let number = g.b.referenced(|b| {
        let mut inner = Grower::inner(b, rng, at);
        let parameters: Vec<Value> = takes.iter().map(|value| inner.parameter(value)).collect();
        let outputs = fill(&mut inner, &parameters);
        for output in &outputs {
            bounds.push(output.bound);
            inner.b.output(output.operand);
        }
    });
    Made { number, bounds }
}

/// Some values that a graph is given, the first of which its results are like.
fn handed_over(g: &mut Grower<'_>) -> Vec<Value> {
    (0..1 + g.rng.below(3)).map(|_| g.tensor(NUMBERS, 1..=4)).collect()
}

fn condition(g: &mut Grower<'_>) -> Value {
    match g.pick(|value| value.ty == BOOL8 && value.dims == [1]) {
        Some(condition) if g.rng.chance(0.7) => condition,
        _ => g.leaf(BOOL8, &[1]),
    }
}

fn choose(g: &mut Grower<'_>) {
    if g.depth == MAX_DEPTH {
        let x = g.tensor(NUMBERS, 1..=4);
        keep(g, &x);
        return;
    }
    let condition = condition(g);
    let mut values = handed_over(g);
    let results = 1 + g.rng.below(values.len().min(2));
    // A graph inside may ask it once more.
    values.push(condition.clone());
    let branches = [(); 2].map(|()| {
        graph(g, &values, |inner, parameters| {
            let count = inner.rng.below(4);
            super::grow(inner, count);
            parameters[..results].iter().map(|like| result(inner, like)).collect()
        })
    });
    let specs = (0..results).map(|position| {
        let bound = branches[0].bounds[position].max(branches[1].bounds[position]);
        (values[position].spec(), bound)
    });
    let specs: Vec<(OutputSpec, f32)> = specs.collect();
    let graphs = branches.map(|branch| g.b.subgraph(branch.number));
    let mut inputs = vec![condition.operand, graphs[0], graphs[1]];
    inputs.extend(values.iter().map(|value| value.operand));
    g.apply_many(Op::If, &inputs, &specs);
}

fn repeat(g: &mut Grower<'_>) {
    if g.depth == MAX_DEPTH {
        let x = g.tensor(NUMBERS, 1..=4);
        keep(g, &x);
        return;
    }
    let begin = match g.rng.chance(0.5) {
        true => g.constant(OutputSpec::new(I32, &[1]), &[0; 4], Within::USUAL),
        false => {
            let begin = g.rng.int(-20, 20).to_le_bytes();
            g.constant(OutputSpec::new(I32, &[1]), &begin, Within::USUAL)
        }
    };
    let mut values = vec![begin];
    values.extend(handed_over(g));
    // The last ones may stay as they are.
    let states = 2 + g.rng.below(values.len() - 1);
    // One more is like the first that changes, so that rounds can compute with it.
    if g.rng.chance(0.5) {
        let like = values[1].clone();
        let kept = g.pick(|value| value.is_alike(&like));
        values.push(kept.unwrap_or_else(|| g.random_constant(like.spec(), Within::USUAL)));
    }
    // So may what says how many rounds there are.
    let is_limit_given = g.rng.chance(0.4);
    if is_limit_given {
        let rounds = g.rng.int(1, MAX_ROUNDS).to_le_bytes();
        values.push(g.constant(OutputSpec::new(I32, &[1]), &rounds, Within::USUAL));
    }
    let condition = graph(g, &values, |inner, parameters| {
        let rounds = inner.rng.int(1, MAX_ROUNDS);
        let limit = match parameters.last().filter(|_| is_limit_given) {
            Some(limit) => limit.operand,
            None => inner.list(&[1], &[rounds]),
        };
        vec![inner.apply(Op::Less, &[parameters[0].operand, limit], truth(), 1.0)]
    });
    let body = graph(g, &values, |inner, parameters| {
        let one = inner.list(&[1], &[1]);
        let none = inner.b.scalar_i32(0);
        let next = [parameters[0].operand, one, none];
        let next = inner.apply(Op::Add, &next, parameters[0].spec(), 20.0);
        if is_limit_given && inner.rng.chance(0.5) {
            ask_again(inner, condition.number, parameters);
        }
        let count = inner.rng.below(3);
        super::grow(inner, count);
        let rest = parameters[1..states].iter().map(|like| {
            let kept = parameters[states..].iter().find(|value| value.is_alike(like));
            let next = match kept {
                Some(kept) if inner.rng.chance(0.5) => keep(inner, kept),
                _ => result(inner, like),
            };
            // Round after round it must not grow.
            if next.is_quantized() || next.ty == I32 { next } else { inner.tanh(&next) }
        });
        std::iter::once(next).chain(rest.collect::<Vec<Value>>()).collect()
    });
    let results = 1 + g.rng.below(states);
    let specs: Vec<(OutputSpec, f32)> = (0..results)
        .map(|position| {
            let bound = body.bounds[position].max(values[position].bound);
            (values[position].spec(), bound)
        })
        .collect();
    let mut inputs = vec![g.b.subgraph(condition.number), g.b.subgraph(body.number)];
    inputs.extend(values.iter().map(|value| value.operand));
    g.apply_many(Op::While, &inputs, &specs);
}

/// Has the body of a loop run the graph of its condition, with another limit.
fn ask_again(g: &mut Grower<'_>, condition: u32, parameters: &[Value]) {
    let Some((limit, others)) = parameters.split_last() else { return };
    let (one, none) = (g.list(&[1], &[1]), g.b.scalar_i32(0));
    let other = g.apply(Op::Sub, &[limit.operand, one, none], limit.spec(), 20.0);
    let choice = g.random_constant(truth(), Within::USUAL);
    let graphs = [(); 2].map(|()| g.b.subgraph(condition));
    let mut inputs = vec![choice.operand, graphs[0], graphs[1]];
    inputs.extend(others.iter().map(|value| value.operand));
    inputs.push(other.operand);
    g.apply(Op::If, &inputs, truth(), 1.0);
}

fn truth() -> OutputSpec {
    OutputSpec::new(BOOL8, &[1])
}

/// Something that was computed and is like this value.
fn result(g: &mut Grower<'_>, like: &Value) -> Value {
    // What is made of constants alone is folded, in these graphs too.
    let begin = match g.rng.chance(FOLDED) {
        true => g.random_constant(like.spec(), Within::USUAL),
        false => g.pick(|value| value.is_alike(like)).unwrap_or_else(|| like.clone()),
    };
    let mut value = keep(g, &begin);
    for _ in 0..g.rng.below(3) {
        value = keep(g, &value);
    }
    value
}

/// An operation whose result is like its input.
fn keep(g: &mut Grower<'_>, x: &Value) -> Value {
    if x.ty == BOOL8 {
        return g.apply(Op::LogicalNot, &[x.operand], x.spec(), 1.0);
    }
    let alone: &[Op] = match x.ty {
        I32 => &[Op::Abs, Op::Neg],
        _ if x.is_quantized() => &[Op::Relu, Op::Relu1, Op::Relu6],
        _ => &[Op::Relu, Op::Relu6, Op::Floor, Op::Abs, Op::Neg, Op::Sin, Op::Tanh],
    };
    if g.rng.chance(0.5) {
        let op = g.rng.one_of(alone);
        return g.apply(op, &[x.operand], x.spec(), x.bound.max(1.0));
    }
    let other = g.random_constant(x.spec(), Within::USUAL);
    match g.rng.below(3) {
        0 if x.bound < 64.0 || x.is_quantized() || x.ty == I32 => {
            let none = g.b.scalar_i32(0);
            let inputs = [x.operand, other.operand, none];
            g.apply(Op::Add, &inputs, x.spec(), x.bound + other.bound)
        }
        1 => {
            let inputs = [x.operand, other.operand];
            g.apply(Op::Maximum, &inputs, x.spec(), x.bound.max(other.bound))
        }
        _ => {
            let inputs = [x.operand, other.operand];
            g.apply(Op::Minimum, &inputs, x.spec(), x.bound.max(other.bound))
        }
    }
}
