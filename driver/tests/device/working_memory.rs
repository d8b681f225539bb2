//! A model that needs more working memory than one may have is not supported, rather than supported and then
//! refused.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use burst_driver::CpuDevice;
use burst_hal::{
    Device, ErrorStatus, Model, ModelBuilder, OperandType, OperationType, OutputSpec,
    PrepareOptions,
};

/// Floats of a tensor of 1 GiB; two are all that a model may have.
const GIBI: u32 = 1 << 28;

fn out(dims: &[u32]) -> OutputSpec {
    OutputSpec::new(OperandType::TensorFloat32, dims)
}

/// Two RELUs in a row, one behind an operation that is never supported where `is_broken`.
fn row(size: u32, is_broken: bool) -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[size]);
    let y = b.result_of(OperationType::Relu, &[x], out(&[size]));
    let z = b.result_of(OperationType::Relu, &[y], out(&[size]));
    b.output(z);
    if is_broken {
        let oem = b.result_of(OperationType::OemOperation, &[z], out(&[1]));
        b.output(oem);
    }
    b.build().unwrap()
}

/// An IF of two such graphs; the main graph itself needs little.
fn within_control_flow(size: u32) -> Model {
    let mut b = ModelBuilder::new();
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let one = b.input(OperandType::TensorFloat32, &[1]);
    let graph = b.referenced(|b| {
        let x = b.input(OperandType::TensorFloat32, &[1]);
        let list = b.constant_i32(&[1], &[size.cast_signed()]);
        let tiled = b.result_of(OperationType::Tile, &[x, list], out(&[]));
        let (list, none) = (b.constant_i32(&[1], &[0]), b.scalar_i32(0));
        let sum = b.result_of(OperationType::Mean, &[tiled, list, none], out(&[]));
        b.output(sum);
    });
    let [then, otherwise] = [b.subgraph(graph), b.subgraph(graph)];
    let y = b.result_of(OperationType::If, &[condition, then, otherwise, one], out(&[]));
    b.output(y);
    b.build().unwrap()
}

fn assert_supported_means_preparable(model: &Model, want: &[bool]) {
    let device = CpuDevice::default();
    assert_eq!(device.supported_operations(model).unwrap(), want);
    let prepared = device.prepare_model(model, &PrepareOptions::default());
    let status = prepared.err().map(|failure| failure.status);
    if want.iter().all(|supported| *supported) {
        assert_eq!(status, None);
    } else {
        assert!(status.is_some());
    }
}

#[test]
fn what_needs_too_much_working_memory_is_not_supported() {
    assert_supported_means_preparable(&row(GIBI, false), &[true; 2]);
    assert_supported_means_preparable(&row(GIBI + 16, false), &[false; 2]);
    assert_supported_means_preparable(&row(GIBI + 16, true), &[false; 3]);
    assert_supported_means_preparable(&row(GIBI - 16, true), &[true, true, false]);
    assert_supported_means_preparable(&within_control_flow(GIBI), &[true]);
    assert_supported_means_preparable(&within_control_flow(2 * GIBI), &[false]);
    let refused =
        CpuDevice::default().prepare_model(&row(GIBI + 16, false), &PrepareOptions::default());
    assert_eq!(refused.err().unwrap().status, ErrorStatus::ResourceExhaustedPersistent);
}
