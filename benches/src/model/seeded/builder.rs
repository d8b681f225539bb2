//! Layers of a network, one behind the other, in floats or in bytes.
//!
//! Weights are uniform. Their range follows from how many products a sum has, as He's initialisation has it: behind a
//! ReLU6 the mean square of the values then stays what it was, however many layers there are.

use super::random::Random;
use super::support::{FLOAT32, Field, File, INT8, INT32, Operator, Tensor, UINT8};

/// What a network computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Floats.
    Float,
    /// Signed bytes; filters have a scale for each channel.
    Int8,
    /// Unsigned bytes; filters have one scale.
    Uint8,
}

/// What becomes of a layer's sums, which says how far its values reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Activation {
    /// From 0 to 6.
    Relu6,
    /// Nothing; values lie within so much of zero.
    None(f32),
}

/// A filter that slides over a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) size: u32,
    pub(super) stride: u32,
    pub(super) dilation: u32,
}

impl Window {
    pub(super) const POINT: Window = Window { size: 1, stride: 1, dilation: 1 };

    /// Three by three.
    pub(super) const fn three(stride: u32) -> Window {
        Window { size: 3, stride, dilation: 1 }
    }
}

/// A tensor with pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    tensor: i32,
    pub(super) side: u32,
    pub(super) channels: u32,
    /// The real value of one step, where values are bytes.
    scale: f32,
    zero_point: i64,
}

const CODE_ADD: i32 = 0;
const CODE_AVERAGE_POOL: i32 = 1;
const CODE_CONCATENATION: i32 = 2;
const CODE_CONV: i32 = 3;
const CODE_DEPTHWISE: i32 = 4;
const CODE_RESHAPE: i32 = 22;
const CODE_RESIZE_BILINEAR: i32 = 23;
const CODE_SOFTMAX: i32 = 25;
const CODE_MEAN: i32 = 40;

const PADDING_SAME: i8 = 0;
const PADDING_VALID: i8 = 1;
const FUSED_NONE: i8 = 0;
const FUSED_RELU6: i8 = 3;

/// Of factors between a half and one: the root of their mean square, which is that of the weights afterwards.
const CHANNELS_APART: f32 = 0.763_8;

/// Biases reach so far from zero.
const BIAS: f32 = 0.1;

/// A network that is being put together.
pub(super) struct Builder {
    style: Style,
    random: Random,
    tensors: Vec<Tensor>,
    operators: Vec<Operator>,
}

impl Builder {
    pub(super) fn new(style: Style, seed: u64) -> Builder {
        Builder { style, random: Random::new(seed), tensors: Vec::new(), operators: Vec::new() }
    }

    /// The picture that the network takes, from -1 to 1.
    pub(super) fn picture(&mut self, side: u32) -> Value {
        self.value(side, 3, Activation::None(1.0))
    }

    /// The file of the network that computes `output` of `input`.
    pub(super) fn finish(self, input: Value, output: Value) -> Vec<u8> {
        let mut file = File::new(self.tensors, self.operators, (&[input.tensor], &[output.tensor]));
        // Behind the rest weights are aligned as LiteRT wants them.
        file.external = true;
        file.write()
    }

    /// A convolution whose weights are `gain` times as large as usual.
    pub(super) fn conv(
        &mut self,
        input: Value,
        window: Window,
        units: u32,
        (activation, gain): (Activation, f32),
    ) -> Value {
        let Window { size, .. } = window;
        let shape = [units, size, size, input.channels];
        let filter = self.filter(&shape, 0, size * size * input.channels, (activation, gain));
        let stride = signed(window.stride);
        let options = vec![
            Field::Byte(0, PADDING_SAME),
            Field::Int(1, stride),
            Field::Int(2, stride),
            Field::Byte(3, fused(activation)),
            Field::Int(4, signed(window.dilation)),
            Field::Int(5, signed(window.dilation)),
        ];
        let output = self.value(input.side.div_ceil(window.stride), units, activation);
        self.weighted(CODE_CONV, input, &filter, output, (1, options))
    }

    /// A filter for each channel.
    pub(super) fn depthwise(&mut self, input: Value, window: Window) -> Value {
        let activation = Activation::Relu6;
        let Window { size, .. } = window;
        let filter =
            self.filter(&[1, size, size, input.channels], 3, size * size, (activation, 1.0));
        let stride = signed(window.stride);
        let options = vec![
            Field::Byte(0, PADDING_SAME),
            Field::Int(1, stride),
            Field::Int(2, stride),
            Field::Int(3, 1),
            Field::Byte(4, fused(activation)),
            Field::Int(5, signed(window.dilation)),
            Field::Int(6, signed(window.dilation)),
        ];
        let output = self.value(input.side.div_ceil(window.stride), input.channels, activation);
        self.weighted(CODE_DEPTHWISE, input, &filter, output, (2, options))
    }

    /// The sum of two.
    pub(super) fn add(&mut self, one: Value, other: Value, within: f32) -> Value {
        let output = self.value(one.side, one.channels, Activation::None(within));
        let options = vec![Field::Byte(0, FUSED_NONE)];
        self.operate(CODE_ADD, &[one.tensor, other.tensor], output, Some((11, options)))
    }

    /// Both, channel behind channel; their steps are the same.
    pub(super) fn concatenate(&mut self, one: Value, other: Value) -> Value {
        let output = self.like(one, one.side, one.channels + other.channels);
        let options = vec![Field::Int(0, 3), Field::Byte(1, FUSED_NONE)];
        self.operate(CODE_CONCATENATION, &[one.tensor, other.tensor], output, Some((10, options)))
    }

    /// The same picture in another size.
    pub(super) fn resize(&mut self, input: Value, side: u32) -> Value {
        let size = self.ints("size", &[side, side]);
        let output = self.like(input, side, input.channels);
        let options = vec![Field::Bool(2, false), Field::Bool(3, true)];
        let inputs = [input.tensor, size];
        self.operate(CODE_RESIZE_BILINEAR, &inputs, output, Some((15, options)))
    }

    /// The mean of all pixels, as one pixel.
    pub(super) fn mean(&mut self, input: Value) -> Value {
        let axes = self.ints("axes", &[1, 2]);
        let output = self.like(input, 1, input.channels);
        let options = vec![Field::Bool(0, true)];
        self.operate(CODE_MEAN, &[input.tensor, axes], output, Some((27, options)))
    }

    /// The same by a pooling over all pixels.
    pub(super) fn average_pool(&mut self, input: Value) -> Value {
        let side = signed(input.side);
        let output = self.like(input, 1, input.channels);
        let options = vec![
            Field::Byte(0, PADDING_VALID),
            Field::Int(1, side),
            Field::Int(2, side),
            Field::Int(3, side),
            Field::Int(4, side),
            Field::Byte(5, FUSED_NONE),
        ];
        self.operate(CODE_AVERAGE_POOL, &[input.tensor], output, Some((5, options)))
    }

    /// Probabilities of one pixel's channels.
    pub(super) fn softmax(&mut self, input: Value) -> Value {
        let classes = signed(input.channels);
        let shape = self.ints("shape", &[1, input.channels]);
        let flat = Value { tensor: self.next(), ..input };
        let zero_point = if self.style == Style::Uint8 { 0 } else { -128 };
        let flat_tensor = self.activations("flat", &[1, classes], input.scale, input.zero_point);
        self.tensors.push(flat_tensor);
        let options = vec![Field::Ints(0, vec![1, classes])];
        self.operate(CODE_RESHAPE, &[input.tensor, shape], flat, Some((17, options)));
        let output = Value { tensor: self.next(), scale: 1.0 / 256.0, zero_point, ..input };
        let tensor = self.activations("scores", &[1, classes], output.scale, zero_point);
        self.tensors.push(tensor);
        let options = vec![Field::Float(0, 1.0)];
        self.operate(CODE_SOFTMAX, &[flat.tensor], output, Some((9, options)))
    }

    /// An operator with a filter and a bias.
    fn weighted(
        &mut self,
        code: i32,
        input: Value,
        filter: &Filter,
        output: Value,
        options: (u8, Vec<Field>),
    ) -> Value {
        let bias = self.bias(input, filter);
        self.operate(code, &[input.tensor, filter.tensor, bias], output, Some(options))
    }

    fn operate(
        &mut self,
        code: i32,
        inputs: &[i32],
        output: Value,
        options: Option<(u8, Vec<Field>)>,
    ) -> Value {
        self.operators.push(Operator { options, ..Operator::new(code, inputs, &[output.tensor]) });
        output
    }

    /// A new tensor of activations.
    fn value(&mut self, side: u32, channels: u32, activation: Activation) -> Value {
        let (scale, zero_point) = match (activation, self.style) {
            (Activation::Relu6, Style::Uint8) => (6.0 / 255.0, 0),
            (Activation::Relu6, _) => (6.0 / 255.0, -128),
            (Activation::None(within), Style::Uint8) => (2.0 * within / 255.0, 128),
            (Activation::None(within), _) => (2.0 * within / 255.0, 0),
        };
        let like = Value { tensor: 0, side, channels, scale, zero_point };
        self.like(like, side, channels)
    }

    /// A new tensor whose steps are those of another.
    fn like(&mut self, other: Value, side: u32, channels: u32) -> Value {
        let value = Value { tensor: self.next(), side, channels, ..other };
        let shape = [1, side, side, channels].map(signed);
        let tensor = self.activations("values", &shape, value.scale, value.zero_point);
        self.tensors.push(tensor);
        value
    }

    fn activations(&self, what: &str, shape: &[i32], scale: f32, zero_point: i64) -> Tensor {
        let name = format!("{what}_{}", self.next());
        match self.style {
            Style::Float => Tensor::new(name, FLOAT32, shape),
            Style::Int8 => Tensor::new(name, INT8, shape).quant(scale, zero_point),
            Style::Uint8 => Tensor::new(name, UINT8, shape).quant(scale, zero_point),
        }
    }

    /// Weights whose sums have so many products.
    fn filter(
        &mut self,
        shape: &[u32; 4],
        axis: usize,
        products: u32,
        (activation, gain): (Activation, f32),
    ) -> Filter {
        // A ReLU leaves half of the mean square.
        let share = if activation == Activation::Relu6 { 6.0 } else { 3.0 };
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let range = gain * (share / products as f32).sqrt();
        let (elements, units) = (shape.iter().product::<u32>(), shape[axis]);
        let dims = shape.map(signed);
        let name = format!("filter_{}", self.next());
        let (tensor, scales) = match self.style {
            Style::Float => {
                let weights: Vec<f32> = (0..elements).map(|_| range * self.random.unit()).collect();
                (Tensor::new(name, FLOAT32, &dims).floats(&weights), Vec::new())
            }
            Style::Int8 => {
                let scale = |random: &mut Random| {
                    range / 127.0 * (0.75 + 0.25 * random.unit()) / CHANNELS_APART
                };
                let scales: Vec<f32> = (0..units).map(|_| scale(&mut self.random)).collect();
                let weights = (0..elements).map(|_| self.random.step().cast_unsigned()).collect();
                let axis = i32::try_from(axis).unwrap_or(0);
                let tensor = Tensor::new(name, INT8, &dims).channels(&scales, axis).bytes(weights);
                (tensor, scales)
            }
            Style::Uint8 => {
                let scale = range / 127.0;
                let byte = |random: &mut Random| random.step().cast_unsigned() ^ 0x80;
                let weights = (0..elements).map(|_| byte(&mut self.random)).collect();
                (Tensor::new(name, UINT8, &dims).quant(scale, 128).bytes(weights), vec![scale])
            }
        };
        let filter = Filter { tensor: self.next(), scales, units };
        self.tensors.push(tensor);
        filter
    }

    fn bias(&mut self, input: Value, filter: &Filter) -> i32 {
        let at = self.next();
        let name = format!("bias_{at}");
        let reals: Vec<f32> = (0..filter.units).map(|_| BIAS * self.random.unit()).collect();
        let shape = [signed(filter.units)];
        let tensor = if self.style == Style::Float {
            Tensor::new(name, FLOAT32, &shape).floats(&reals)
        } else {
            let scales: Vec<f32> = filter.scales.iter().map(|scale| input.scale * scale).collect();
            let steps = reals.iter().zip(scales.iter().cycle());
            #[expect(clippy::cast_possible_truncation, reason = "a bias of some thousand steps")]
            let steps: Vec<i32> = steps.map(|(real, scale)| (real / scale) as i32).collect();
            Tensor::new(name, INT32, &shape).channels(&scales, 0).ints(&steps)
        };
        self.tensors.push(tensor);
        at
    }

    /// A list that an operator reads.
    fn ints(&mut self, what: &str, values: &[u32]) -> i32 {
        let at = self.next();
        let values: Vec<i32> = values.iter().map(|value| signed(*value)).collect();
        let count = i32::try_from(values.len()).unwrap_or(i32::MAX);
        let tensor = Tensor::new(format!("{what}_{at}"), INT32, &[count]);
        self.tensors.push(tensor.ints(&values));
        at
    }

    /// The number of the tensor that comes next.
    fn next(&self) -> i32 {
        i32::try_from(self.tensors.len()).unwrap_or(i32::MAX)
    }
}

/// Weights that were written.
struct Filter {
    tensor: i32,
    /// One for each unit, or one.
    scales: Vec<f32>,
    units: u32,
}

fn fused(activation: Activation) -> i8 {
    match activation {
        Activation::Relu6 => FUSED_RELU6,
        Activation::None(_) => FUSED_NONE,
    }
}

/// A size as files have them.
fn signed(size: u32) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}
