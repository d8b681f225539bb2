//! What an overrun becomes. What the device computes is tested from outside.

use burst_hal::validate::GraphId;
use burst_hal::{
    ErrorStatus, Failure, MemoryCharge, ModelBuilder, OperandType, OperationType, OutputSpec,
};

use super::graphs::Graphs;
use super::interpreter::check_guards;
use crate::error::DriverError;
use crate::guarded::GuardedBytes;
use crate::op::Budget;
use crate::registry::Registry;

#[test]
fn an_overrun_is_a_general_failure_that_names_operation_and_operand() {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[2]);
    let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[2]));
    b.output(y);
    let model = b.build().unwrap();
    let graphs = Graphs::of(&model, &Registry::default(), &Budget::default()).unwrap();
    let graph = &graphs.main;
    assert_eq!(graph.id, GraphId::Main);

    let mut written = GuardedBytes::zeroed(8, MemoryCharge::default()).unwrap();
    let read = GuardedBytes::zeroed(8, MemoryCharge::default()).unwrap();
    assert!(check_guards([(0, &read), (1, &written)].into_iter()).is_ok());
    // As a kernel would that computes one element too many.
    let end = written.with_guards().len() / 2 + 4;
    written.with_guards()[end..end + 4].fill(0);
    let cause = check_guards([(0, &read), (1, &written)].into_iter()).unwrap_err();
    let error = graph.error(&graph.rows[0], cause);
    assert!(matches!(error, DriverError::Operation { index: 0, .. }), "{error}");
    let failure = Failure::from(error);
    assert_eq!(failure.status, ErrorStatus::GeneralFailure);
    let text = failure.to_string();
    assert!(text.contains("FLOOR") && text.contains("operand 1"), "{text}");
}
