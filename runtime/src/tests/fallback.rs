//! Devices that fail: what the application gets, and who computed it.

use std::sync::Arc;

use burst_hal::{ErrorStatus, OperationType, ResultCode};

use super::support::*;
use crate::partition::Plan;
use crate::{Argument, Compilation, Execution, Registry, RuntimeDevice};

use ErrorStatus::{
    DeviceUnavailable, GeneralFailure, InvalidArgument, MissedDeadlineTransient,
    ResourceExhaustedPersistent,
};

/// Everything that a device can do wrong in an execution.
const FAULTS: [Fault; 8] = [
    Fault::Execute(GeneralFailure),
    Fault::Execute(DeviceUnavailable),
    Fault::Execute(InvalidArgument),
    Fault::Execute(MissedDeadlineTransient),
    Fault::Execute(ResourceExhaustedPersistent),
    Fault::Execute(ErrorStatus::OutputInsufficientSize),
    Fault::Shapes,
    Fault::Insufficient,
];

#[test]
fn a_model_falls_into_the_steps_of_its_devices() {
    let two = two();
    let compilation = compiled(&chain(), &two.registry);
    let Plan::Compound(graph) = &*compilation.plan().unwrap() else { panic!("one device") };
    assert_eq!(graph.steps.len(), 3);
    assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT);
    assert_eq!((two.adder.executed(), two.multiplier.executed()), (2, 1));
}

#[test]
fn whatever_fails_in_whichever_step_the_answer_is_right_where_others_may_help() {
    let two = two();
    let compilation = compiled(&chain(), &two.registry);
    for fault in FAULTS {
        for faulty in [vec![&two.adder], vec![&two.multiplier], vec![&two.adder, &two.multiplier]] {
            faulty.iter().for_each(|hand| hand.set(fault));
            let found = run(&compilation, &CHAIN_IN);
            assert_eq!(found.unwrap(), CHAIN_OUT, "{fault:?} of {}", faulty.len());
            faulty.iter().for_each(|hand| hand.set(Fault::Nothing));
        }
    }
}

#[test]
fn whatever_fails_is_told_where_no_other_may_help() {
    let two = two();
    let [adder, multiplier, _] = two.registry.devices() else { panic!() };
    let devices = [adder.clone(), multiplier.clone()];
    let compilation = Compilation::for_devices(&chain(), &devices).unwrap();
    compilation.finish().unwrap();
    for fault in FAULTS {
        let want = match fault {
            Fault::Execute(ErrorStatus::OutputInsufficientSize) => ResultCode::OpFailed,
            Fault::Execute(status) => status.into(),
            _ => ResultCode::OpFailed,
        };
        for hand in [&two.adder, &two.multiplier] {
            hand.set(fault);
            assert_eq!(code(run(&compilation, &CHAIN_IN)), want, "{fault:?}");
            hand.set(Fault::Nothing);
            assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT);
        }
    }
}

#[test]
fn a_device_that_panics_has_failed_and_nobody_else() {
    let (device, hand) = faulty("adder", &[OperationType::Add, OperationType::Mul]);
    let device = RuntimeDevice::local(device).unwrap();
    let compilation = Compilation::for_devices(&chain(), &[device]).unwrap();
    compilation.finish().unwrap();
    hand.set(Fault::Panic);
    let (broken, _) = execution(&compilation, &CHAIN_IN);
    assert_eq!(code(broken.compute()), ResultCode::OpFailed);
    assert_eq!(code(broken.compute()), ResultCode::BadState, "it has ended");
    let (started, _) = execution(&compilation, &CHAIN_IN);
    assert_eq!(started.start_compute().unwrap().wait(), ResultCode::OpFailed);
    hand.set(Fault::Nothing);
    assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT);
}

#[test]
fn a_device_that_does_not_say_what_it_runs_runs_nothing() {
    for fault in [Fault::Query, Fault::Count] {
        let two = two();
        two.adder.set(fault);
        let compilation = compiled(&chain(), &two.registry);
        assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT, "{fault:?}");
        assert_eq!(two.adder.prepared(), 0);
        assert_eq!(two.multiplier.executed(), 1);
    }
}

#[test]
fn a_device_that_does_not_prepare_leaves_the_model_to_the_reference() {
    for status in [GeneralFailure, DeviceUnavailable, ResourceExhaustedPersistent] {
        let two = two();
        two.multiplier.set(Fault::Prepare(status));
        let compilation = compiled(&chain(), &two.registry);
        assert!(matches!(&*compilation.plan().unwrap(), Plan::Simple { device: 2 }));
        assert_eq!(run(&compilation, &CHAIN_IN).unwrap(), CHAIN_OUT, "{status}");
        assert_eq!((two.adder.executed(), two.multiplier.executed()), (0, 0));
    }
    // What the device finds wrong with the model is the application's fault.
    let two = two();
    two.multiplier.set(Fault::Prepare(InvalidArgument));
    let compilation = Compilation::new(&chain(), &two.registry).unwrap();
    assert_eq!(code(compilation.finish()), ResultCode::BadData);
}

#[test]
fn a_device_that_says_nothing_of_itself_is_none() {
    let (device, hand) = faulty("mute", &[OperationType::Add]);
    hand.set(Fault::Capabilities);
    assert_eq!(code(RuntimeDevice::local(device)), ResultCode::OpFailed);
}

#[test]
fn too_little_room_is_final_with_the_shapes_of_all_outputs() {
    // Two devices, two outputs of unknown size; the one that runs last has too little room.
    let two = two();
    let net = Net::new();
    let (x, none) = (net.floats(&[0]), net.int(0));
    let (sum, product) = (net.floats(&[0]), net.floats(&[0]));
    net.run(OperationType::Add, &[x, x, none], sum);
    net.run(OperationType::Mul, &[x, x, none], product);
    let model = net.finish(&[x], &[sum, product]);
    let compilation = compiled(&model, &two.registry);
    let start = |rooms: [usize; 2]| {
        let execution = Execution::new(&compilation).unwrap();
        execution.set_input(0, Some(&floats(&[3])), host(&[1.0, 2.0, 3.0])).unwrap();
        for (index, room) in (0..).zip(rooms) {
            execution.set_output(index, None, Argument::Host(heap(room))).unwrap();
        }
        assert_eq!(code(execution.compute()), ResultCode::OutputInsufficientSize);
        let insufficient = |index| execution.output_operand_dimensions(index);
        [insufficient(0), insufficient(1)]
    };
    let little = (ResultCode::OutputInsufficientSize, Some(vec![3]));
    let Plan::Compound(graph) = &*compilation.plan().unwrap() else { panic!("one device") };
    let first = usize::from(graph.steps[0].outputs() == [product]);
    let (second, mut rooms) = (1 - first, [4, 4]);
    rooms[first] = 12;
    let found = start(rooms);
    assert_eq!(found[first], (ResultCode::NoError, Some(vec![3])));
    assert_eq!(found[second], little);
    assert_eq!((two.adder.executed(), two.multiplier.executed()), (1, 1), "nobody tried again");
    // The other way round the second step is never run, and nothing is known of its output.
    rooms.reverse();
    let found = start(rooms);
    assert_eq!(found[first], little);
    assert_eq!(found[second], (ResultCode::NoError, Some(vec![0])));
}

#[test]
fn a_value_of_unknown_size_between_devices_is_left_to_one() {
    let two = two();
    let net = Net::new();
    let (x, none) = (net.floats(&[0]), net.int(0));
    let (sum, y) = (net.floats(&[0]), net.floats(&[0]));
    net.run(OperationType::Add, &[x, x, none], sum);
    net.run(OperationType::Mul, &[sum, x, none], y);
    let model = net.finish(&[x], &[y]);
    let compilation = compiled(&model, &two.registry);
    let execution = Execution::new(&compilation).unwrap();
    execution.set_input(0, Some(&floats(&[2])), host(&[1.0, 3.0])).unwrap();
    let output = heap(8);
    execution.set_output(0, None, Argument::Host(output.clone())).unwrap();
    execution.compute().unwrap();
    assert_eq!(values(&output.to_vec()), [2.0, 18.0]);
    assert_eq!(two.adder.executed() + two.multiplier.executed(), 0);
    let named: Vec<Arc<RuntimeDevice>> = two.registry.devices()[..2].to_vec();
    let compilation = Compilation::for_devices(&model, &named).unwrap();
    assert_eq!(code(compilation.finish()), ResultCode::OpFailed);
}

#[test]
fn more_arguments_than_a_request_has_pools_are_put_into_one() {
    let net = Net::new();
    let inputs: Vec<u32> = (0..300).map(|_| net.floats(&[1])).collect();
    let (axis, y) = (net.int(0), net.floats(&[300]));
    let list: Vec<u32> = inputs.iter().copied().chain([axis]).collect();
    net.run(OperationType::Concatenation, &list, y);
    let model = net.finish(&inputs, &[y]);
    let compilation = compiled(&model, &Registry::of(vec![reference()]));
    let execution = Execution::new(&compilation).unwrap();
    for index in 0..300_i16 {
        execution.set_input(index.into(), None, host(&[f32::from(index)])).unwrap();
    }
    let output = heap(1200);
    execution.set_output(0, None, Argument::Host(output.clone())).unwrap();
    execution.compute().unwrap();
    let want: Vec<f32> = (0..300_i16).map(f32::from).collect();
    assert_eq!(values(&output.to_vec()), want);
}
