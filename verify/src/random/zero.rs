//! Values without elements, and what operations make of them.

use burst_hal::{OperationType as Op, OutputSpec};

use super::detection::kept_boxes;
use super::grower::{Grower, Within};
use super::shape::int;
use super::value::{COMMON, FLOATS, Value, lowest};

/// Better than any score.
const UNREACHABLE: f32 = 1000.0;

/// No box is good enough; what is cut out of pictures for them has no elements, and goes through a few operations.
pub(super) fn chain(g: &mut Grower<'_>) {
    let pictures = g.pictures(COMMON);
    let pictures = g.tame(pictures);
    let ty = pictures.ty;
    // Infinity would be good enough.
    let style = g.style;
    g.style.has_specials = false;
    let kept = kept_boxes(g, ty, UNREACHABLE);
    g.style = style;
    for value in &kept {
        g.change(value, |value| {
            value.dims[0] = 0;
            value.is_bound = false;
        });
    }
    let ratios = [1.0, 1.0].map(|ratio| g.real(ty, ratio));
    let [h, w, c] = [g.rng.size(1, 4), g.rng.size(1, 4), pictures.dims[3]];
    let sizes = [int(h), int(w)].map(|size| g.b.scalar_i32(size));
    let samples = [0, 2].map(|count| g.b.scalar_i32(count));
    let flag = g.b.scalar_bool(false);
    let inputs = [
        pictures.operand,
        kept[1].operand,
        kept[3].operand,
        sizes[0],
        sizes[1],
        ratios[0],
        ratios[1],
        samples[0],
        samples[1],
        flag,
    ];
    let bound = pictures.bound;
    let mut x = g.apply(Op::RoiAlign, &inputs, pictures.with(&[0, h, w, c]), bound);
    for _ in 0..1 + g.rng.below(4) {
        x = step(g, &x);
    }
}

/// One operation on a value of four dimensions, the first of which is 0.
fn step(g: &mut Grower<'_>, x: &Value) -> Value {
    let [_, h, w, c] = [0, 1, 2, 3].map(|axis| x.dims[axis]);
    match g.rng.below(12) {
        0 => g.apply(Op::Relu, &[x.operand], x.spec(), x.bound),
        1 => g.tanh(x),
        2 => g.logistic(x),
        3 => {
            let other = OutputSpec::new(x.ty, &[c]).quantized(x.scale, x.zero_point);
            let other = g.random_constant(other, Within::USUAL);
            let activation = g.activation(x.ty);
            let out = g.spec_for(x.ty, &x.dims, x.bound + other.bound);
            g.apply(Op::Add, &[x.operand, other.operand, activation], out, x.bound + 2.0)
        }
        4 => {
            let numbers = [1, 1, 1, 1, 1, 0].map(|number| g.b.scalar_i32(number));
            let inputs: Vec<u32> = std::iter::once(x.operand).chain(numbers).collect();
            let op = g.rng.one_of(&[Op::AveragePool2d, Op::MaxPool2d]);
            g.apply(op, &inputs, x.spec(), x.bound)
        }
        5 => {
            let numbers = [w + 1, h + 2].map(|size| g.b.scalar_i32(int(size)));
            let op = g.rng.one_of(&[Op::ResizeBilinear, Op::ResizeNearestNeighbor]);
            let flag = g.b.scalar_bool(false);
            let out = x.with(&[0, h + 2, w + 1, c]);
            g.apply(op, &[x.operand, numbers[0], numbers[1], flag], out, x.bound)
        }
        6 => {
            let order = g.list(&[4], &[0, 3, 1, 2]);
            g.apply(Op::Transpose, &[x.operand, order], x.with(&[0, c, h, w]), x.bound)
        }
        7 => {
            let axis = g.b.scalar_i32(3);
            let inputs = [x.operand, x.operand, axis];
            g.apply(Op::Concatenation, &inputs, x.with(&[0, h, w, 2 * c]), x.bound)
        }
        8 => {
            let beta = g.real(x.ty, 1.0);
            let mut out = OutputSpec::new(x.ty, &x.dims);
            if x.is_quantized() {
                out = out.quantized(1.0 / 256.0, lowest(x.ty));
            }
            g.apply(Op::Softmax, &[x.operand, beta], out, 1.0)
        }
        9 if x.is_quantized() => {
            let to = g.rng.one_of(FLOATS);
            g.apply(Op::Dequantize, &[x.operand], OutputSpec::new(to, &x.dims), x.bound)
        }
        10 if !x.is_quantized() => {
            let to = super::value::TQ8;
            let out = g.spec_for(to, &x.dims, x.bound);
            g.apply(Op::Quantize, &[x.operand], out, x.bound)
        }
        _ => convolution(g, x),
    }
}

fn convolution(g: &mut Grower<'_>, x: &Value) -> Value {
    let [_, h, w, c] = [0, 1, 2, 3].map(|axis| x.dims[axis]);
    let units = g.rng.size(1, 4);
    let mut filter = g.spec(x.ty, &[units, 1, 1, c]);
    let mut bias = OutputSpec::new(x.ty, &[units]);
    if x.is_quantized() {
        filter.scale = 0.01;
        bias = OutputSpec::new(super::value::I32, &[units]).quantized(x.scale * filter.scale, 0);
    }
    let filter = g.random_constant(filter, Within(-0.5, 0.5));
    let bias = g.random_constant(bias, Within::USUAL);
    let numbers = [1, 1, 1, 0].map(|number| g.b.scalar_i32(number));
    let mut inputs = vec![x.operand, filter.operand, bias.operand];
    inputs.extend(numbers);
    let out = g.spec_for(x.ty, &[0, h, w, units], 2.0);
    g.apply(Op::Conv2d, &inputs, out, 20.0)
}
