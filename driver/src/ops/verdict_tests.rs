//! What the device says of a model with one operation that it cannot compute: that one is not supported, and the others
//! are. Only what the contract lets no model say makes all of it illegal.

use burst_hal::{Device, Model, ModelBuilder, OperandType, OperationType, OutputSpec};

use crate::{CpuDevice, DriverError};

use OperandType::{TensorFloat32, TensorQuant8Asymm};

/// A model of FLOOR, which any device computes, and of what `add` adds behind it.
fn beside_floor(add: impl FnOnce(&mut ModelBuilder) -> u32) -> Model {
    let mut builder = ModelBuilder::new();
    let input = builder.input(TensorFloat32, &[2]);
    let floor = builder.result_of(OperationType::Floor, &[input], OutputSpec::f32(&[2]));
    let other = add(&mut builder);
    builder.output(floor);
    builder.output(other);
    builder.build().unwrap()
}

fn verdict(model: &Model) -> Option<bool> {
    let device = CpuDevice::default();
    let prepared = device.prepare(model);
    match device.supported_operations(model) {
        Ok(supported) => {
            assert!(supported[0], "FLOOR is supported");
            assert_eq!(prepared.is_ok(), supported[1], "what is announced is prepared");
            if let Err(error) = prepared {
                assert!(matches!(error, DriverError::Unplannable { index: 1, .. }), "{error}");
            }
            Some(supported[1])
        }
        Err(_) => {
            assert!(matches!(prepared, Err(DriverError::Signature { index: 1, .. })));
            None
        }
    }
}

/// RESHAPE, MAX_POOL_2D or DEPTH_TO_SPACE from one scale to another.
fn between_scales(ty: OperationType, dims: &[u32], from: f32, to: f32) -> Model {
    beside_floor(|builder| {
        let input = builder.quant_input(TensorQuant8Asymm, dims, from, 3);
        let parameters: Vec<u32> = match ty {
            OperationType::Reshape => vec![builder.constant_i32(&[1], &[-1])],
            OperationType::MaxPool2d => {
                [2, 1, 1, 1, 1, 0].map(|value| builder.scalar_i32(value)).to_vec()
            }
            _ => vec![builder.scalar_i32(1)],
        };
        let output = OutputSpec::new(TensorQuant8Asymm, &[]).quantized(to, 3);
        builder.result_of(ty, &[vec![input], parameters].concat(), output)
    })
}

#[test]
fn an_output_of_another_scale_makes_that_operation_not_supported() {
    for ty in [OperationType::Reshape, OperationType::MaxPool2d, OperationType::DepthToSpace] {
        // Of unknown sizes the second time.
        for dims in [[1, 2, 2, 1], [1, 0, 2, 1]] {
            for (from, to, supported) in [
                (0.5, 0.5, true),
                (0.5, 0.5f32.next_up(), true),
                (1e-7, 1e-7f32.next_down(), true),
                (0.5, 0.25, false),
                (1e-7, 9e-7, false),
            ] {
                let model = between_scales(ty, &dims, from, to);
                assert_eq!(verdict(&model), Some(supported), "{ty} {from} {to} {dims:?}");
            }
        }
    }
}

#[test]
fn more_dimensions_than_an_operation_takes_make_it_not_supported() {
    type Extra = fn(&mut ModelBuilder) -> Vec<u32>;
    let none: Extra = |_| vec![];
    let axes: Extra = |builder| vec![builder.constant_i32(&[1], &[0]), builder.scalar_bool(true)];
    let mean: Extra = |builder| vec![builder.constant_i32(&[1], &[0]), builder.scalar_i32(1)];
    let beta: Extra = |builder| vec![builder.scalar_f32(1.0)];
    let lanes: Extra = |builder| {
        let floats = [1.0, 1.0, 0.5].map(|value| builder.scalar_f32(value));
        [vec![builder.scalar_i32(1)], floats.to_vec()].concat()
    };
    let pool: Extra = |builder| [1, 1, 1, 1, 1, 0].map(|one| builder.scalar_i32(one)).to_vec();
    let sizes: Extra = |builder| [2, 2].map(|size| builder.scalar_i32(size)).to_vec();
    let nearest: Extra = |builder| {
        let sizes = [2, 2].map(|size| builder.scalar_i32(size));
        [sizes.to_vec(), vec![builder.scalar_bool(false)]].concat()
    };
    let norm: Extra = |builder| {
        let floats = [1.0, 0.0, 0.1].map(|value| builder.scalar_f32(value));
        [floats.to_vec(), vec![builder.scalar_bool(false)]].concat()
    };
    for (ty, extra) in [
        (OperationType::Floor, none),
        (OperationType::Relu, none),
        (OperationType::Relu6, none),
        (OperationType::Logistic, none),
        (OperationType::Tanh, none),
        (OperationType::Softmax, beta),
        (OperationType::ReduceMax, axes),
        (OperationType::ReduceSum, axes),
        (OperationType::Mean, mean),
        (OperationType::L2Normalization, none),
        (OperationType::LocalResponseNormalization, lanes),
        (OperationType::InstanceNormalization, norm),
        (OperationType::MaxPool2d, pool),
        (OperationType::L2Pool2d, pool),
        (OperationType::ResizeBilinear, sizes),
        (OperationType::ResizeNearestNeighbor, nearest),
    ] {
        for rank in [4, 5] {
            let model = beside_floor(|builder| {
                let input = builder.input(TensorFloat32, &vec![2; rank]);
                let inputs = [vec![input], extra(builder)].concat();
                builder.result_of(ty, &inputs, OutputSpec::f32(&[]))
            });
            assert_eq!(verdict(&model), Some(rank == 4), "{ty} of rank {rank}");
        }
    }
    let bytes = |rank: usize| {
        beside_floor(|builder| {
            let input = builder.quant_input(TensorQuant8Asymm, &vec![2; rank], 0.5, 0);
            builder.result_of(OperationType::Dequantize, &[input], OutputSpec::f32(&[]))
        })
    };
    assert_eq!([verdict(&bytes(4)), verdict(&bytes(5))], [Some(true), Some(false)]);
}

/// Rules of which the specification says that they are looked at with the model.
#[test]
fn what_no_model_may_say_makes_it_illegal() {
    let product = |scale: f32| {
        beside_floor(|builder| {
            let one = builder.quant_input(TensorQuant8Asymm, &[2], 0.5, 0);
            let other = builder.quant_input(TensorQuant8Asymm, &[2], 0.5, 0);
            let none = builder.scalar_i32(0);
            let output = OutputSpec::new(TensorQuant8Asymm, &[2]).quantized(scale, 0);
            builder.result_of(OperationType::Mul, &[one, other, none], output)
        })
    };
    assert_eq!([verdict(&product(0.3)), verdict(&product(0.2))], [Some(true), None]);
    let layer = |biases: u32| {
        beside_floor(|builder| {
            let input = builder.input(TensorFloat32, &[1, 2]);
            let weights = builder.constant_f32(&[3, 2], &[1.0; 6]);
            let bias = builder.input(TensorFloat32, &[biases]);
            let none = builder.scalar_i32(0);
            let inputs = [input, weights, bias, none];
            builder.result_of(OperationType::FullyConnected, &inputs, OutputSpec::f32(&[1, 3]))
        })
    };
    assert_eq!([verdict(&layer(3)), verdict(&layer(4))], [Some(true), None]);
}
