//! What one version takes, to the letter.

use super::*;
use crate::forms::FormMismatch;
use crate::{ExecutionPreference, Priority, Request, RequestArgument, RequestPool};

const V1_0: HalVersion = HalVersion::V1_0;

/// The first version that takes a model, and what the one before says.
fn since(model: &Model) -> (HalVersion, String) {
    let verdicts = VERSIONS.map(|version| validate_model_of(model, version));
    let taken = verdicts.iter().position(Result::is_ok).expect("the newest takes it");
    assert!(verdicts[taken..].iter().all(Result::is_ok), "{verdicts:?}");
    let before = taken.checked_sub(1).map(|before| verdicts[before].unwrap_err().to_string());
    (VERSIONS[taken], before.unwrap_or_default())
}

#[test]
fn a_version_refuses_what_it_has_no_place_for_by_name() {
    assert_eq!(since(&plain()).0, V1_0);
    let mut relaxed = plain();
    relaxed.relax_computation_float32_to_float16 = true;
    let said = "HAL 1.0 has no flag for relaxed computation";
    assert_eq!(since(&relaxed), (HalVersion::V1_1, said.to_owned()));
    let mut extended = plain();
    extended.extension_name_to_prefix.push(("com.example.a".to_owned(), 1));
    assert_eq!(since(&extended), (HalVersion::V1_2, "HAL 1.1 has no extensions".to_owned()));
    let mut nested = plain();
    nested.referenced.push(plain().main);
    let (version, said) = since(&nested);
    assert_eq!((version, said.as_str()), (HalVersion::V1_3, "HAL 1.2 has no subgraphs"));
}

#[test]
fn a_version_refuses_forms_that_came_later_where_validation_of_types_does_not() {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[1, 2, 2, 4]);
    let (block, layout) = (b.scalar_i32(2), b.scalar_bool(true));
    let spec = OutputSpec::f32(&[1, 1, 4, 2]);
    let y = b.result_of(OperationType::DepthToSpace, &[x, block, layout], spec);
    b.output(y);
    let model = b.build().unwrap();
    // The BOOL itself is of 1.2.
    assert_eq!(since(&model).0, HalVersion::V1_2);
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[2, 3]);
    let beta = b.scalar_f32(1.0);
    let y = b.result_of(OperationType::Softmax, &[x, beta], OutputSpec::f32(&[2, 3]));
    let z = b.result_of(OperationType::L2Normalization, &[y], OutputSpec::f32(&[2, 3]));
    b.output(z);
    let model = b.build().unwrap();
    assert_eq!(validate_model(&model, V1_0), Ok(()), "every type is of 1.0");
    let mismatch = FormMismatch::Newer { since: HalVersion::V1_2 };
    let ty = OperationType::L2Normalization;
    let fault = OperationFault::NoSuchForm { ty, version: V1_0, mismatch };
    assert_eq!(
        validate_model_of(&model, V1_0),
        Err(operation(1, fault)),
        "of four dimensions then"
    );
    assert_eq!(since(&model).0, HalVersion::V1_2);
}

#[test]
fn a_version_refuses_requests_that_came_later() {
    let mut model = plain();
    model.main.operands[Y].dimensions[0] = 0;
    let argument = |pool_index, length| RequestArgument {
        location: DataLocation { pool_index, offset: 0, length },
        ..RequestArgument::default()
    };
    let memory = || RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; 24])));
    let request = |pool: RequestPool, length| Request {
        inputs: vec![argument(0, 24)],
        outputs: vec![argument(1, length)],
        pools: vec![memory(), pool],
    };
    let taken = |request: &Request, model: &Model| {
        VERSIONS.map(|version| validate_request_of(request, model, version).is_ok())
    };
    assert_eq!(taken(&request(memory(), 24), &plain()), [true; 4]);
    let open = request(memory(), 24);
    assert_eq!(taken(&open, &model), [false, false, true, true], "an output of unknown size");
    let token = request(RequestPool::Token(7), 0);
    assert_eq!(taken(&token, &plain()), [false, false, false, true]);
    let error = validate_request_of(&token, &plain(), HalVersion::V1_2).unwrap_err();
    assert_eq!(error.to_string(), "HAL 1.2 has no buffers of the driver");
}

#[test]
fn numbers_stand_for_preferences_and_priorities_or_for_nothing() {
    for code in 0..3 {
        assert_eq!(
            validate_execution_preference(code),
            Ok(ExecutionPreference::from_code(code).unwrap())
        );
        assert_eq!(validate_priority(code), Ok(Priority::from_code(code).unwrap()));
    }
    for code in [-1, 3, i32::MAX] {
        let error = validate_execution_preference(code).unwrap_err();
        assert_eq!(error.to_string(), format!("no execution preference has code {code}"));
        let error = validate_priority(code).unwrap_err();
        assert_eq!(error.to_string(), format!("no priority has code {code}"));
        assert_eq!(error.status(), crate::ErrorStatus::InvalidArgument);
    }
}
