//! Convolutions of few pixels that compute the depthwise one behind them: which do, and that nothing else comes of it.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;

use burst_driver::{CpuDevice, DeviceOptions, OperationProfile};
use burst_hal::{
    DataLocation, ErrorStatus, ExecutionOptions, HeapMemory, Model, ModelBuilder, OperandType,
    OperationType, OutputSpec, PreparedModel, Request, RequestArgument, RequestPool,
};

use OperationType::{Conv2d, DepthwiseConv2d};

const RELU: i32 = 1;
const SAME: i32 = 1;

/// Bytes that are the same in every run.
fn bytes(count: usize, seed: usize) -> Vec<u8> {
    let byte = |index: usize| u8::try_from((index * 151 + index / 7 + seed * 83) % 256).unwrap();
    (0..count).map(byte).collect()
}

/// A convolution of 1 x 1 and a depthwise one of 3 x 3 behind it.
#[derive(Debug, Clone, Copy)]
struct Pair {
    ty: OperandType,
    batches: u32,
    height: u32,
    width: u32,
    depth: u32,
    units: u32,
    stride: i32,
    /// Whether the user reads what is between them.
    is_shown: bool,
}

const PLAIN: Pair = Pair {
    ty: OperandType::TensorQuant8AsymmSigned,
    batches: 1,
    height: 6,
    width: 4,
    depth: 256,
    units: 256,
    stride: 1,
    is_shown: false,
};

fn count(dims: &[u32]) -> usize {
    dims.iter().map(|size| *size as usize).product()
}

impl Pair {
    fn input(&self) -> [u32; 4] {
        [self.batches, self.height, self.width, self.depth]
    }

    fn between(&self) -> [u32; 4] {
        [self.batches, self.height, self.width, self.units]
    }

    fn output(&self) -> [u32; 4] {
        let stride = self.stride.unsigned_abs();
        let [height, width] = [self.height, self.width].map(|size| size.div_ceil(stride));
        [self.batches, height, width, self.units]
    }

    fn model(&self) -> Model {
        let Pair { ty, depth, units, .. } = *self;
        let mut b = ModelBuilder::new();
        let zero = if ty == OperandType::TensorQuant8Asymm { 131 } else { 3 };
        let spec = |dims: &[u32], scale| OutputSpec::new(ty, dims).quantized(scale, zero);
        let x = b.quant_input(ty, &self.input(), 0.5, zero);
        let [same, one, relu, stride] = [SAME, 1, RELU, self.stride].map(|x| b.scalar_i32(x));
        let weights = |b: &mut ModelBuilder, dims: &[u32], seed| {
            b.constant_bytes(spec(dims, 0.01), &bytes(count(dims), seed))
        };
        let bias = |b: &mut ModelBuilder, scale| {
            let values: Vec<i32> =
                (0..i32::try_from(units).unwrap()).map(|x| x * 7 - 300).collect();
            let spec = OutputSpec::new(OperandType::TensorInt32, &[units]).quantized(scale, 0);
            b.constant_i32_of(spec, &values)
        };
        let filter = weights(&mut b, &[units, 1, 1, depth], 1);
        let conv_bias = bias(&mut b, 0.5 * 0.01);
        let conv = [x, filter, conv_bias, same, one, one, relu];
        let conv = b.result_of(Conv2d, &conv, spec(&self.between(), 2.0));
        let filter = weights(&mut b, &[1, 3, 3, units], 2);
        let depthwise_bias = bias(&mut b, 2.0 * 0.01);
        let depthwise = [conv, filter, depthwise_bias, same, stride, stride, one, relu];
        let depthwise = b.result_of(DepthwiseConv2d, &depthwise, spec(&self.output(), 4.0));
        b.output(depthwise);
        if self.is_shown {
            b.output(conv);
        }
        b.build().unwrap()
    }

    fn run(&self, options: DeviceOptions) -> (Vec<OperationProfile>, Vec<u8>) {
        let prepared = CpuDevice::new(options).prepare(&self.model()).unwrap();
        let mut outputs = vec![count(&self.output())];
        outputs.extend(self.is_shown.then(|| count(&self.between())));
        let given = Arc::new(HeapMemory::new(bytes(count(&self.input()), 5)));
        let computed = Arc::new(HeapMemory::new(vec![0xEE; outputs.iter().sum()]));
        let argument = |pool_index, offset: usize, length: usize| {
            let [offset, length] = [offset, length].map(|x| u32::try_from(x).unwrap());
            let location = DataLocation { pool_index, offset, length };
            RequestArgument { location, ..RequestArgument::default() }
        };
        let starts = [0, outputs[0]];
        let request = Request {
            inputs: vec![argument(0, 0, count(&self.input()))],
            outputs: starts.iter().zip(&outputs).map(|(at, len)| argument(1, *at, *len)).collect(),
            pools: vec![
                RequestPool::Memory(given),
                RequestPool::Memory(Arc::clone(&computed) as _),
            ],
        };
        let result = prepared.execute_synchronously(&request, &ExecutionOptions::default());
        assert_eq!(result.status, ErrorStatus::None);
        let profile = prepared.profile(&request, 1).unwrap();
        (profile, computed.to_vec())
    }

    /// Holds it to the reference's bytes, and to the operations that remain where this machine has kernels that are
    /// joined.
    fn expect(&self, remaining: &[OperationType]) {
        let (plain, want) = self.run(DeviceOptions::reference());
        assert!(want.iter().any(|byte| *byte != want[0]), "an output worth comparing: {self:?}");
        for threads in [1, 2, 3] {
            let options = DeviceOptions { threads, ..DeviceOptions::default() };
            let (profile, got) = self.run(options);
            assert_eq!(got, want, "{threads} threads, {self:?}");
            let products = |profile: &[OperationProfile]| -> u64 {
                profile.iter().filter_map(|op| op.macs).sum()
            };
            assert_eq!(products(&profile), products(&plain), "nothing is left out");
            // Where products and depthwise convolutions both have kernels for this.
            let mut names = profile.iter().filter_map(|op| op.kernel);
            let joins = names.clone().all(|name| !name.contains("pairs"));
            if joins && names.any(|name| name.contains("vnni")) {
                let operations: Vec<_> = profile.iter().map(|op| op.operation).collect();
                assert_eq!(operations, remaining, "{self:?}");
            }
        }
    }
}

#[test]
fn a_convolution_of_few_pixels_computes_the_depthwise_one_behind_it() {
    for ty in [OperandType::TensorQuant8AsymmSigned, OperandType::TensorQuant8Asymm] {
        for stride in [1, 2] {
            Pair { ty, stride, ..PLAIN }.expect(&[Conv2d]);
        }
    }
}

#[test]
fn channels_need_not_fill_blocks_and_pictures_may_be_several() {
    for (units, batches) in [(200, 1), (336, 1), (130, 2), (256, 2)] {
        Pair { units, batches, height: 3, width: 5, ..PLAIN }.expect(&[Conv2d]);
    }
}

#[test]
fn weights_that_are_many_are_shared_by_channels_up_to_64_pixels() {
    let many = Pair { depth: 512, units: 512, width: 7, height: 7, ..PLAIN };
    many.expect(&[Conv2d]);
    Pair { height: 10, ..many }.expect(&[Conv2d, DepthwiseConv2d]);
    Pair { depth: 128, ..many }.expect(&[Conv2d, DepthwiseConv2d]);
}

#[test]
fn what_the_user_reads_between_them_is_kept() {
    Pair { is_shown: true, ..PLAIN }.expect(&[Conv2d, DepthwiseConv2d]);
}
