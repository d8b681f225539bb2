//! What slides over pictures, normalizes or multiplies matrices.

use burst_hal::{OperandType, OperationType as Op, OutputSpec};

use super::Make;
use super::grower::{Grower, Within};
use super::shape::{int, say_axis};
use super::value::{COMMON, FLOATS, I32, Value, lowest};

pub(super) const RECIPES: &[(Op, Make)] = &[
    (Op::Conv2d, |g| convolution(g, Kind::Dense)),
    (Op::DepthwiseConv2d, |g| convolution(g, Kind::Depthwise)),
    (Op::GroupedConv2d, |g| convolution(g, Kind::Grouped)),
    (Op::TransposeConv2d, transpose_conv_2d),
    (Op::FullyConnected, fully_connected),
    (Op::AveragePool2d, |g| pool(g, Op::AveragePool2d, COMMON)),
    (Op::MaxPool2d, |g| pool(g, Op::MaxPool2d, COMMON)),
    (Op::L2Pool2d, |g| pool(g, Op::L2Pool2d, FLOATS)),
    (Op::ResizeBilinear, |g| resize(g, Op::ResizeBilinear)),
    (Op::ResizeNearestNeighbor, |g| resize(g, Op::ResizeNearestNeighbor)),
    (Op::L2Normalization, l2_normalization),
    (Op::LocalResponseNormalization, local_response_normalization),
    (Op::InstanceNormalization, instance_normalization),
    (Op::Softmax, softmax),
    (Op::LogSoftmax, log_softmax),
];

/// Which channels of a picture an output channel sees.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Dense,
    Depthwise,
    Grouped,
}

/// Pictures with channels last or first.
struct Pictures {
    value: Value,
    is_nchw: bool,
    /// Batches, rows, columns, channels.
    sizes: [u32; 4],
}

impl Pictures {
    fn new(g: &mut Grower<'_>, types: &[OperandType]) -> Self {
        let value = g.pictures(types);
        let value = g.tame(value);
        let is_nchw = g.rng.chance(0.25);
        let [a, b, c, d] = [0, 1, 2, 3].map(|axis| value.dims[axis]);
        let sizes = if is_nchw { [a, c, d, b] } else { [a, b, c, d] };
        Pictures { value, is_nchw, sizes }
    }

    fn laid_out(&self, [n, h, w, c]: [u32; 4]) -> [u32; 4] {
        if self.is_nchw { [n, c, h, w] } else { [n, h, w, c] }
    }
}

/// How a window moves along rows and columns: what the operation is told, and how many steps it makes.
struct Path {
    /// Four sides, or a scheme.
    padding: Vec<i32>,
    strides: [u32; 2],
    dilations: [u32; 2],
    /// Rows, columns.
    steps: [u32; 2],
}

/// A window of these rows and columns over as many of a picture. Every window touches the picture.
fn path(g: &mut Grower<'_>, [h, w]: [u32; 2], taps: [u32; 2], dilates: bool) -> Path {
    let strides = [g.rng.size(1, 3), g.rng.size(1, 3)];
    let wide = |size: u32, taps: u32, dilation: u32| dilation * (taps - 1) < size;
    let wanted = if dilates { [g.rng.size(1, 2), g.rng.size(1, 2)] } else { [1, 1] };
    let dilation = |size, taps, wanted| if wide(size, taps, wanted) { wanted } else { 1 };
    let dilations = [dilation(h, taps[0], wanted[0]), dilation(w, taps[1], wanted[1])];
    let spans = [dilations[0] * (taps[0] - 1) + 1, dilations[1] * (taps[1] - 1) + 1];
    let sizes = [h, w];
    let (padding, steps) = match g.rng.below(3) {
        0 => (vec![1], [0, 1].map(|axis| sizes[axis].div_ceil(strides[axis]))),
        1 => (vec![2], [0, 1].map(|axis| (sizes[axis] - spans[axis]) / strides[axis] + 1)),
        _ => {
            // Left, right, top, bottom; less than the window is long.
            let side = |g: &mut Grower<'_>, axis: usize| g.rng.size(0, (spans[axis] - 1).min(1));
            let sides = [side(g, 1), side(g, 1), side(g, 0), side(g, 0)];
            let around = [sides[2] + sides[3], sides[0] + sides[1]];
            let steps =
                [0, 1].map(|axis| (sizes[axis] + around[axis] - spans[axis]) / strides[axis] + 1);
            (sides.map(int).to_vec(), steps)
        }
    };
    Path { padding, strides, dilations, steps }
}

impl Path {
    /// Padding and strides, columns first, as operands.
    fn operands(&self, g: &mut Grower<'_>) -> Vec<u32> {
        let strides = [int(self.strides[1]), int(self.strides[0])];
        self.padding.iter().chain(&strides).map(|value| g.b.scalar_i32(*value)).collect()
    }
}

/// A size of a window that fits into a picture.
fn taps(g: &mut Grower<'_>, [h, w]: [u32; 2]) -> [u32; 2] {
    let most = if g.rng.chance(0.2) && !g.style.is_heavy { 5 } else { 3 };
    [g.rng.size(1, h.min(most)), g.rng.size(1, w.min(most))]
}

/// A filter and a bias for these pictures; `axis` is that of the output channels.
fn weights(g: &mut Grower<'_>, x: &Value, dims: &[u32], axis: usize) -> (Value, Value) {
    let outputs = dims[axis];
    let per_channel = x.is_quantized() && g.rng.chance(0.5);
    let filter = if per_channel {
        let scales: Vec<f32> = (0..outputs).map(|_| g.rng.real(0.005, 0.02)).collect();
        let axis = u32::try_from(axis).unwrap_or(0);
        let spec = OutputSpec::new(OperandType::TensorQuant8SymmPerChannel, dims);
        g.random_constant(spec.per_channel(&scales, axis), Within::USUAL)
    } else {
        let mut spec = g.spec(x.ty, dims);
        spec.scale = if x.is_quantized() { 0.01 } else { 0.0 };
        filter(g, spec)
    };
    let bias = if x.is_quantized() {
        let scale = if per_channel { 0.0 } else { x.scale * filter.scale };
        g.random_constant(OutputSpec::new(I32, &[outputs]).quantized(scale, 0), Within::USUAL)
    } else {
        g.random_constant(OutputSpec::new(x.ty, &[outputs]), Within::USUAL)
    };
    (filter, bias)
}

/// Weights with one scale: a constant as a rule, or what comes in. Something else may read them before, as they are.
fn filter(g: &mut Grower<'_>, spec: OutputSpec) -> Value {
    const WEIGHTS: Within = Within(-0.5, 0.5);
    let filter = match g.rng.chance(0.15) {
        true => g.leaf_of(spec, WEIGHTS),
        false => g.random_constant(spec, WEIGHTS),
    };
    if g.rng.chance(0.1) {
        let other = g.leaf_of(filter.spec(), WEIGHTS);
        let inputs = [filter.operand, other.operand];
        g.apply(Op::Maximum, &inputs, filter.spec(), filter.bound.max(other.bound));
    }
    filter
}

fn convolution(g: &mut Grower<'_>, kind: Kind) {
    let pictures = Pictures::new(g, COMMON);
    let [n, h, w, c] = pictures.sizes;
    let window = taps(g, [h, w]);
    let path = path(g, [h, w], window, kind != Kind::Grouped);
    let (filter_dims, outputs, number) = match kind {
        Kind::Dense => {
            let outputs = g.rng.size(1, 6);
            ([outputs, window[0], window[1], c], outputs, None)
        }
        Kind::Depthwise => {
            let multiplier = g.rng.size(1, 2);
            ([1, window[0], window[1], c * multiplier], c * multiplier, Some(multiplier))
        }
        Kind::Grouped => {
            let divisors: Vec<u32> = (1..=c).filter(|groups| c.is_multiple_of(*groups)).collect();
            let groups = g.rng.one_of(&divisors);
            let outputs = groups * g.rng.size(1, 3);
            ([outputs, window[0], window[1], c / groups], outputs, Some(groups))
        }
    };
    let axis = if kind == Kind::Depthwise { 3 } else { 0 };
    let (filter, bias) = weights(g, &pictures.value, &filter_dims, axis);
    let mut inputs = vec![pictures.value.operand, filter.operand, bias.operand];
    inputs.extend(path.operands(g));
    inputs.extend(number.map(|number| g.b.scalar_i32(int(number))));
    inputs.push(g.activation(pictures.value.ty));
    let dilates = path.dilations != [1, 1];
    if kind == Kind::Grouped || pictures.is_nchw || dilates || g.rng.chance(0.5) {
        inputs.push(g.b.scalar_bool(pictures.is_nchw));
    }
    if dilates {
        inputs.extend([1, 0].map(|axis| g.b.scalar_i32(int(path.dilations[axis]))));
    }
    let [rows, columns] = path.steps;
    let dims = pictures.laid_out([n, rows, columns, outputs]);
    let bound = reach(&pictures.value, window[0] * window[1] * c);
    let out = g.spec_for(pictures.value.ty, &dims, 2.0);
    let op = match kind {
        Kind::Dense => Op::Conv2d,
        Kind::Depthwise => Op::DepthwiseConv2d,
        Kind::Grouped => Op::GroupedConv2d,
    };
    g.apply(op, &inputs, out, bound);
}

/// How far from 0 a sum of so many products with weights up to 0.5 can be, and a bias.
fn reach(x: &Value, products: u32) -> f32 {
    let products = f32::from(u16::try_from(products).unwrap_or(u16::MAX));
    x.bound * 0.5 * products + 6.0
}

fn transpose_conv_2d(g: &mut Grower<'_>) {
    let pictures = Pictures::new(g, COMMON);
    let [n, h, w, c] = pictures.sizes;
    let (window, strides) =
        ([g.rng.size(1, 3), g.rng.size(1, 3)], [g.rng.size(1, 2), g.rng.size(1, 2)]);
    let outputs = g.rng.size(1, 4);
    let (filter, bias) = weights(g, &pictures.value, &[outputs, window[0], window[1], c], 0);
    let whole = [(h - 1) * strides[0] + window[0], (w - 1) * strides[1] + window[1]];
    let mut inputs = vec![pictures.value.operand, filter.operand, bias.operand];
    let sizes = if g.rng.chance(0.5) {
        let mut side = |axis: usize| g.rng.size(0, (window[axis] - 1).min(1));
        let sides = [side(1), side(1), side(0), side(0)];
        inputs.extend(sides.map(|side| g.b.scalar_i32(int(side))));
        [whole[0] - sides[2] - sides[3], whole[1] - sides[0] - sides[1]]
    } else {
        let sizes = [h * strides[0], w * strides[1]];
        let dims = pictures.laid_out([n, sizes[0], sizes[1], outputs]);
        inputs.push(g.list(&[4], &dims.map(int)));
        inputs.push(g.b.scalar_i32(1));
        sizes
    };
    inputs.extend([1, 0].map(|axis| g.b.scalar_i32(int(strides[axis]))));
    inputs.push(g.activation(pictures.value.ty));
    inputs.push(g.b.scalar_bool(pictures.is_nchw));
    if sizes.contains(&0) {
        return pool(g, Op::MaxPool2d, COMMON);
    }
    let dims = pictures.laid_out([n, sizes[0], sizes[1], outputs]);
    let bound = reach(&pictures.value, window[0] * window[1] * c);
    let out = g.spec_for(pictures.value.ty, &dims, 2.0);
    g.apply(Op::TransposeConv2d, &inputs, out, bound);
}

fn fully_connected(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 2..=4);
    let x = g.tame(x);
    let size = x.dims[x.rank() - 1];
    let units = g.rng.size(1, 8);
    let (filter, bias) = weights_of_one(g, &x, units, size);
    let activation = g.activation(x.ty);
    let inputs = [x.operand, filter.operand, bias.operand, activation];
    let out = g.spec_for(x.ty, &[x.elements() / size, units], 2.0);
    let bound = reach(&x, size);
    g.apply(Op::FullyConnected, &inputs, out, bound);
}

/// Weights `[units, inputs]`, which have one scale, and a bias.
fn weights_of_one(g: &mut Grower<'_>, x: &Value, units: u32, inputs: u32) -> (Value, Value) {
    let mut spec = g.spec(x.ty, &[units, inputs]);
    spec.scale = if x.is_quantized() { 0.01 } else { 0.0 };
    let filter = filter(g, spec);
    let bias = match x.is_quantized() {
        true => OutputSpec::new(I32, &[units]).quantized(x.scale * filter.scale, 0),
        false => OutputSpec::new(x.ty, &[units]),
    };
    (filter, g.random_constant(bias, Within::USUAL))
}

fn pool(g: &mut Grower<'_>, op: Op, types: &[OperandType]) {
    let pictures = Pictures::new(g, types);
    let [n, h, w, c] = pictures.sizes;
    let window = taps(g, [h, w]);
    let path = path(g, [h, w], window, false);
    let mut inputs = vec![pictures.value.operand];
    inputs.extend(path.operands(g));
    inputs.extend([1, 0].map(|axis| g.b.scalar_i32(int(window[axis]))));
    inputs.push(g.activation(pictures.value.ty));
    if pictures.is_nchw || g.rng.chance(0.3) {
        inputs.push(g.b.scalar_bool(pictures.is_nchw));
    }
    let [rows, columns] = path.steps;
    let dims = pictures.laid_out([n, rows, columns, c]);
    g.apply(op, &inputs, pictures.value.with(&dims), pictures.value.bound);
}

fn resize(g: &mut Grower<'_>, op: Op) {
    let pictures = Pictures::new(g, COMMON);
    let [n, h, w, c] = pictures.sizes;
    let mut inputs = vec![pictures.value.operand];
    let [rows, columns] = if g.rng.chance(0.5) {
        let sizes = [g.rng.size(1, 8), g.rng.size(1, 8)];
        inputs.extend([1, 0].map(|axis| g.b.scalar_i32(int(sizes[axis]))));
        sizes
    } else {
        // By factors that half floats have, too.
        let factors = [0.5, 1.0, 1.5, 2.0, 2.5];
        let factors = [g.rng.one_of(&factors), g.rng.one_of(&factors)];
        inputs.extend([1, 0].map(|axis| g.real(pictures.value.ty, factors[axis])));
        [scaled(h, factors[0]), scaled(w, factors[1])]
    };
    // The nearest ones always have the layout.
    let trailing = match op {
        Op::ResizeBilinear if !pictures.is_nchw => g.rng.below(4),
        _ => 1 + g.rng.below(3),
    };
    let aligned = g.rng.chance(0.5);
    let flags = [pictures.is_nchw, aligned, !aligned && g.rng.chance(0.5)];
    inputs.extend(flags[..trailing].iter().map(|flag| g.b.scalar_bool(*flag)));
    let dims = pictures.laid_out([n, rows, columns, c]);
    g.apply(op, &inputs, pictures.value.with(&dims), pictures.value.bound);
}

/// A size times a factor, at least 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small sizes")]
fn scaled(size: u32, factor: f32) -> u32 {
    (f64::from(size) * f64::from(factor)).floor().max(1.0) as u32
}

fn l2_normalization(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 1..=4);
    let axis = g.rng.below(x.rank());
    let mut inputs = vec![x.operand];
    if g.rng.chance(0.7) {
        inputs.push(say_axis(g, axis, x.rank()));
    }
    let mut out = OutputSpec::new(x.ty, &x.dims);
    if x.is_quantized() {
        out = out.quantized(1.0 / 128.0, lowest(x.ty) + 128);
    }
    g.apply(Op::L2Normalization, &inputs, out, 1.0);
}

fn local_response_normalization(g: &mut Grower<'_>) {
    let x = g.tensor(FLOATS, 1..=4);
    let x = g.tame(x);
    let radius = g.b.scalar_i32(g.rng.int(1, 3));
    let reals = [1.5, 0.5, 0.75].map(|value| g.real(x.ty, value));
    let axis = g.rng.below(x.rank());
    let mut inputs = vec![x.operand, radius, reals[0], reals[1], reals[2]];
    if g.rng.chance(0.6) {
        inputs.push(say_axis(g, axis, x.rank()));
    }
    g.apply(Op::LocalResponseNormalization, &inputs, x.spec(), x.bound);
}

fn instance_normalization(g: &mut Grower<'_>) {
    let pictures = Pictures::new(g, FLOATS);
    let x = &pictures.value;
    let reals = [0.9, 0.1, 0.001].map(|value| g.real(x.ty, value));
    let flag = g.b.scalar_bool(pictures.is_nchw);
    let inputs = [x.operand, reals[0], reals[1], reals[2], flag];
    g.apply(Op::InstanceNormalization, &inputs, x.spec(), 50.0);
}

fn softmax(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 1..=4);
    let x = g.tame(x);
    let beta = g.rng.real(0.3, 1.5);
    let mut inputs = vec![x.operand, g.real(x.ty, beta)];
    if g.rng.chance(0.5) {
        let axis = g.rng.below(x.rank());
        inputs.push(say_axis(g, axis, x.rank()));
    }
    let mut out = OutputSpec::new(x.ty, &x.dims);
    if x.is_quantized() {
        out = out.quantized(1.0 / 256.0, lowest(x.ty));
    }
    g.apply(Op::Softmax, &inputs, out, 1.0);
}

fn log_softmax(g: &mut Grower<'_>) {
    let x = g.tensor(FLOATS, 1..=4);
    let x = g.tame(x);
    let beta = g.real(x.ty, 1.0);
    let axis = g.rng.below(x.rank());
    let axis = say_axis(g, axis, x.rank());
    g.apply(Op::LogSoftmax, &[x.operand, beta, axis], x.spec(), 2.0 * x.bound + 10.0);
}
