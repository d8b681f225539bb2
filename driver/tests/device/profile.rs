//! A model's profile: which operations are in it, what they compute, that it computes.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;
use std::time::Duration;

use burst_driver::{CpuDevice, DeviceOptions, OperationProfile};
use burst_hal::{
    DataLocation, HeapMemory, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Request,
    RequestArgument, RequestPool,
};

const F32: OperandType = OperandType::TensorFloat32;

/// `relu(x * w + b)` for 3 rows of 4 values and 5 units, and the sum of two constants.
fn model() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[3, 4]);
    let one = b.constant_f32(&[5], &[1.0; 5]);
    let none = b.scalar_i32(0);
    let bias = b.result_of(OperationType::Add, &[one, one, none], OutputSpec::new(F32, &[5]));
    let weights = b.constant_f32(&[5, 4], &[0.5; 20]);
    let product = b.result_of(
        OperationType::FullyConnected,
        &[x, weights, bias, none],
        OutputSpec::new(F32, &[3, 5]),
    );
    let out = b.result_of(OperationType::Relu, &[product], OutputSpec::new(F32, &[3, 5]));
    b.output(out);
    b.build().expect("a legal model")
}

fn argument(pool_index: u32, length: u32) -> RequestArgument {
    RequestArgument {
        location: DataLocation { pool_index, offset: 0, length },
        ..RequestArgument::default()
    }
}

fn request(input_bytes: usize) -> Request {
    let pool = |bytes| RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; bytes])));
    Request {
        inputs: vec![argument(0, 48)],
        outputs: vec![argument(1, 60)],
        pools: vec![pool(input_bytes), pool(60)],
    }
}

fn profile(fast_kernels: bool, executions: u32) -> Vec<OperationProfile> {
    let options = DeviceOptions { fast_kernels, ..DeviceOptions::default() };
    let prepared = CpuDevice::new(options).prepare(&model()).unwrap();
    prepared.profile(&request(48), executions).unwrap()
}

#[test]
fn a_profile_names_each_operation_that_runs_with_its_kernel_and_its_work() {
    for fast_kernels in [true, false] {
        let profile = profile(fast_kernels, 200);
        let seen: Vec<_> = profile.iter().map(|op| (op.index, op.operation, op.macs)).collect();
        let expected = [
            (1, OperationType::FullyConnected, Some(3 * 4 * 5)),
            (2, OperationType::Relu, None), // the sum of constants was computed long before
        ];
        assert_eq!(seen, expected);
        assert!(profile.iter().all(|op| op.time > Duration::ZERO), "{profile:?}");
        assert_eq!(profile[0].kernel.is_some(), fast_kernels, "{profile:?}");
        let shapes: Vec<_> = profile.iter().map(|op| op.output.as_deref()).collect();
        assert_eq!(shapes, [Some(&[3, 5][..]); 2]);
    }
}

#[test]
fn weights_are_the_constants_that_are_read_whether_kernels_have_packed_them_or_not() {
    let (weights, folded_bias, activation) = (5 * 4 * 4, 5 * 4, 4);
    for fast_kernels in [true, false] {
        let options = DeviceOptions { fast_kernels, ..DeviceOptions::default() };
        let plan = CpuDevice::new(options).prepare(&model()).unwrap();
        let found = plan.plan().weight_bytes();
        // Neither the addends of what was folded, nor what packing adds; perhaps which activation it is.
        let least = weights + folded_bias;
        assert!((least..=least + activation).contains(&found), "{fast_kernels}: {found}");
    }
}

#[test]
fn a_profile_of_no_executions_took_no_time() {
    assert!(profile(true, 0).iter().all(|op| op.time == Duration::ZERO));
}

#[test]
fn a_profile_refuses_what_an_execution_refuses() {
    let prepared = CpuDevice::default().prepare(&model()).unwrap();
    let error = prepared.profile(&request(47), 1).unwrap_err().to_string();
    assert!(error.contains("input 0"), "{error}");
}
