//! What of a model and of everything around it an older version can say.

use std::time::Duration;

use super::super::*;
use super::{relu, request};
use crate::validate::{validate_model, validate_model_of};
use crate::{
    Capabilities, CapabilitiesV1_0, CapabilitiesV1_1, ErrorStatus, ExecutionOptions,
    ExecutionPreference, HalVersion, Model, ModelBuilder, OperandLifeTime, OperandType,
    OperationType, OutputSpec, PerformanceInfo, PrepareOptions, Priority, RequestPool, TimePoint,
};

/// ABS of 1.2 between a SOFTMAX and a FLOOR of 1.0, and an ELU of 1.3 at the end; all of it also goes out.
fn mixed() -> Model {
    let mut b = ModelBuilder::new();
    let spec = OutputSpec::f32(&[2, 3]);
    let unused = b.scalar_bool(true);
    let x = b.input(OperandType::TensorFloat32, &[2, 3]);
    let (beta, axis, alpha) = (b.scalar_f32(1.0), b.scalar_i32(-1), b.scalar_f32(1.0));
    let soft = b.result_of(OperationType::Softmax, &[x, beta, axis], spec.clone());
    let abs = b.result_of(OperationType::Abs, &[soft], spec.clone());
    let floor = b.result_of(OperationType::Floor, &[abs], spec.clone());
    let elu = b.result_of(OperationType::Elu, &[floor, alpha], spec);
    b.output(elu);
    b.relaxed(true);
    let mut model = b.build().unwrap();
    model.main.operands[unused as usize].lifetime = OperandLifeTime::ConstantCopy;
    model
}

#[test]
fn a_slice_is_a_legal_model_of_what_the_version_has() {
    let model = mixed();
    for (version, operations, inputs, outputs) in [
        (HalVersion::V1_0, vec![0, 2], 2, 2),
        (HalVersion::V1_1, vec![0, 2], 2, 2),
        (HalVersion::V1_2, vec![0, 1, 2], 1, 1),
        (HalVersion::V1_3, vec![0, 1, 2, 3], 1, 1),
    ] {
        let slice = slice(&model, version).unwrap();
        assert_eq!(slice.operations, operations, "{version}");
        assert_eq!(validate_model_of(&slice.model, version), Ok(()), "{version}");
        let graph = &slice.model.main;
        assert_eq!((graph.input_indexes.len(), graph.output_indexes.len()), (inputs, outputs));
        let kept = operations.iter().map(|index| model.main.operations[*index as usize].ty);
        assert!(graph.operations.iter().map(|one| one.ty).eq(kept), "{version}");
    }
    let old = slice(&model, HalVersion::V1_0).unwrap().model.main;
    // The scalars that nothing reads any more, and the axis, are gone.
    assert!(old.operands.iter().all(|operand| operand.ty != OperandType::Bool));
    assert_eq!(old.operations[0].inputs.len(), 2, "the last axis is the default");
    let read = old.operations[1].inputs[0];
    assert_eq!(old.operands[read as usize].lifetime, OperandLifeTime::SubgraphInput);
}

#[test]
fn nothing_to_show_is_no_slice() {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[2]);
    let y = b.result_of(OperationType::Abs, &[x], OutputSpec::f32(&[2]));
    b.output(y);
    assert!(slice(&b.build().unwrap(), HalVersion::V1_1).is_none());
}

#[test]
fn a_model_loses_what_makes_no_difference_and_keeps_its_interface() {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[2, 3]);
    let (beta, axis) = (b.scalar_f32(1.0), b.scalar_i32(-1));
    let layout = b.scalar_bool(false);
    let spec = OutputSpec::f32(&[2, 3]);
    let y = b.result_of(OperationType::Softmax, &[x, beta, axis], spec.clone());
    let one = b.scalar_i32(1);
    let z = b.result_of(OperationType::DepthToSpace, &[y, one, layout], spec);
    b.output(z);
    b.relaxed(true);
    let model = b.build().unwrap();
    let left_out = |operation| Loss::DefaultInputs { operation, count: 1 };
    for (version, lost) in [
        (HalVersion::V1_0, vec![Loss::RelaxedComputation, left_out(0), left_out(1)]),
        (HalVersion::V1_1, vec![left_out(0), left_out(1)]),
        (HalVersion::V1_2, vec![]),
    ] {
        let converted = model_to(&model, version).unwrap();
        assert_eq!(converted.lost, lost, "{version}");
        assert_eq!(validate_model_of(&converted.value, version), Ok(()), "{version}");
        let is_relaxed = converted.value.relax_computation_float32_to_float16;
        assert_eq!(is_relaxed, version >= HalVersion::V1_1);
        let graph = &converted.value.main;
        let input = &graph.operands[graph.input_indexes[0] as usize];
        assert_eq!((input.dimensions.as_slice(), graph.output_indexes.len()), (&[2, 3][..], 1));
    }
    let old = ModelV1_0::of(&model).unwrap().value;
    assert_eq!(old.main.operands.len(), model.main.operands.len() - 2);
    assert!(validate_model(&Model::from(old), HalVersion::V1_0).is_ok());
    let compliance = ModelV1_1::of(&mixed()).unwrap_err();
    assert_eq!(compliance.noncompliant_operations, [1, 3]);
    let newer = ModelV1_2::of(&model).unwrap().value;
    assert!(Model::from(newer).relax_computation_float32_to_float16);
    assert!(Model::from(ModelV1_1::of(&relu()).unwrap().value).main == relu().main);
}

#[test]
fn tokens_came_with_1_3() {
    let (mut request, _) = request(8);
    assert_eq!(RequestV1_0::of(&request).unwrap().pools.len(), 1);
    request.pools.push(RequestPool::Token(7));
    assert!(request_to(&request, HalVersion::V1_3).is_ok());
    let refused = RequestV1_0::of(&request).unwrap_err();
    assert_eq!(refused.status, ErrorStatus::InvalidArgument);
}

#[test]
fn options_keep_what_the_version_has() {
    let deadline = Some(TimePoint { nanos: 1 });
    let all = PrepareOptions {
        preference: ExecutionPreference::LowPower,
        priority: Priority::High,
        deadline,
    };
    let (preference, priority) =
        (Loss::Preference(ExecutionPreference::LowPower), Loss::Priority(Priority::High));
    for (version, lost) in [
        (HalVersion::V1_0, vec![preference, priority, Loss::Deadline]),
        (HalVersion::V1_2, vec![priority, Loss::Deadline]),
        (HalVersion::V1_3, vec![]),
    ] {
        let converted = prepare_options_to(&all, version);
        assert_eq!(converted.lost, lost, "{version}");
        let again = prepare_options_to(&converted.value, version);
        assert_eq!(again, Converted { value: converted.value, lost: vec![] });
    }
    let loop_timeout = Some(Duration::from_secs(1));
    let all = ExecutionOptions { measure_timing: true, deadline, loop_timeout };
    for (version, lost) in [
        (HalVersion::V1_1, vec![Loss::Timing, Loss::Deadline, Loss::LoopTimeout]),
        (HalVersion::V1_2, vec![Loss::Deadline, Loss::LoopTimeout]),
        (HalVersion::V1_3, vec![]),
    ] {
        let converted = execution_options_to(&all, version);
        assert_eq!(converted.lost, lost, "{version}");
        assert_eq!(converted.value.measure_timing, version >= HalVersion::V1_2);
    }
    let missed = ErrorStatus::MissedDeadlineTransient;
    let told = status_to(missed, HalVersion::V1_2);
    assert_eq!((told.value, told.lost), (ErrorStatus::GeneralFailure, vec![Loss::Status(missed)]));
    assert_eq!(status_to(missed, HalVersion::V1_3).value, missed);
}

#[test]
fn capabilities_go_down_to_what_the_version_asks() {
    let info = |exec_time| PerformanceInfo { exec_time, power_usage: 1.0 };
    let capabilities = Capabilities {
        relaxed_float32_to_float16_scalar: info(7.0),
        relaxed_float32_to_float16_tensor: info(8.0),
        operand_performance: vec![
            (OperandType::TensorFloat32, info(1.0)),
            (OperandType::TensorQuant8Asymm, info(2.0)),
            (OperandType::TensorFloat16, info(3.0)),
            (OperandType::TensorQuant8AsymmSigned, info(4.0)),
        ],
        if_performance: info(5.0),
        while_performance: info(6.0),
    };
    let newest = capabilities_to_v1_2(&capabilities);
    assert_eq!(newest.value.operand_performance, capabilities.operand_performance[..3]);
    let signed = Loss::Performance(OperandType::TensorQuant8AsymmSigned);
    assert_eq!(newest.lost, [signed, Loss::ControlFlowPerformance]);
    let middle = capabilities_to_v1_1(&capabilities);
    let want = CapabilitiesV1_1 {
        float32: info(1.0),
        quantized8: info(2.0),
        relaxed_float32_to_float16: info(8.0),
    };
    assert_eq!(middle.value, want);
    assert_eq!(middle.lost.len(), 4, "{:?}", middle.lost);
    let oldest = capabilities_to_v1_0(&capabilities);
    let want = CapabilitiesV1_0 { float32: info(1.0), quantized8: info(2.0) };
    assert_eq!(oldest.value, want);
    for loss in oldest.lost {
        assert!(!loss.to_string().is_empty());
    }
}
