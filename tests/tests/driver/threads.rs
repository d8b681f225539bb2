//! Several threads compute the same bits as one: the built-in model, convolutions of random shapes,
//! real models, executions at the same time.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;
use std::sync::Arc;

use burst_driver::{CpuDevice, DeviceOptions, Isa, MAX_THREADS};
use burst_hal::session::{HeapAllocator, PoolAllocator};
use burst_hal::{
    DataLocation, Device, Dimensions, ErrorStatus, ExecutionOptions, HeapMemory, Model,
    ModelBuilder, OperandType, OperationType, OutputSpec, PrepareOptions, PreparedModel, Request,
    RequestArgument, RequestPool, Route,
};
use burst_testing::shared;
use burst_tests::{golden, repository};
use burst_verify::models::{DeviceRoute, run_goldens};
use burst_verify::{DeviceLease, Target};

burst_testing::tests![
    the_built_in_model_computes_the_same_bits_on_every_number_of_threads(),
    convolutions_of_random_shapes_compute_the_same_bits_on_every_number_of_threads(),
    executions_at_the_same_time_share_the_helpers_and_all_are_right(),
    real_models_compute_the_same_bits_on_one_two_and_three_threads(&shared("")?),
];

/// Executions per golden of a real model.
const EXECUTIONS: usize = 2;

fn device(threads: usize, isa: Isa) -> CpuDevice {
    CpuDevice::new(DeviceOptions { threads, isa, ..DeviceOptions::default() })
}

fn prepare(model: &Model, threads: usize, isa: Isa) -> Arc<dyn PreparedModel> {
    device(threads, isa).prepare_model(model, &PrepareOptions::default()).unwrap()
}

fn argument(pool_index: u32, length: usize) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index, offset: 0, length: u32::try_from(length).unwrap() },
        dimensions: Dimensions::new(),
    }
}

/// Runs a model with one input and one output of so many bytes.
fn run(model: &Arc<dyn PreparedModel>, input: &[u8], output_len: usize) -> Vec<u8> {
    let output = Arc::new(HeapMemory::new(vec![0; output_len]));
    let request = Request {
        inputs: vec![argument(0, input.len())],
        outputs: vec![argument(1, output_len)],
        pools: vec![
            RequestPool::Memory(Arc::new(HeapMemory::new(input.to_vec()))),
            RequestPool::Memory(output.clone()),
        ],
    };
    let result = model.execute_synchronously(&request, &ExecutionOptions::default());
    assert_eq!(result.status, ErrorStatus::None);
    output.to_vec()
}

fn built_in() -> Model {
    let file = std::fs::read(repository().join("models/shapes.tflite")).unwrap();
    burst_tflite::import(&file).unwrap().model
}

fn length(model: &Model, operand: u32) -> usize {
    let operand = &model.main.operands[operand as usize];
    usize::try_from(operand.ty.byte_length(&operand.dimensions).unwrap()).unwrap()
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 >> 33
    }

    fn below(&mut self, end: u64) -> u32 {
        u32::try_from(self.next() % end).unwrap()
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    /// Between -1 and 1.
    fn floats(&mut self, len: usize) -> Vec<f32> {
        self.bytes(len).into_iter().map(|byte| f32::from(byte) / 128.0 - 1.0).collect()
    }
}

fn the_built_in_model_computes_the_same_bits_on_every_number_of_threads() {
    let model = built_in();
    let (input, output) =
        (length(&model, model.main.input_indexes[0]), length(&model, model.main.output_indexes[0]));
    for isa in Isa::each_here() {
        let alone = prepare(&model, 1, isa);
        // Numbers beyond the bounds are held to them.
        for threads in [2, 3, 5, 0, MAX_THREADS + 1] {
            let shared = prepare(&model, threads, isa);
            let mut numbers = Numbers(threads as u64);
            for _ in 0..20 {
                let picture = numbers.bytes(input);
                let want = run(&alone, &picture, output);
                assert_eq!(run(&shared, &picture, output), want, "{threads} threads");
            }
        }
    }
}

/// A convolution or a depthwise one, of floats or bytes, large enough to be shared.
fn convolution(numbers: &mut Numbers, is_float: bool, is_depthwise: bool) -> (Model, usize, usize) {
    let [height, width] = [24 + numbers.below(30), 24 + numbers.below(30)];
    let channels = 8 + numbers.below(50);
    let units = if is_depthwise { channels } else { 1 + numbers.below(70) };
    let taps = 1 + numbers.below(3);
    let stride = 1 + i32::try_from(numbers.below(2)).unwrap();
    let activation = i32::try_from(numbers.below(4)).unwrap();
    let filter_dims =
        if is_depthwise { [1, taps, taps, units] } else { [units, taps, taps, channels] };
    let weights: usize = filter_dims.iter().map(|size| *size as usize).product();
    let mut b = ModelBuilder::new();
    let images = [2, height, width, channels];
    let quantized = |dims: &[u32], scale| {
        OutputSpec::new(OperandType::TensorQuant8Asymm, dims).quantized(scale, 120)
    };
    let (input, filter, bias, out) = if is_float {
        (
            b.input(OperandType::TensorFloat32, &images),
            b.constant_f32(&filter_dims, &numbers.floats(weights)),
            b.constant_f32(&[units], &numbers.floats(units as usize)),
            OutputSpec::new(OperandType::TensorFloat32, &[]),
        )
    } else {
        let bias: Vec<i32> = (0..units).map(|unit| i32::try_from(unit * 7).unwrap()).collect();
        let bias_spec = OutputSpec::new(OperandType::TensorInt32, &[units]).quantized(0.125, 0);
        (
            b.input_of(quantized(&images, 0.5)),
            b.constant_bytes(quantized(&filter_dims, 0.25), &numbers.bytes(weights)),
            b.constant_i32_of(bias_spec, &bias),
            quantized(&[], 30.0),
        )
    };
    let mut inputs = vec![input, filter, bias];
    // SAME padding, strides, for depthwise one output per channel, the activation.
    inputs.extend([1, stride, stride].map(|value| b.scalar_i32(value)));
    if is_depthwise {
        inputs.push(b.scalar_i32(1));
    }
    inputs.push(b.scalar_i32(activation));
    let op = if is_depthwise { OperationType::DepthwiseConv2d } else { OperationType::Conv2d };
    let result = b.result_of(op, &inputs, out);
    b.output(result);
    let element = if is_float { 4 } else { 1 };
    let size = |dims: [u32; 4]| dims.iter().map(|size| *size as usize).product::<usize>() * element;
    let stride = stride.unsigned_abs();
    let out_dims = [2, height.div_ceil(stride), width.div_ceil(stride), units];
    (b.build().unwrap(), size(images), size(out_dims))
}

fn convolutions_of_random_shapes_compute_the_same_bits_on_every_number_of_threads() {
    for seed in 0..24 {
        let (is_float, is_depthwise) = (seed % 2 == 0, seed % 4 >= 2);
        let numbers = &mut Numbers(seed);
        let (model, input_len, output_len) = convolution(numbers, is_float, is_depthwise);
        let input = if is_float {
            numbers.floats(input_len / 4).into_iter().flat_map(f32::to_ne_bytes).collect()
        } else {
            numbers.bytes(input_len)
        };
        for isa in Isa::each_here() {
            let want = run(&prepare(&model, 1, isa), &input, output_len);
            for threads in [2, 3] {
                let shared = prepare(&model, threads, isa);
                for _ in 0..3 {
                    let got = run(&shared, &input, output_len);
                    assert!(got == want, "seed {seed}, {threads} threads, {isa:?}");
                }
            }
        }
    }
}

fn executions_at_the_same_time_share_the_helpers_and_all_are_right() {
    let model = built_in();
    let (input, output) =
        (length(&model, model.main.input_indexes[0]), length(&model, model.main.output_indexes[0]));
    let alone = prepare(&model, 1, Isa::detect());
    let together = prepare(&model, 3, Isa::detect());
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (alone, together) = (&alone, &together);
            scope.spawn(move || {
                let mut numbers = Numbers(seed);
                for _ in 0..100 {
                    let picture = numbers.bytes(input);
                    let got = run(together, &picture, output);
                    assert_eq!(got, run(alone, &picture, output));
                }
            });
        }
    });
}

struct InProcess(CpuDevice, Arc<dyn PoolAllocator>);

impl DeviceLease for InProcess {
    fn target(&self) -> Target<'_> {
        Target { device: &self.0, memory: &self.1 }
    }
}

fn real_models_compute_the_same_bits_on_one_two_and_three_threads(shared: &Path) {
    let mut folder = golden::folder(shared);
    for model in &mut folder.models {
        model.goldens.truncate(1);
        for golden in &mut model.goldens {
            golden.truncate(EXECUTIONS);
        }
    }
    // Its many times longer sibling of bytes takes the same way through the driver as others.
    folder.models.retain(|model| model.name != "edsr_f32b5_240x135_float");
    let routes = || {
        let route = |(threads, name)| DeviceRoute {
            name,
            lease: Box::new(InProcess(device(threads, Isa::detect()), Arc::new(HeapAllocator))),
            route: Route::Burst,
        };
        Ok([(1, "one thread"), (2, "two threads"), (3, "three threads")].map(route).into())
    };
    let wanted = folder.golden_count();
    // The report fails a golden whose bytes are not the same on all routes.
    let report = run_goldens(&folder, &golden::importer(), 1, 1, routes, |_| {}).unwrap();
    let failed: Vec<_> = report.results.iter().filter_map(|result| result.why.clone()).collect();
    assert_eq!((report.goldens, report.failed), (wanted, 0), "{failed:#?}");
}
