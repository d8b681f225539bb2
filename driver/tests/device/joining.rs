//! Convolutions and layers that compute the ADD behind them: which do, and that nothing else comes of it.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;

use burst_driver::{CpuDevice, DeviceOptions, OperationProfile};
use burst_hal::{
    DataLocation, ErrorStatus, ExecutionOptions, HeapMemory, Model, ModelBuilder, OperandType,
    OperationType, OutputSpec, PreparedModel, Request, RequestArgument, RequestPool,
};

const F32: OperandType = OperandType::TensorFloat32;
const SHAPE: [u32; 4] = [1, 9, 7, 4];
const VALUES: usize = 9 * 7 * 4;
const RELU: i32 = 1;

/// Numbers that are the same in every run, of both signs, among them some that are no whole ones.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    let number = |index: usize| f32::from(u16::try_from((index * 37 + seed * 11) % 61).unwrap());
    (0..count).map(|index| (number(index) - 30.0) / 7.0).collect()
}

/// A model that is being built, with two inputs of one shape.
struct Net {
    builder: ModelBuilder,
    x: u32,
    y: u32,
}

impl Net {
    fn new() -> Self {
        let mut builder = ModelBuilder::new();
        let [x, y] = [0; 2].map(|_| builder.input(F32, &SHAPE));
        Net { builder, x, y }
    }

    /// A convolution of 3 x 3 taps with RELU, whose result has the inputs' shape.
    fn conv(&mut self, x: u32) -> u32 {
        let b = &mut self.builder;
        let filter = b.constant_f32(&[4, 3, 3, 4], &numbers(4 * 3 * 3 * 4, 1));
        let bias = b.constant_f32(&[4], &numbers(4, 2));
        let [same, one, relu] = [1, 1, RELU].map(|value| b.scalar_i32(value));
        let operands = [x, filter, bias, same, one, one, relu];
        b.result_of(OperationType::Conv2d, &operands, OutputSpec::f32(&SHAPE))
    }

    fn add(&mut self, a: u32, b: u32) -> u32 {
        let relu = self.builder.scalar_i32(RELU);
        self.builder.result_of(OperationType::Add, &[a, b, relu], OutputSpec::f32(&SHAPE))
    }

    fn tanh(&mut self, x: u32) -> u32 {
        self.builder.result_of(OperationType::Tanh, &[x], OutputSpec::f32(&SHAPE))
    }

    fn build(mut self, outputs: &[u32]) -> Model {
        for output in outputs {
            self.builder.output(*output);
        }
        self.builder.build().unwrap()
    }
}

/// A request for a model with two inputs of so many values, and its outputs, which are `outputs` times as many.
fn request(values: usize, outputs: usize) -> (Request, Arc<HeapMemory>) {
    let bytes: Vec<u8> = numbers(2 * values, 5).iter().flat_map(|x| x.to_ne_bytes()).collect();
    let given = Arc::new(HeapMemory::new(bytes));
    let computed = Arc::new(HeapMemory::new(vec![0xEE; outputs * values * 4]));
    let length = u32::try_from(values * 4).unwrap();
    let argument = |pool_index, index: usize| RequestArgument {
        location: DataLocation {
            pool_index,
            offset: u32::try_from(index).unwrap() * length,
            length,
        },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0, 0), argument(0, 1)],
        outputs: (0..outputs).map(|index| argument(1, index)).collect(),
        pools: vec![RequestPool::Memory(given), RequestPool::Memory(Arc::clone(&computed) as _)],
    };
    (request, computed)
}

/// The operations of a profile that are a step of their own, and what all outputs are with these options.
fn run(
    model: &Model,
    values: usize,
    outputs: usize,
    options: DeviceOptions,
) -> (Vec<OperationProfile>, Vec<u8>) {
    let prepared = CpuDevice::new(options).prepare(model).unwrap();
    let (request, computed) = request(values, outputs);
    let result = prepared.execute_synchronously(&request, &ExecutionOptions::default());
    assert_eq!(result.status, ErrorStatus::None);
    (prepared.profile(&request, 1).unwrap(), computed.to_vec())
}

/// Operations that remain steps of their own with fast kernels, where these outputs are the references'. With products
/// by the matrix library nothing is joined: there `None` is the answer.
fn steps(model: &Model, values: usize, outputs: usize) -> Option<Vec<OperationType>> {
    let (_, reference) = run(model, values, outputs, DeviceOptions::reference());
    let mut steps = None;
    for threads in [1, 2] {
        let options = DeviceOptions { threads, ..DeviceOptions::default() };
        let (profile, computed) = run(model, values, outputs, options);
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.chunks_exact(4).map(|x| f32::from_ne_bytes(x.try_into().unwrap())).collect()
        };
        for (got, want) in floats(&computed).into_iter().zip(floats(&reference)) {
            assert!((got - want).abs() <= 1e-4 * want.abs().max(1.0), "{got}, not {want}");
        }
        let has_panels = profile.iter().any(|op| op.kernel.is_some_and(|k| k.contains("panels")));
        steps = has_panels.then(|| profile.iter().map(|op| op.operation).collect());
    }
    steps
}

/// Holds a model to the operations that remain, where this machine's kernels can join any.
fn expect(net: Net, outputs: &[u32], remaining: &[OperationType]) {
    let model = net.build(outputs);
    if let Some(steps) = steps(&model, VALUES, outputs.len()) {
        assert_eq!(steps, remaining);
    }
}

use OperationType::{Add, Conv2d, FullyConnected, Tanh};

#[test]
fn a_convolution_computes_the_sum_of_its_output_and_what_was_there_before() {
    for is_first in [true, false] {
        let mut net = Net::new();
        let conv = net.conv(net.x);
        let sum = if is_first { net.add(conv, net.y) } else { net.add(net.y, conv) };
        expect(net, &[sum], &[Conv2d]);
    }
    let mut net = Net::new();
    let (before, conv) = (net.tanh(net.y), net.conv(net.x));
    let sum = net.add(conv, before);
    let after = net.tanh(sum);
    expect(net, &[sum, after], &[Tanh, Conv2d, Tanh]);
    let mut net = Net::new();
    let conv = net.conv(net.x);
    let constant = net.builder.constant_f32(&SHAPE, &numbers(VALUES, 8));
    let sum = net.add(constant, conv);
    let end = net.add(sum, net.y);
    expect(net, &[end], &[Conv2d, Add]);
}

#[test]
fn the_later_of_two_convolutions_computes_their_sum() {
    let mut net = Net::new();
    let (one, other) = (net.conv(net.x), net.conv(net.y));
    let sum = net.add(one, other);
    expect(net, &[sum], &[Conv2d, Conv2d]);
}

#[test]
fn a_layer_of_one_row_computes_the_sum_behind_it() {
    for batches in [1, 3] {
        let mut b = ModelBuilder::new();
        let [x, y] = [0; 2].map(|_| b.input(F32, &[batches, 40]));
        let weights = b.constant_f32(&[40, 40], &numbers(1600, 3));
        let bias = b.constant_f32(&[40], &numbers(40, 4));
        let none = b.scalar_i32(0);
        let spec = || OutputSpec::f32(&[batches, 40]);
        let product = b.result_of(FullyConnected, &[x, weights, bias, none], spec());
        let sum = b.result_of(Add, &[y, product, none], spec());
        b.output(sum);
        let values = 40 * usize::try_from(batches).unwrap();
        if let Some(steps) = steps(&b.build().unwrap(), values, 1) {
            assert_eq!(steps, [FullyConnected]);
        }
    }
}

#[test]
fn an_output_that_someone_else_reads_is_kept() {
    // The user.
    let mut net = Net::new();
    let conv = net.conv(net.x);
    let sum = net.add(conv, net.y);
    expect(net, &[conv, sum], &[Conv2d, Add]);
    // An operation behind the sum.
    let mut net = Net::new();
    let conv = net.conv(net.x);
    let sum = net.add(conv, net.y);
    let other = net.tanh(conv);
    expect(net, &[sum, other], &[Conv2d, Add, Tanh]);
    // One before it.
    let mut net = Net::new();
    let conv = net.conv(net.x);
    let other = net.tanh(conv);
    let sum = net.add(conv, net.y);
    expect(net, &[sum, other], &[Conv2d, Tanh, Add]);
    // The sum itself, twice.
    let mut net = Net::new();
    let conv = net.conv(net.x);
    let sum = net.add(conv, conv);
    expect(net, &[sum], &[Conv2d, Add]);
}

#[test]
fn what_is_computed_after_the_convolution_is_added_after_it() {
    let mut net = Net::new();
    let conv = net.conv(net.x);
    let late = net.tanh(net.y);
    let sum = net.add(conv, late);
    expect(net, &[sum], &[Conv2d, Tanh, Add]);
    let mut net = Net::new();
    let conv = net.conv(net.x);
    let made_of_it = net.tanh(conv);
    let sum = net.add(conv, made_of_it);
    expect(net, &[sum], &[Conv2d, Tanh, Add]);
}

#[test]
fn a_sum_that_broadcasts_stays_by_itself() {
    let mut net = Net::new();
    let conv = net.conv(net.x);
    let per_channel = net.builder.constant_f32(&[4], &numbers(4, 8));
    let sum = net.add(conv, per_channel);
    let end = net.add(sum, net.y);
    expect(net, &[end], &[Conv2d, Add, Add]);
}
