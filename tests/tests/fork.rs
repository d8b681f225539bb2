//! A forked child of a client: every call is refused, and the parent notices nothing.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

mod burst_support;
#[path = "burst_support/peer.rs"]
mod peer;

use std::process::Command;

use burst_client::{BurstOptions, ClientError, StreamOptions};
use burst_hal::Device;
use burst_support::{Private, long, model};
use burst_testing::run_in_forked_child;
use peer::Service;

/// 1 in bit `number` when the outcome is not the refusal.
fn unless_refused<T>(number: u8, outcome: Result<T, ClientError>) -> u8 {
    u8::from(!matches!(outcome, Err(ClientError::Forked))) << number
}

#[test]
fn a_forked_child_is_refused_every_call_and_leaves_its_parent_alone() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let mut burst = Some(prepared.configure_burst(&BurstOptions::default()).unwrap());
    let mut stream = Some(device.stream(&model(), &StreamOptions::default()).unwrap());
    let memory: burst_hal::Pool = std::sync::Arc::new(burst_client::ShmMemory::create(64).unwrap());
    for round in 0..2 {
        let status = run_in_forked_child(|| {
            let mut stream = stream.take().unwrap();
            let mut burst = burst.take().unwrap();
            stream.input(0).fill(9); // must neither fault nor reach the parent's frame
            let bits = unless_refused(0, stream.run(long()))
                | unless_refused(1, client.device_names())
                | unless_refused(2, device.prepare(&model(), &Default::default()))
                | unless_refused(3, prepared.configure_burst(&BurstOptions::default()))
                | unless_refused(4, burst.push_memory(&memory))
                | unless_refused(5, prepared.allocate_outputs(16))
                | u8::from(client.is_alive()) << 6
                | u8::from(device.status() != burst_hal::DeviceStatus::Offline) << 7;
            // Dropping them here tells the service nothing.
            drop((stream, burst));
            bits
        });
        assert_eq!(status.unwrap(), 0, "one bit for each call that was not refused");
        let stream = stream.as_mut().unwrap();
        stream.input(0).fill(round);
        stream.run(long()).unwrap();
        assert_eq!(stream.output(0).unwrap(), [round + 1; 16]);
        burst.as_mut().unwrap().push_memory(&memory).unwrap();
    }
    drop((stream, burst, prepared, device, client));
    service.join();
}

/// From a process that has no threads but its client's when it forks: the child of one with more
/// may find a lock held for ever by a thread that it does not have.
#[test]
fn a_forked_child_can_connect_for_itself() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let _service = Service::start(&path);
    let output = Command::new(env!("CARGO_BIN_EXE_burst_peer"))
        .args(["fork-and-connect", path.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "parent works\nchild works\nparent still works\n");
}

/// The framework's objects in a child: no call locks anything, waits for anything, or reaches a device.
#[test]
fn every_call_of_the_framework_answers_unavailable_device_in_a_forked_child() {
    use neuralnetworks::{
        Argument, Burst, Compilation, Event, Execution, Memory, MemoryDesc, Model, OperandTypeDesc,
        Registry, RuntimeDevice,
    };
    use std::os::fd::AsFd;
    use std::sync::Arc;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let _service = Service::start_as("serve-cpu", &path);
    let device = RuntimeDevice::remote(&path, "cpu").unwrap();
    let devices = std::slice::from_ref(&device);
    let floats = OperandTypeDesc {
        code: burst_hal::OperandType::TensorFloat32.code(),
        dimensions: vec![4],
        ..OperandTypeDesc::default()
    };
    let model = Model::new();
    let (x, y) = (model.add_operand(&floats).unwrap(), model.add_operand(&floats).unwrap());
    model.add_operation(burst_hal::OperationType::Relu.code(), &[x], &[y]).unwrap();
    model.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    model.finish().unwrap();
    let compilation = Compilation::for_devices(&model, devices).unwrap();
    compilation.finish().unwrap();
    let burst = Burst::new(&compilation).unwrap();
    let heap = || Arc::new(burst_hal::HeapMemory::new(vec![0; 16]));
    let memory = Memory::from_pool(heap());
    let run = || {
        let execution = Execution::new(&compilation)?;
        execution.set_input(0, None, Argument::Host(heap()))?;
        execution.set_output(0, None, Argument::Host(heap()))?;
        Ok::<_, neuralnetworks::Error>(execution)
    };
    let (ready, started) = (run().unwrap(), run().unwrap());
    let event = started.start_compute().unwrap();
    event.wait();
    let file = tempfile::tempfile().unwrap();
    let status = run_in_forked_child(|| {
        let code = |found: neuralnetworks::Result<()>| {
            found.err().map_or(burst_hal::ResultCode::NoError, |error| error.code)
        };
        let codes = [
            code(neuralnetworks::check_process()),
            code(device.wait()),
            code(Model::new().add_operand(&floats).map(drop)),
            code(model.hal().map(drop)),
            code(model.supported_operations(devices).map(drop)),
            code(Compilation::for_devices(&model, devices).map(drop)),
            code(compilation.finish()),
            code(compilation.plan().map(drop)),
            code(Burst::new(&compilation).map(drop)),
            code(Memory::from_fd(1, 1, file.as_fd(), 0).map(drop)),
            code(Memory::copy(&memory, &memory)),
            code(MemoryDesc::new().add_input_role(&compilation, 0, 1.0)),
            code(Execution::new(&compilation).map(drop)),
            code(ready.compute()),
            code(ready.burst_compute(&burst)),
            code(ready.start_compute().map(drop)),
            code(ready.start_compute_with_dependencies(&[], 0).map(drop)),
            code(Event::from_sync_fence_fd(file.as_fd()).map(drop)),
            event.wait(),
            ready.duration(0).0,
            started.output_operand_rank(0).0,
        ];
        let unavailable = burst_hal::ResultCode::UnavailableDevice;
        let answered = codes.iter().position(|code| *code != unavailable);
        let has_devices = !Registry::system().devices().is_empty();
        u8::try_from(answered.map_or(0, |index| index + 1)).unwrap_or(99)
            + u8::from(has_devices) * 100
    });
    assert_eq!(status.unwrap(), 0, "the number of the first call that was answered");
    ready.compute().unwrap();
    run().unwrap().burst_compute(&burst).unwrap();
}
