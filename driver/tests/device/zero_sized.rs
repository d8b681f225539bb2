//! Tensors without elements: they come into being while a model runs, and some operations refuse
//! them.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;

use burst_driver::{CpuDevice, ReferenceDevice};
use burst_hal::{
    DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult, HeapMemory, ModelBuilder,
    OperandType, OperationType, OutputSpec, PrepareOptions, Request, RequestArgument, RequestPool,
};

const F32: OperandType = OperandType::TensorFloat32;
const I32: OperandType = OperandType::TensorInt32;

/// Scores of the boxes that are left at a threshold of `0.5`, then what `ty` makes of them; `score`
/// is that of the only box.
fn scores_through(ty: OperationType, score: f32) -> ExecutionResult {
    let mut b = ModelBuilder::new();
    let scores = b.input(F32, &[1, 2]);
    let boxes = b.constant_f32(&[1, 8], &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    let split = b.constant_i32(&[1], &[0]);
    let half = b.scalar_f32(0.5);
    let (no_limit, hard) = (b.scalar_i32(-1), b.scalar_i32(0));
    let inputs = [scores, boxes, split, half, no_limit, hard, half, half, half];
    let left = b.operation(
        OperationType::BoxWithNmsLimit,
        &inputs,
        &[
            OutputSpec::new(F32, &[0]),
            OutputSpec::new(F32, &[0, 4]),
            OutputSpec::new(I32, &[0]),
            OutputSpec::new(I32, &[0]),
        ],
    );
    let slope = b.constant_f32(&[1], &[1.0]);
    let none = b.scalar_i32(0);
    let mut inputs = vec![left[0], slope];
    if ty == OperationType::Add {
        inputs.push(none);
    }
    let out = b.result_of(ty, &inputs, OutputSpec::new(F32, &[0]));
    b.output(out);
    let model = b.build().unwrap();
    let prepared = CpuDevice::default().prepare_model(&model, &PrepareOptions::default()).unwrap();

    let bytes: Vec<u8> = [0.0, score].iter().flat_map(|v: &f32| v.to_ne_bytes()).collect();
    let pool = |bytes| RequestPool::Memory(Arc::new(HeapMemory::new(bytes)));
    let argument = |pool_index| RequestArgument {
        location: DataLocation { pool_index, offset: 0, length: 8 },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(1)],
        pools: vec![pool(bytes), pool(vec![0; 8])],
    };
    prepared.execute_synchronously(&request, &ExecutionOptions::default())
}

#[test]
fn an_operation_that_takes_them_gives_an_output_without_elements() {
    let result = scores_through(OperationType::Add, 0.1);
    assert_eq!(result.status, ErrorStatus::None);
    assert_eq!(result.output_shapes[0].dimensions.as_slice(), [0]);
    assert!(result.output_shapes[0].is_sufficient);
}

#[test]
fn an_operation_that_refuses_them_fails_only_when_one_comes() {
    let result = scores_through(OperationType::Prelu, 0.1);
    assert_eq!(result.status, ErrorStatus::GeneralFailure);
    assert!(result.output_shapes.is_empty());
    let result = scores_through(OperationType::Prelu, 0.9);
    assert_eq!(result.status, ErrorStatus::None);
    assert_eq!(result.output_shapes[0].dimensions.as_slice(), [1]);
}

/// A part of `[1, 2]` between bounds that are constants, and what ABS makes of it, which takes no part without
/// elements.
#[test]
fn what_never_has_elements_is_not_supported_where_it_must_have_some() {
    for (end, supported) in [(0, [true, false]), (1, [true, true])] {
        for constant in [false, true] {
            let mut b = ModelBuilder::new();
            let x = match constant {
                true => b.constant_f32(&[2], &[1.0, 2.0]),
                false => b.input(F32, &[2]),
            };
            let bounds = [0, end, 1].map(|value| b.constant_i32(&[1], &[value]));
            let masks = [0; 3].map(|mask| b.scalar_i32(mask));
            let inputs = [&[x][..], &bounds, &masks].concat();
            let part =
                b.result_of(OperationType::StridedSlice, &inputs, OutputSpec::new(F32, &[0]));
            let abs = b.result_of(OperationType::Abs, &[part], OutputSpec::new(F32, &[0]));
            b.output(abs);
            let model = b.build().unwrap();
            let devices: [&dyn Device; 2] = [&CpuDevice::default(), &ReferenceDevice::default()];
            for device in devices {
                assert_eq!(device.supported_operations(&model).unwrap(), supported);
                let prepared = device.prepare_model(&model, &PrepareOptions::default());
                assert_eq!(prepared.is_ok(), supported[1], "{}", device.name());
                if let Err(failure) = prepared {
                    assert_eq!(failure.status, ErrorStatus::GeneralFailure);
                    assert!(failure.to_string().contains("ABS"), "{failure}");
                }
            }
        }
    }
}
