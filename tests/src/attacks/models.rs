//! Models that a client may send and that cost more than they look.

use std::sync::Arc;

use burst_client::ShmMemory;
use burst_hal::validate::ValidationError;
use burst_hal::{DataLocation, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Pool};
use burst_shm::Memory;

/// The model that this repository trained.
pub(super) const BUILT_IN: &[u8] = include_bytes!("../../../models/shapes.tflite");

/// The model of the honest client: less than a millisecond of work.
///
/// # Errors
/// None: it is a file of this repository.
pub fn small_model() -> Made {
    Ok(burst_tflite::import(BUILT_IN)?.model)
}

/// A model, or why there is none.
type Made = Result<Model, Box<dyn std::error::Error>>;

/// No activation, and not "same" padding, as operations take them.
const NONE: i32 = 0;

/// The largest constant that a driver may compute in advance, in bytes, halved again and again down to
/// this: what no large one fits into any more, a small one still takes.
const SMALLEST_FOLDED: u32 = 64 << 10;

/// A matrix of ones, which only its two dimensions take room for.
fn ones(b: &mut ModelBuilder, rows: u32, columns: u32) -> u32 {
    let dimensions = [rows, columns].map(u32::cast_signed);
    let shape = b.constant_i32(&[2], &dimensions);
    let one = b.scalar_f32(1.0);
    b.result_of(OperationType::Fill, &[shape, one], OutputSpec::f32(&[rows, columns]))
}

/// A few KiB that become `mib` MiB of constants: matrices of 64 MiB, and then smaller ones.
pub(super) fn large_constants(mib: u32) -> Made {
    let mut b = ModelBuilder::new();
    let none = b.scalar_i32(NONE);
    let input = b.input(OperandType::TensorFloat32, &[1, 1]);
    let constants = |b: &mut ModelBuilder, rows: u32, columns: u32, count: u32| {
        let spec = OutputSpec::f32(&[rows, columns]);
        let (mut sum, mut square) = (input, ones(b, rows, columns));
        for _ in 0..count {
            // Each stays, as it is an input of an operation that cannot be computed in advance.
            sum = b.result_of(OperationType::Add, &[sum, square, none], spec.clone());
            square = b.result_of(OperationType::Mul, &[square, square, none], spec.clone());
        }
        let last = b.result_of(OperationType::Add, &[sum, square, none], spec);
        b.output(last);
    };
    constants(&mut b, 4096, 4096, mib / 64 - 1);
    let mut bytes = 32 << 20;
    while bytes >= SMALLEST_FOLDED {
        constants(&mut b, bytes / 4096, 1024, 1);
        bytes /= 2;
    }
    Ok(b.build()?)
}

/// A few hundred bytes whose constants take a minute to compute: a product of two large matrices.
///
/// # Errors
/// None: it is legal.
pub fn slow_constants() -> Result<Model, ValidationError> {
    let mut b = ModelBuilder::new();
    let none = b.scalar_i32(NONE);
    let input = b.input(OperandType::TensorFloat32, &[1, 1]);
    let (one, other) = (ones(&mut b, 4096, 4096), ones(&mut b, 4096, 4096));
    let length = b.constant_i32(&[1], &[4096]);
    let zero = b.scalar_f32(0.0);
    let bias = b.result_of(OperationType::Fill, &[length, zero], OutputSpec::f32(&[4096]));
    let spec = OutputSpec::f32(&[4096, 4096]);
    let inputs = [one, other, bias, none];
    let product = b.result_of(OperationType::FullyConnected, &inputs, spec.clone());
    let result = b.result_of(OperationType::Add, &[input, product, none], spec);
    b.output(result);
    b.build()
}

/// A model of four bytes in and four out that needs this much memory in between.
pub(super) fn working_memory(bytes: u32) -> Made {
    let mut b = ModelBuilder::new();
    let elements = bytes / 4;
    let input = b.input(OperandType::TensorFloat32, &[1]);
    let times = b.constant_i32(&[1], &[elements.cast_signed()]);
    let tiled = b.result_of(OperationType::Tile, &[input, times], OutputSpec::f32(&[elements]));
    let axes = b.constant_i32(&[1], &[0]);
    let keep = b.scalar_bool(true);
    let largest =
        b.result_of(OperationType::ReduceMax, &[tiled, axes, keep], OutputSpec::f32(&[1]));
    b.output(largest);
    Ok(b.build()?)
}

/// Zeros that are sealed against writing, as constants have to be. They take no memory until somebody
/// reads them.
fn zeros(bytes: u32) -> Result<Pool, Box<dyn std::error::Error>> {
    let mut memory = Memory::create("weights", usize::try_from(bytes)?)?;
    memory.seal_write()?;
    Ok(Arc::new(ShmMemory::open(memory.into(), bytes.into())?))
}

/// A layer with so many bytes of weights, which a driver may want to have in another order.
pub(super) fn weights(bytes: u32) -> Made {
    let mut b = ModelBuilder::new();
    let (rows, columns) = (bytes / 4096, 1024);
    let pool_index = b.pool(zeros(bytes)?);
    let input = b.input(OperandType::TensorFloat32, &[1, columns]);
    let location = DataLocation { pool_index, offset: 0, length: bytes };
    let weights = b.constant_in_pool(OutputSpec::f32(&[rows, columns]), location);
    let bias = b.constant_f32(&[rows], &vec![0.0; usize::try_from(rows)?]);
    let none = b.scalar_i32(NONE);
    let spec = OutputSpec::f32(&[1, rows]);
    let result = b.result_of(OperationType::FullyConnected, &[input, weights, bias, none], spec);
    b.output(result);
    Ok(b.build()?)
}

/// Some milliseconds of products for a KiB of input, in as many layers.
///
/// # Errors
/// The system has no memory for its weights.
pub fn busy(layers: u32) -> Made {
    const FEATURES: u32 = 1024;
    let mut b = ModelBuilder::new();
    let bytes = FEATURES * FEATURES * 4;
    let pool_index = b.pool(zeros(bytes)?);
    let location = DataLocation { pool_index, offset: 0, length: bytes };
    let weights = b.constant_in_pool(OutputSpec::f32(&[FEATURES, FEATURES]), location);
    let bias = b.constant_f32(&[FEATURES], &[0.0; FEATURES as usize]);
    let none = b.scalar_i32(NONE);
    let input = b.input(OperandType::TensorFloat32, &[1, FEATURES]);
    let rows = b.constant_i32(&[2], &[32, 1]);
    let spec = OutputSpec::f32(&[32, FEATURES]);
    let mut layer = b.result_of(OperationType::Tile, &[input, rows], spec.clone());
    for _ in 0..layers {
        let inputs = [layer, weights, bias, none];
        layer = b.result_of(OperationType::FullyConnected, &inputs, spec.clone());
    }
    let axes = b.constant_i32(&[2], &[0, 1]);
    let keep = b.scalar_bool(false);
    let largest =
        b.result_of(OperationType::ReduceMax, &[layer, axes, keep], OutputSpec::f32(&[1]));
    b.output(largest);
    Ok(b.build()?)
}

/// Bytes of the inputs of [`long_execution`]; its output is as long as the first one.
pub(super) const LONG_EXECUTION_INPUTS: [u32; 2] =
    [4 * SIDE * SIDE * SIDE, 4 * SIDE * WINDOW * WINDOW * SIDE];
/// Pixels along each axis, and channels.
const SIDE: u32 = 64;
/// Pixels of the window along each axis.
const WINDOW: u32 = 31;
/// Convolutions one after the other, each of which takes the better part of a second with the fastest
/// kernels.
const CONVOLUTIONS: u32 = 100;

/// An execution of a minute or more: convolutions with one large window, which comes with each request, so
/// that nothing of it is there in advance.
pub(super) fn long_execution() -> Made {
    let mut b = ModelBuilder::new();
    let input = b.input(OperandType::TensorFloat32, &[1, SIDE, SIDE, SIDE]);
    let weights = b.input(OperandType::TensorFloat32, &[SIDE, WINDOW, WINDOW, SIDE]);
    let bias = b.constant_f32(&[SIDE], &[0.0; SIDE as usize]);
    let (same, one, none) = (b.scalar_i32(1), b.scalar_i32(1), b.scalar_i32(NONE));
    let spec = OutputSpec::f32(&[1, SIDE, SIDE, SIDE]);
    let mut layer = input;
    for _ in 0..CONVOLUTIONS {
        let inputs = [layer, weights, bias, same, one, one, none];
        layer = b.result_of(OperationType::Conv2d, &inputs, spec.clone());
    }
    b.output(layer);
    Ok(b.build()?)
}

/// One operation on four numbers.
pub(super) fn tiny() -> Result<Model, ValidationError> {
    let mut b = ModelBuilder::new();
    let input = b.input(OperandType::TensorFloat32, &[1, 4]);
    let output = b.result_of(OperationType::Relu, &[input], OutputSpec::f32(&[1, 4]));
    b.output(output);
    b.build()
}
