//! What is measured: models whose shapes are those of real ones and whose weights are made from seeds.
//!
//! For each kind of data a network for pictures (MobileNet v1, a quarter of its width, on pictures of 128 by 128)
//! and a recurrent layer (LSTM of 256 units); for IF and WHILE small graphs, so that what control costs shows.

use anyhow::Result;
use burst_hal::{
    FusedActivation, Model, ModelBuilder, Operand, OperandLifeTime, OperandType, OperationType,
    OutputSpec,
};
use half::f16;

/// A model and the figure that its time counts for.
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) figure: &'static str,
    pub(super) model: Model,
}

/// All of them, in the order in which they are measured.
pub(super) fn all() -> Result<Vec<Workload>> {
    let workload = |name, figure, model| Workload { name, figure, model };
    use Data::{Float16, Float32, Relaxed, Signed, Unsigned};
    Ok(vec![
        workload("mobilenet float32", "float32", mobilenet(Float32)?),
        workload("lstm float32", "float32", lstm(Float32)?),
        workload("mobilenet relaxed", "relaxed", mobilenet(Relaxed)?),
        workload("lstm relaxed", "relaxed", lstm(Relaxed)?),
        workload("mobilenet float16", "float16", mobilenet(Float16)?),
        workload("lstm float16", "float16", lstm(Float16)?),
        workload("mobilenet quant8", "quant8_asymm", mobilenet(Unsigned)?),
        workload("lstm quant8", "quant8_asymm", quantized_16bit_lstm()?),
        workload("mobilenet quant8 signed", "quant8_asymm_signed", mobilenet(Signed)?),
        workload("lstm quant8 signed", "quant8_asymm_signed", quantized_lstm()?),
        workload("if", "if", chosen()?),
        workload("while", "while", repeated()?),
    ])
}

/// A kind of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    Float32,
    /// As `Float32`, with leave to compute as `Float16`.
    Relaxed,
    Float16,
    Unsigned,
    Signed,
}

impl Data {
    fn tensor(self) -> OperandType {
        match self {
            Data::Float32 | Data::Relaxed => OperandType::TensorFloat32,
            Data::Float16 => OperandType::TensorFloat16,
            Data::Unsigned => OperandType::TensorQuant8Asymm,
            Data::Signed => OperandType::TensorQuant8AsymmSigned,
        }
    }

    /// A tensor whose values go from 0 to this where they are bytes.
    fn up_to(self, most: f32, dims: &[u32]) -> OutputSpec {
        self.quantized(dims, most / 255.0, 0)
    }

    /// A tensor whose values go from minus this to this where they are bytes.
    fn around_zero(self, most: f32, dims: &[u32]) -> OutputSpec {
        self.quantized(dims, most / 128.0, 128)
    }

    /// `zero` is that of unsigned bytes.
    fn quantized(self, dims: &[u32], scale: f32, zero: i32) -> OutputSpec {
        let spec = OutputSpec::new(self.tensor(), dims);
        match self {
            Data::Unsigned => spec.quantized(scale, zero),
            Data::Signed => spec.quantized(scale, zero - 128),
            _ => spec,
        }
    }
}

/// Numbers that look like chance and are always the same.
struct Seeded(u64);

impl Seeded {
    fn byte(&mut self) -> u8 {
        // Knuth's multiplier for 64 bits; the highest byte is the best.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0.to_be_bytes()[0]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// Between minus this and this.
    fn reals(&mut self, count: usize, most: f32) -> Vec<f32> {
        let real = |byte: u8| (f32::from(byte) / 127.5 - 1.0) * most;
        (0..count).map(|_| real(self.byte())).collect()
    }
}

fn count(dims: &[u32]) -> usize {
    dims.iter().product::<u32>() as usize
}

/// A network under construction.
struct Net {
    b: ModelBuilder,
    data: Data,
    seeded: Seeded,
}

impl Net {
    fn new(data: Data) -> Self {
        let mut b = ModelBuilder::new();
        b.relaxed(data == Data::Relaxed);
        Net { b, data, seeded: Seeded(1) }
    }

    /// Weights between minus `most` and `most`.
    fn weights(&mut self, dims: &[u32], most: f32) -> u32 {
        let spec = self.data.around_zero(most, dims);
        let bytes = match self.data {
            Data::Unsigned | Data::Signed => self.seeded.bytes(count(dims)),
            _ => self.floats(count(dims), most),
        };
        self.b.constant_bytes(spec, &bytes)
    }

    /// Floats of the kind's width.
    fn floats(&mut self, count: usize, most: f32) -> Vec<u8> {
        let reals = self.seeded.reals(count, most);
        match self.data {
            Data::Float16 => {
                reals.into_iter().flat_map(|x| f16::from_f32(x).to_ne_bytes()).collect()
            }
            _ => reals.into_iter().flat_map(f32::to_ne_bytes).collect(),
        }
    }

    /// A bias for sums of products of values in steps of `input` and weights up to `most`.
    fn bias(&mut self, depth: u32, input: f32, most: f32) -> u32 {
        match self.data {
            Data::Unsigned | Data::Signed => {
                let spec = OutputSpec::new(OperandType::TensorInt32, &[depth]);
                let spec = spec.quantized(input * (most / 128.0), 0);
                let values: Vec<i32> =
                    self.seeded.bytes(depth as usize).into_iter().map(i32::from).collect();
                self.b.constant_i32_of(spec, &values)
            }
            data => {
                let bytes = self.floats(depth as usize, 0.1);
                self.b.constant_bytes(OutputSpec::new(data.tensor(), &[depth]), &bytes)
            }
        }
    }

    fn scalar(&mut self, value: f32) -> u32 {
        match self.data {
            Data::Float16 => self.b.scalar_f16_bits(f16::from_f32(value).to_bits()),
            _ => self.b.scalar_f32(value),
        }
    }

    /// A convolution behind which values are clamped to 0 to 6, `stride` apart.
    fn convolution(&mut self, x: Layer, depth: u32, size: u32, stride: u32) -> Layer {
        let most = weight_limit(size * size * x.depth);
        let filter = self.weights(&[depth, size, size, x.depth], most);
        let bias = self.bias(depth, x.scale, most);
        let [same, stride_operand, clamp] = self.scalars(stride);
        let operands = [x.operand, filter, bias, same, stride_operand, stride_operand, clamp];
        self.clamped(OperationType::Conv2d, &operands, x.side.div_ceil(stride), depth)
    }

    /// A depthwise convolution of 3 by 3, likewise.
    fn depthwise(&mut self, x: Layer, stride: u32) -> Layer {
        let most = weight_limit(9);
        let filter = self.weights(&[1, 3, 3, x.depth], most);
        let bias = self.bias(x.depth, x.scale, most);
        let [same, stride_operand, clamp] = self.scalars(stride);
        let one = self.b.scalar_i32(1);
        let operands = [x.operand, filter, bias, same, stride_operand, stride_operand, one, clamp];
        self.clamped(OperationType::DepthwiseConv2d, &operands, x.side.div_ceil(stride), x.depth)
    }

    /// Padding scheme SAME, the stride, RELU6.
    fn scalars(&mut self, stride: u32) -> [u32; 3] {
        [1, stride.cast_signed(), FusedActivation::Relu6.code()].map(|x| self.b.scalar_i32(x))
    }

    fn clamped(&mut self, ty: OperationType, operands: &[u32], side: u32, depth: u32) -> Layer {
        let spec = self.data.up_to(6.0, &[1, side, side, depth]);
        let scale = 6.0 / 255.0;
        Layer { operand: self.b.result_of(ty, operands, spec), side, depth, scale }
    }
}

/// Weights up to this keep sums of so many products near 1.
fn weight_limit(products: u32) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "near 1")]
    let limit = (3.0 / f64::from(products)).sqrt() as f32;
    limit
}

/// A square picture of features.
#[derive(Clone, Copy)]
struct Layer {
    operand: u32,
    side: u32,
    depth: u32,
    /// Real value of a step, of bytes.
    scale: f32,
}

/// MobileNet v1, a quarter of its width.
fn mobilenet(data: Data) -> Result<Model> {
    const SIDE: u32 = 128;
    const CLASSES: u32 = 1001;
    /// Depth behind each pair of layers, and the stride of its first one.
    const PAIRS: [(u32, u32); 13] = [
        (16, 1),
        (32, 2),
        (32, 1),
        (64, 2),
        (64, 1),
        (128, 2),
        (128, 1),
        (128, 1),
        (128, 1),
        (128, 1),
        (128, 1),
        (256, 2),
        (256, 1),
    ];
    let mut net = Net::new(data);
    let operand = net.b.input_of(data.around_zero(1.0, &[1, SIDE, SIDE, 3]));
    let input = Layer { operand, side: SIDE, depth: 3, scale: 1.0 / 128.0 };
    let mut x = net.convolution(input, 8, 3, 2);
    for (depth, stride) in PAIRS {
        x = net.depthwise(x, stride);
        x = net.convolution(x, depth, 1, 1);
    }
    let window = x.side.cast_signed();
    let [valid, one, side, none] = [2, 1, window, 0].map(|value| net.b.scalar_i32(value));
    let pool = [x.operand, valid, one, one, side, side, none];
    let spec = data.up_to(6.0, &[1, 1, 1, x.depth]);
    let pooled = net.b.result_of(OperationType::AveragePool2d, &pool, spec);
    let most = weight_limit(x.depth);
    let weights = net.weights(&[CLASSES, x.depth], most);
    let bias = net.bias(CLASSES, x.scale, most);
    let spec = data.around_zero(8.0, &[1, CLASSES]);
    let sums = net.b.result_of(OperationType::FullyConnected, &[pooled, weights, bias, none], spec);
    let beta = net.scalar(1.0);
    let spec = data.quantized(&[1, CLASSES], 1.0 / 256.0, 0);
    let shares = net.b.result_of(OperationType::Softmax, &[sums, beta], spec);
    net.b.output(shares);
    Ok(net.b.build()?)
}

/// Inputs and units of the recurrent layers.
const INPUTS: u32 = 128;
const UNITS: u32 = 256;

/// An LSTM of floats without peepholes and projection.
fn lstm(data: Data) -> Result<Model> {
    let ty = data.tensor();
    let mut net = Net::new(data);
    let spec = |dims: &[u32]| OutputSpec::new(ty, dims);
    let mut operands = vec![net.b.input_of(spec(&[1, INPUTS]))];
    for columns in [INPUTS, UNITS] {
        for _ in 0..4 {
            operands.push(net.weights(&[UNITS, columns], weight_limit(columns)));
        }
    }
    operands.extend((0..3).map(|_| net.b.omitted(ty)));
    for _ in 0..4 {
        operands.push(net.bias(UNITS, 1.0, 1.0));
    }
    operands.extend((0..2).map(|_| net.b.omitted(ty)));
    operands.extend((0..2).map(|_| net.b.input_of(spec(&[1, UNITS]))));
    operands.push(net.b.scalar_i32(4)); // tanh
    operands.extend([net.scalar(0.0), net.scalar(0.0)]);
    let results = [4 * UNITS, UNITS, UNITS, UNITS].map(|size| spec(&[1, size]));
    finished(net.b, OperationType::Lstm, &operands, &results)
}

/// Adds an operation, all of whose results are the model's outputs.
fn finished(
    mut b: ModelBuilder,
    ty: OperationType,
    operands: &[u32],
    results: &[OutputSpec],
) -> Result<Model> {
    for result in b.operation(ty, operands, results) {
        b.output(result);
    }
    Ok(b.build()?)
}

/// An LSTM of unsigned bytes with 16-bit cells.
fn quantized_16bit_lstm() -> Result<Model> {
    const BYTES: OperandType = OperandType::TensorQuant8Asymm;
    /// Scale of weights; that of values is fixed by the operation.
    const WEIGHT: f32 = 1.0 / 512.0;
    const VALUE: f32 = 1.0 / 128.0;
    let mut b = ModelBuilder::new();
    let mut seeded = Seeded(2);
    let values = |size: u32| OutputSpec::new(BYTES, &[1, size]).quantized(VALUE, 128);
    let cells = OutputSpec::new(OperandType::TensorQuant16Symm, &[1, UNITS]);
    let cells = cells.quantized(1.0 / 2048.0, 0);
    let mut operands = vec![b.input_of(values(INPUTS))];
    for columns in [INPUTS, UNITS] {
        for _ in 0..4 {
            let spec = OutputSpec::new(BYTES, &[UNITS, columns]).quantized(WEIGHT, 128);
            operands.push(b.constant_bytes(spec, &seeded.bytes(count(&[UNITS, columns]))));
        }
    }
    for _ in 0..4 {
        let spec = OutputSpec::new(OperandType::TensorInt32, &[UNITS]);
        let spec = spec.quantized(VALUE * WEIGHT, 0);
        operands.push(b.constant_i32_of(spec, &[100; UNITS as usize]));
    }
    operands.extend([b.input_of(cells.clone()), b.input_of(values(UNITS))]);
    finished(b, OperationType::Quantized16bitLstm, &operands, &[cells, values(UNITS)])
}

/// An LSTM of signed bytes with 16-bit cells, without peepholes, projection and normalisation.
fn quantized_lstm() -> Result<Model> {
    const WEIGHTS: OperandType = OperandType::TensorQuant8Symm;
    const HALVES: OperandType = OperandType::TensorQuant16Symm;
    const CELL: f32 = 1.0 / 4096.0;
    let mut b = ModelBuilder::new();
    let mut seeded = Seeded(3);
    let values = |size: u32, scale: f32| {
        OutputSpec::new(OperandType::TensorQuant8AsymmSigned, &[1, size]).quantized(scale, 0)
    };
    let cells = OutputSpec::new(HALVES, &[1, UNITS]).quantized(CELL, 0);
    let absent = |b: &mut ModelBuilder, ty| {
        let scale = if ty == OperandType::TensorInt32 { 0.0 } else { 1.0 };
        b.operand(Operand { scale, ..Operand::new(ty, OperandLifeTime::NoValue) })
    };
    let mut operands = vec![b.input_of(values(INPUTS, 1.0 / 64.0))];
    for columns in [INPUTS, UNITS] {
        for _ in 0..4 {
            let spec = OutputSpec::new(WEIGHTS, &[UNITS, columns]).quantized(1.0 / 512.0, 0);
            operands.push(b.constant_bytes(spec, &seeded.bytes(count(&[UNITS, columns]))));
        }
    }
    operands.extend((0..3).map(|_| absent(&mut b, HALVES)));
    for _ in 0..4 {
        operands.push(b.constant_i32(&[UNITS], &[100; UNITS as usize]));
    }
    operands.extend([absent(&mut b, WEIGHTS), absent(&mut b, OperandType::TensorInt32)]);
    operands.extend([b.input_of(values(UNITS, 1.0 / 128.0)), b.input_of(cells.clone())]);
    operands.extend((0..4).map(|_| absent(&mut b, HALVES)));
    operands.extend([0.0, 0.0, CELL, CELL, CELL, CELL].map(|value| b.scalar_f32(value)));
    operands.extend([b.scalar_i32(0), b.scalar_f32(1.0 / 128.0)]);
    let result = || values(UNITS, 1.0 / 128.0);
    finished(b, OperationType::QuantizedLstm, &operands, &[result(), cells, result()])
}

/// Values of the small graphs.
const FEW: u32 = 16;

fn plus_one(b: &mut ModelBuilder) {
    let x = b.input(OperandType::TensorFloat32, &[FEW]);
    let (one, none) = (b.constant_f32(&[1], &[1.0]), b.scalar_i32(0));
    let sum = b.result_of(OperationType::Add, &[x, one, none], OutputSpec::f32(&[FEW]));
    b.output(sum);
}

/// Several IFs, one behind the other.
fn chosen() -> Result<Model> {
    let mut b = ModelBuilder::new();
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let mut x = b.input(OperandType::TensorFloat32, &[FEW]);
    let (then, otherwise) = (b.referenced(plus_one), b.referenced(plus_one));
    for _ in 0..8 {
        let graphs = [then, otherwise].map(|graph| b.subgraph(graph));
        let operands = [condition, graphs[0], graphs[1], x];
        x = b.result_of(OperationType::If, &operands, OutputSpec::f32(&[FEW]));
    }
    b.output(x);
    Ok(b.build()?)
}

/// A WHILE of some rounds.
fn repeated() -> Result<Model> {
    const ROUNDS: i32 = 16;
    let mut b = ModelBuilder::new();
    let int = || OutputSpec::new(OperandType::TensorInt32, &[1]);
    let goes_on = b.referenced(|b| {
        let n = b.input(OperandType::TensorInt32, &[1]);
        b.input(OperandType::TensorFloat32, &[FEW]);
        let end = b.constant_i32(&[1], &[ROUNDS]);
        let truth = OutputSpec::new(OperandType::TensorBool8, &[1]);
        let less = b.result_of(OperationType::Less, &[n, end], truth);
        b.output(less);
    });
    let next = b.referenced(|b| {
        let n = b.input(OperandType::TensorInt32, &[1]);
        let (one, none) = (b.constant_i32(&[1], &[1]), b.scalar_i32(0));
        let more = b.result_of(OperationType::Add, &[n, one, none], int());
        b.output(more);
        plus_one(b);
    });
    let graphs = [goes_on, next].map(|graph| b.subgraph(graph));
    let n = b.input_of(int());
    let x = b.input(OperandType::TensorFloat32, &[FEW]);
    let operands = [graphs[0], graphs[1], n, x];
    finished(b, OperationType::While, &operands, &[int(), OutputSpec::f32(&[FEW])])
}

/// Bytes for an input of a workload: small numbers of its type. `None` for a type that none has.
pub(super) fn input(ty: OperandType, count: usize) -> Option<Vec<u8>> {
    let mut seeded = Seeded(4);
    Some(match ty {
        OperandType::TensorFloat32 => {
            seeded.reals(count, 1.0).into_iter().flat_map(f32::to_ne_bytes).collect()
        }
        OperandType::TensorFloat16 => {
            let halves = seeded.reals(count, 1.0).into_iter().map(f16::from_f32);
            halves.flat_map(f16::to_ne_bytes).collect()
        }
        OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned => {
            seeded.bytes(count)
        }
        OperandType::TensorQuant16Symm | OperandType::TensorInt32 => {
            vec![0; count * ty.element_bytes()?]
        }
        OperandType::TensorBool8 => vec![1; count],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use burst_driver::CpuDevice;
    use burst_hal::Device;

    use super::*;

    #[test]
    fn every_workload_is_supported_and_always_the_same() {
        let again = all().unwrap();
        for (workload, again) in all().unwrap().iter().zip(&again) {
            let name = workload.name;
            let supported = CpuDevice::default().supported_operations(&workload.model).unwrap();
            assert!(supported.iter().all(|supported| *supported), "{name}: {supported:?}");
            assert_eq!(workload.model.main, again.model.main, "{name}");
            assert_eq!(*workload.model.operand_values, *again.model.operand_values, "{name}");
            let relaxed = workload.model.relax_computation_float32_to_float16;
            assert_eq!(relaxed, workload.figure == "relaxed", "{name}");
        }
    }
}
