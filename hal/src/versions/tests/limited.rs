//! A current device as an older driver, and back.

use std::sync::Arc;
use std::sync::mpsc::channel;

use super::super::*;
use super::{relu, request};
use crate::*;

/// Runs everything, by leaving the output as it is; misses every deadline that it is given in time.
struct Anything;

impl Device for Anything {
    fn name(&self) -> &str {
        "anything"
    }
    fn version_string(&self) -> &str {
        "1"
    }
    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }
    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(Anything))
    }
}

impl PreparedModel for Anything {
    fn execute_synchronously(&self, _: &Request, options: &ExecutionOptions) -> ExecutionResult {
        ExecutionResult::of(match options.measure_timing {
            true => ErrorStatus::ResourceExhaustedPersistent,
            false => ErrorStatus::None,
        })
    }
}

fn integers() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorInt32, &[2]);
    let none = b.scalar_i32(0);
    let sum = OutputSpec::new(OperandType::TensorInt32, &[2]);
    let y = b.result_of(OperationType::Add, &[x, x, none], sum);
    b.output(y);
    b.build().unwrap()
}

#[test]
fn a_limited_device_refuses_what_is_newer() {
    let limited = LimitedDevice::new(Arc::new(Anything));
    let new = ModelV1_1::taken_from(integers());
    let refused = DeviceV1_1::supported_operations(&limited, &new).unwrap_err();
    assert_eq!(refused.status, ErrorStatus::InvalidArgument);
    assert!(refused.to_string().contains("HAL 1.1 has no ADD of these operands"), "{refused}");
    let new = ModelV1_2::taken_from(integers());
    let preference = ExecutionPreference::LowPower;
    let refused = DeviceV1_2::prepare_model(&limited, &new, preference, None).err().unwrap();
    assert_eq!(refused.status, ErrorStatus::InvalidArgument);
    let old = ModelV1_0::of(&relu()).unwrap().value;
    assert_eq!(DeviceV1_0::supported_operations(&limited, &old).unwrap(), [true]);
}

#[test]
fn a_limited_model_takes_known_sizes_and_tells_old_statuses() {
    let limited = LimitedDevice::new(Arc::new(Anything));
    let mut open = relu();
    open.main.operands[1].dimensions[0] = 0;
    let old = ModelV1_0::of(&open).unwrap().value;
    let prepared = DeviceV1_0::prepare_model(&limited, &old).ok().unwrap();
    let (tell, told) = channel();
    let callback = Box::new(move |status| tell.send(status).unwrap());
    let answer = prepared.execute(RequestV1_0::of(&request(8).0).unwrap(), callback);
    let invalid = ErrorStatus::InvalidArgument;
    assert_eq!(answer.unwrap_err().status, invalid);
    assert_eq!(told.iter().collect::<Vec<_>>(), [invalid]);

    let model = ModelV1_2::of(&open).unwrap().value;
    let preference = ExecutionPreference::FastSingleAnswer;
    let prepared = DeviceV1_2::prepare_model(&limited, &model, preference, None).ok().unwrap();
    let request = RequestV1_0::of(&request(8).0).unwrap();
    assert_eq!(prepared.execute_synchronously(&request, false).status, ErrorStatus::None);
    let general = ErrorStatus::GeneralFailure;
    assert_eq!(prepared.execute_synchronously(&request, true).status, general);
    let mut result = ExecutionResult::of(ErrorStatus::None);
    let mut burst = Arc::clone(&prepared).open_burst().unwrap();
    burst.execute(&request, true, &mut result);
    assert_eq!(result.status, general);
    burst.execute(&request, false, &mut result);
    assert_eq!(result.status, ErrorStatus::None);
    burst.execute(&RequestV1_0::default(), false, &mut result);
    assert_eq!(result.status, invalid);
}

#[test]
fn a_limited_device_behind_the_adapter_does_not_support_what_is_newer() {
    let limited = Arc::new(LimitedDevice::new(Arc::new(Anything)));
    let of = |version: OldDevice| AdaptedDevice::new(version);
    for device in [
        of(OldDevice::V1_0(Arc::clone(&limited) as _)),
        of(OldDevice::V1_1(Arc::clone(&limited) as _)),
        of(OldDevice::V1_2(Arc::clone(&limited) as _)),
    ] {
        assert_eq!(device.supported_operations(&integers()).unwrap(), [false]);
        assert_eq!(device.supported_operations(&relu()).unwrap(), [true]);
        let prepared = device.prepare_model(&relu(), &PrepareOptions::default()).ok().unwrap();
        let result = prepared.execute_synchronously(&request(8).0, &ExecutionOptions::default());
        assert_eq!(result, ExecutionResult::of(ErrorStatus::None));
    }
}

#[test]
fn what_a_limited_device_cannot_say_is_told() {
    let losses = Arc::new(std::sync::Mutex::new(Vec::new()));
    let listener = Arc::clone(&losses);
    let limited = LimitedDevice::new(Arc::new(Anything));
    let limited = limited.on_loss(move |loss| listener.lock().unwrap().push(*loss));
    let told = || std::mem::take(&mut *losses.lock().unwrap());
    DeviceV1_0::capabilities(&limited).unwrap();
    let control_flow = Loss::ControlFlowPerformance;
    assert_eq!(told(), [Loss::RelaxedScalars, control_flow, Loss::RelaxedComputation]);
    DeviceV1_2::capabilities(&limited).unwrap();
    assert_eq!(told(), [control_flow]);
    let model = ModelV1_2::of(&relu()).unwrap().value;
    let preference = ExecutionPreference::FastSingleAnswer;
    let prepared = DeviceV1_2::prepare_model(&limited, &model, preference, None).ok().unwrap();
    let request = RequestV1_0::of(&request(8).0).unwrap();
    prepared.execute_synchronously(&request, true);
    assert_eq!(told(), [Loss::Status(ErrorStatus::ResourceExhaustedPersistent)]);
}
