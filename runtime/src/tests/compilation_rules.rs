//! Compilations: what may be set, and when.

use std::path::Path;
use std::sync::Arc;

use burst_hal::{ErrorStatus, OperationType, ResultCode};

use super::support::*;
use crate::{Burst, Compilation, Execution, MemoryDesc, Model, Registry, RuntimeDevice};

use ResultCode::{
    BadData, BadState, MissedDeadlinePersistent, NoError, OpFailed, UnavailableDevice,
};

#[test]
fn a_compilation_is_of_a_finished_model_for_devices_that_stand_there_once() {
    let registry = Registry::of(vec![reference()]);
    let invalid = Model::new();
    drop(invalid.finish());
    for model in [Model::new(), invalid] {
        assert_eq!(code(Compilation::new(&model, &registry)), BadState);
        assert_eq!(code(Compilation::for_devices(&model, &[reference()])), BadState);
    }
    let model = chain();
    assert_eq!(code(Compilation::for_devices(&model, &[])), BadData);
    assert_eq!(code(Compilation::for_devices(&model, &[reference(), reference()])), BadData);
    let nowhere = Compilation::new(&model, &Registry::of(Vec::new())).unwrap();
    assert_eq!(code(nowhere.finish()), UnavailableDevice);
}

#[test]
fn what_is_set_has_a_meaning_and_is_set_before_the_end() {
    let model = chain();
    let one = Compilation::for_devices(&model, &[reference()]).unwrap();
    let any = Compilation::new(&model, &Registry::of(vec![reference()])).unwrap();
    for (preference, want) in
        [(0, NoError), (1, NoError), (2, NoError), (3, BadData), (-1, BadData)]
    {
        assert_eq!(code(one.set_preference(preference)), want, "{preference}");
    }
    for (priority, want) in [(90, NoError), (100, NoError), (110, NoError), (0, BadData)] {
        assert_eq!(code(one.set_priority(priority)), want, "{priority}");
    }
    assert_eq!(code(one.set_timeout(0)), NoError);
    assert_eq!(code(any.set_timeout(1)), BadData, "not for one named device");
    assert_eq!(code(one.set_caching(Path::new("/none"), [0; 32])), NoError);
    for compilation in [&one, &any] {
        assert_eq!(code(Execution::new(compilation)), BadState, "not finished");
        assert_eq!(code(Burst::new(compilation)), BadState);
        assert_eq!(code(compilation.plan()), BadState);
        assert_eq!(code(compilation.preferred_memory_alignment_for_input(0)), BadState);
        assert_eq!(code(MemoryDesc::new().add_input_role(compilation, 0, 1.0)), BadData);
        compilation.finish().unwrap();
        for (what, found) in [
            ("finish", compilation.finish()),
            ("preference", compilation.set_preference(1)),
            ("priority", compilation.set_priority(100)),
            ("time-out", compilation.set_timeout(1)),
            ("caching", compilation.set_caching(Path::new("/none"), [0; 32])),
        ] {
            assert_eq!(code(found), BadState, "{what}");
        }
        for preferred in [
            compilation.preferred_memory_alignment_for_input(0),
            compilation.preferred_memory_alignment_for_output(0),
            compilation.preferred_memory_padding_for_input(0),
            compilation.preferred_memory_padding_for_output(0),
        ] {
            assert!(preferred.unwrap().is_power_of_two());
        }
        assert_eq!(code(compilation.preferred_memory_alignment_for_input(1)), BadData);
        assert_eq!(code(compilation.preferred_memory_padding_for_output(u32::MAX)), BadData);
    }
}

#[test]
fn a_compilation_that_failed_is_finished_and_serves_for_nothing() {
    let (device, hand) = faulty("adder", &[OperationType::Add, OperationType::Mul]);
    let device = RuntimeDevice::local(device).unwrap();
    hand.set(Fault::Prepare(ErrorStatus::GeneralFailure));
    let compilation = Compilation::for_devices(&chain(), &[device]).unwrap();
    assert_eq!(code(compilation.finish()), OpFailed);
    assert_eq!(code(compilation.finish()), BadState);
    assert_eq!(code(Execution::new(&compilation)), BadState);
    assert_eq!(code(Burst::new(&compilation)), BadState);
    assert_eq!(code(MemoryDesc::new().add_input_role(&compilation, 0, 1.0)), BadData);
}

#[test]
fn named_devices_run_all_of_a_model_or_it_is_not_compiled() {
    let two = two();
    let [adder, multiplier, _] = two.registry.devices() else { panic!() };
    let model = chain();
    let compile = |devices: &[Arc<RuntimeDevice>]| {
        let compilation = Compilation::for_devices(&model, devices).unwrap();
        compilation.finish().map(|()| compilation)
    };
    assert_eq!(code(compile(std::slice::from_ref(adder))), BadData, "nobody multiplies");
    let both = compile(&[adder.clone(), multiplier.clone()]).unwrap();
    assert_eq!(run(&both, &CHAIN_IN).unwrap(), CHAIN_OUT);
    for (status, want) in [
        (ErrorStatus::GeneralFailure, OpFailed),
        (ErrorStatus::InvalidArgument, BadData),
        (ErrorStatus::ResourceExhaustedTransient, ResultCode::ResourceExhaustedTransient),
        (ErrorStatus::DeviceUnavailable, UnavailableDevice),
        (ErrorStatus::MissedDeadlinePersistent, MissedDeadlinePersistent),
    ] {
        two.multiplier.set(Fault::Prepare(status));
        assert_eq!(code(compile(&[adder.clone(), multiplier.clone()])), want, "{status}");
        two.multiplier.set(Fault::Nothing);
    }
}

#[test]
fn a_time_that_has_passed_ends_the_compilation() {
    let compilation = Compilation::for_devices(&chain(), &[reference()]).unwrap();
    compilation.set_timeout(1).unwrap();
    assert_eq!(code(compilation.finish()), MissedDeadlinePersistent);
}

#[test]
fn a_device_that_does_not_look_at_the_deadline_ends_the_compilation_too() {
    let (device, hand) = faulty("late", &[OperationType::Add, OperationType::Mul]);
    let device = RuntimeDevice::local(device).unwrap();
    hand.set(Fault::Late);
    let compilation = Compilation::for_devices(&chain(), &[device]).unwrap();
    compilation.set_timeout(10_000_000).unwrap();
    assert_eq!(code(compilation.finish()), MissedDeadlinePersistent);
    // Where the machine was too slow to ask it at all, that is the same.
    assert!(hand.prepared() <= 1);
}
