//! Devices of this process: what they say of themselves, and older versions among them.

use std::sync::Arc;

use burst_driver::{CpuDevice, ReferenceDevice};
use burst_hal::versions::{AdaptedDevice, LimitedDevice, OldDevice};
use burst_hal::{DeviceType, HalVersion, OperationType, ResultCode};

use super::support::*;
use crate::{Compilation, Registry, RuntimeDevice};

#[test]
fn a_device_says_what_it_said_once() {
    let cpu = RuntimeDevice::local(Arc::new(CpuDevice::default())).unwrap();
    assert_eq!((cpu.name(), cpu.device_type()), ("cpu", DeviceType::Cpu));
    assert!(cpu.version().starts_with("burst-cpu"));
    assert_eq!((cpu.feature_level(), cpu.is_reference()), (30, false));
    assert!(!cpu.supports_extension("no.such"));
    assert_eq!(code(cpu.wait()), ResultCode::NoError);
    let last = RuntimeDevice::reference(Arc::new(ReferenceDevice::default())).unwrap();
    assert_eq!((last.name(), last.is_reference()), ("nnapi-reference", true));
    let registry = Registry::of(vec![cpu, last]);
    assert_eq!(registry.reference().unwrap().name(), "nnapi-reference");
}

#[test]
fn a_driver_of_an_older_version_has_its_level_and_what_its_version_can_say() {
    let cpu = || Arc::new(CpuDevice::default());
    for (version, level) in [(HalVersion::V1_0, 27), (HalVersion::V1_1, 28), (HalVersion::V1_2, 29)]
    {
        let limited = Arc::new(LimitedDevice::new(cpu()));
        let old = match version {
            HalVersion::V1_0 => OldDevice::V1_0(limited),
            HalVersion::V1_1 => OldDevice::V1_1(limited),
            _ => OldDevice::V1_2(limited),
        };
        let device = RuntimeDevice::local(Arc::new(AdaptedDevice::new(old))).unwrap();
        assert_eq!(device.feature_level(), level);
        // HARD_SWISH came with 1.3, ADD is as old as the HAL.
        let net = Net::new();
        let (x, none) = (net.floats(&[4]), net.int(0));
        let (sum, y) = (net.floats(&[4]), net.floats(&[4]));
        net.run(OperationType::Add, &[x, x, none], sum);
        net.run(OperationType::HardSwish, &[sum], y);
        let model = net.finish(&[x], &[y]);
        let devices = std::slice::from_ref(&device);
        assert_eq!(model.supported_operations(devices).unwrap(), [true, false], "{version}");
        let registry = Registry::of(vec![device.clone(), reference()]);
        let compilation = Compilation::new(&chain(), &registry).unwrap();
        compilation.finish().unwrap();
        assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT, "{version}");
        let named = Compilation::for_devices(&chain(), devices).unwrap();
        named.finish().unwrap();
        assert_eq!(run(&named, &CHAIN_IN).unwrap(), CHAIN_OUT, "{version}");
    }
}
