//! The framework over services that die, hang and come back, in every step of plans of several: what an
//! application sees then.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use burst_client::ShmMemory;
use burst_hal::{HeapMemory, OperandType, Pool, ResultCode};
use neuralnetworks::{
    Argument, Burst, Compilation, Event, Execution, Memory, MemoryDesc, Registry, RuntimeDevice,
};

use crate::burst_support::LONG;
use crate::peer::Service;

mod parts;

use parts::*;

/// No call to a service takes longer than this here, where it is to be too long.
const SHORT: Duration = Duration::from_millis(200);

/// A service that dies while it executes the step of this number of its own.
fn killed_in(fixture: &Fixture, part: usize, number: u64, is_named: bool) -> Option<ResultCode> {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = [ADDER, MULTIPLIER];
    parts[part].last = number;
    let mut peers = parts.map(|part| Some(Peer::start(folder.path(), part)));
    let devices = Devices::at(folder.path(), LONG);
    let compilation = devices.compile(&fixture.model, is_named);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| fixture.run(&compilation));
        let mut peer = peers[part].take().unwrap();
        peer.wait_for("begun");
        peer.service.kill();
        running.join().unwrap()
    })
}

#[test]
fn a_service_that_dies_in_any_step_is_stood_in_for_or_a_dead_object() {
    for fixture in [chain(), branching(true), branching(false), looping()] {
        let fixture = Arc::new(fixture);
        for (part, executions) in fixture.executions.into_iter().enumerate() {
            for number in 1..=executions {
                for (is_named, want) in [(false, None), (true, Some(ResultCode::DeadObject))] {
                    let name = fixture.name;
                    let what = format!("{name}, execution {number} of {part}, named: {is_named}");
                    let fixture = Arc::clone(&fixture);
                    let run = move || killed_in(&fixture, part, number, is_named);
                    assert_eq!(ends(&what, run), want, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_compilation_is_made_again_by_itself_when_its_service_is_back() {
    for fixture in [chain(), branching(true), looping()] {
        let folder = tempfile::tempdir().unwrap();
        let _adder = Peer::start(folder.path(), ADDER);
        let mut multiplier = Peer::start(folder.path(), MULTIPLIER);
        let devices = Devices::at(folder.path(), LONG);
        let named = devices.compile(&fixture.model, true);
        let any = devices.compile(&fixture.model, false);
        let burst = Burst::new(&named).unwrap();
        let in_burst = || {
            let (execution, outputs) = fixture.ready(&named);
            let ended = execution.burst_compute(&burst);
            let found: Vec<Vec<u8>> = outputs.iter().map(|output| output.to_vec()).collect();
            assert!(ended.is_err() || found == fixture.wanted);
            ended.map_err(|error| error.code)
        };
        for round in 0..3 {
            assert_eq!((fixture.run(&named), fixture.run(&any)), (None, None), "round {round}");
            assert_eq!(in_burst(), Ok(()), "round {round}");
            multiplier.service.kill();
            assert_eq!(fixture.run(&any), None, "the reference stands in");
            assert_eq!(fixture.run(&named), Some(ResultCode::DeadObject), "round {round}");
            assert_eq!(in_burst(), Err(ResultCode::DeadObject), "round {round}");
            multiplier = Peer::start(folder.path(), MULTIPLIER);
            devices.0[1].wait().unwrap();
        }
        assert_eq!(fixture.run(&named), None);
        // The one that may be stood in for uses it again, too.
        multiplier.service.kill();
        let mut caught = Peer::start(folder.path(), Part { last: 1, ..MULTIPLIER });
        devices.0[1].wait().unwrap();
        std::thread::scope(|scope| {
            let running = scope.spawn(|| fixture.run(&any));
            caught.wait_for("begun");
            caught.service.kill();
            assert_eq!(running.join().unwrap(), None, "the reference stands in");
        });
    }
}

#[test]
fn a_buffer_is_lost_with_its_service_and_never_mistaken_for_one_of_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let service = Service::start_as("serve-cpu", &path);
    let device = RuntimeDevice::remote(&path, "cpu").unwrap();
    let fixture = chain();
    let compilation =
        Compilation::for_devices(&fixture.model, std::slice::from_ref(&device)).unwrap();
    compilation.finish().unwrap();
    let buffer = || {
        let desc = MemoryDesc::new();
        desc.add_output_role(&compilation, 0, 1.0).unwrap();
        desc.add_input_role(&compilation, 0, 1.0).unwrap();
        desc.finish().unwrap();
        let memory = Memory::from_desc(&desc).unwrap();
        assert_eq!(memory.size(), 0, "a buffer of the device");
        memory
    };
    let whole = |memory: &Arc<Memory>| Argument::Memory {
        memory: Arc::clone(memory),
        offset: 0,
        length: 0,
    };
    let fill = |memory: &Arc<Memory>| {
        let execution = Execution::new(&compilation).unwrap();
        let input = Argument::Host(Arc::new(HeapMemory::new(bytes(&X))));
        execution.set_input(0, None, input).unwrap();
        execution.set_output(0, None, whole(memory)).unwrap();
        execution.compute()
    };
    let read = |memory: &Arc<Memory>| {
        let execution = Execution::new(&compilation).unwrap();
        execution.set_input(0, None, whole(memory)).unwrap();
        let output = Arc::new(HeapMemory::new(vec![0; 16]));
        execution.set_output(0, None, Argument::Host(output.clone())).unwrap();
        execution.compute().map(|()| output.to_vec())
    };
    let lost = buffer();
    fill(&lost).unwrap();
    let want = read(&lost).unwrap();
    service.kill();
    let _service = Service::start_as("serve-cpu", &path);
    device.wait().unwrap();
    assert_eq!(fixture.run(&compilation), None, "the compilation is made again");
    // The next buffer has the number that the lost one had.
    let next = buffer();
    let other = Execution::new(&compilation).unwrap();
    let ones = Argument::Host(Arc::new(HeapMemory::new(bytes(&[1.0; 4]))));
    other.set_input(0, None, ones).unwrap();
    other.set_output(0, None, whole(&next)).unwrap();
    other.compute().unwrap();
    assert_eq!(read(&lost).unwrap_err().code, ResultCode::DeadObject);
    assert_eq!(fill(&lost).unwrap_err().code, ResultCode::DeadObject);
    fill(&next).unwrap();
    assert_eq!(read(&next).unwrap(), want);
}

#[test]
fn a_service_that_hangs_keeps_nobody_waiting_and_is_used_again_when_it_goes_on() {
    let fixture = chain();
    let folder = tempfile::tempdir().unwrap();
    let _adder = Peer::start(folder.path(), ADDER);
    let multiplier = Peer::start(folder.path(), MULTIPLIER);
    let devices = Arc::new(Devices::at(folder.path(), SHORT));
    let fixture = Arc::new(fixture);
    let compilations = [true, false].map(|named| devices.compile(&fixture.model, named));
    for compilation in &compilations {
        assert_eq!(fixture.run(compilation), None);
    }
    multiplier.service.stop();
    let [named, any] = &compilations;
    let run = |compilation: &Arc<Compilation>| {
        let (fixture, compilation) = (Arc::clone(&fixture), Arc::clone(compilation));
        ends("an execution", move || fixture.run(&compilation))
    };
    assert_eq!(run(any), None, "the reference stands in");
    assert_eq!(run(named), Some(ResultCode::DeadObject));
    assert_eq!(run(named), Some(ResultCode::DeadObject), "it counts as dead");
    // What is compiled meanwhile does without it.
    let (model, others) = (Arc::clone(&fixture.model), Arc::clone(&devices));
    let meanwhile = ends("a compilation", move || {
        let compilation = Compilation::new(&model, &Registry::of(others.0.clone())).unwrap();
        compilation.finish().unwrap();
        compilation
    });
    assert_eq!(run(&meanwhile), None);
    multiplier.service.signal(rustix::process::Signal::CONT);
    devices.0[1].wait().unwrap();
    assert_eq!((run(named), run(any)), (None, None), "it is used again");
}

#[test]
fn a_service_that_hangs_over_a_question_or_a_model_or_a_buffer_is_a_dead_object() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let model = chain().model;
    // Each with a connection of its own, made while the service answers.
    let service = Service::start_as("serve-cpu", &path);
    let connect = || RuntimeDevice::remote_within(&path, "cpu", SHORT).unwrap();
    let (asked, device) = (connect(), connect());
    let compilation = Compilation::for_devices(&model, std::slice::from_ref(&device)).unwrap();
    compilation.finish().unwrap();
    let desc = MemoryDesc::new();
    desc.add_output_role(&compilation, 0, 1.0).unwrap();
    desc.finish().unwrap();
    let buffer = Memory::from_desc(&desc).unwrap();
    let named = Compilation::for_devices(&model, std::slice::from_ref(&asked)).unwrap();
    service.stop();
    let (code, supported) = ends("a compilation", move || {
        let supported = model.supported_operations(&[Arc::clone(&asked)]).unwrap();
        (named.finish().unwrap_err().code, supported)
    });
    assert_eq!(code, ResultCode::DeadObject);
    assert_eq!(supported, [false; 3], "who does not answer runs nothing");
    let copied = ends("a copy", move || {
        let plain = Memory::from_pool(Arc::new(HeapMemory::new(bytes(&X))));
        Memory::copy(&plain, &buffer).unwrap_err().code
    });
    assert_eq!(copied, ResultCode::DeadObject);
    drop(device);
}

#[test]
fn a_device_that_is_stuck_in_a_service_that_answers_misses_its_time_and_nothing_else() {
    let fixture = Arc::new(chain());
    for is_named in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let _adder = Peer::start(folder.path(), ADDER);
        let mut multiplier = Peer::start(folder.path(), Part { last: 1, ..MULTIPLIER });
        let devices = Devices::at(folder.path(), SHORT);
        let compilation = devices.compile(&fixture.model, is_named);
        let (one, other) = (Arc::clone(&fixture), Arc::clone(&compilation));
        let ended = ends("an execution", move || one.run(&other));
        multiplier.wait_for("begun");
        let want = is_named.then_some(ResultCode::MissedDeadlineTransient);
        assert_eq!(ended, want, "named: {is_named}");
        // The service goes on for everybody else, over the same connection.
        let again = devices.compile(&fixture.model, true);
        assert_eq!(fixture.run(&again), None);
        drop((compilation, again));
    }
}

fn shared(values: &[f32]) -> (Arc<Memory>, Pool) {
    let pool: Pool = Arc::new(ShmMemory::create(16).unwrap());
    pool.write(0, &bytes(values)).unwrap();
    (Memory::from_pool(Pool::clone(&pool)), pool)
}

/// An execution of the chain in memory that every process can reach: its devices wait for each other.
fn in_memory(compilation: &Arc<Compilation>) -> (Arc<Execution>, Pool) {
    let ((from, _), (to, output)) = (shared(&X), shared(&[0.0; 4]));
    let execution = Execution::new(compilation).unwrap();
    let all = |memory| Argument::Memory { memory, offset: 0, length: 16 };
    execution.set_input(0, None, all(from)).unwrap();
    execution.set_output(0, None, all(to)).unwrap();
    (execution, output)
}

fn gate() -> (Arc<Event>, std::io::PipeWriter) {
    let (read, write) = std::io::pipe().unwrap();
    (Event::from_sync_fence_fd(read.as_fd()).unwrap(), write)
}

#[test]
fn the_steps_of_a_plan_wait_for_each_other_in_their_services() {
    let fixture = chain();
    let folder = tempfile::tempdir().unwrap();
    let _adder = Peer::start(folder.path(), ADDER);
    let multiplier = Peer::start(folder.path(), MULTIPLIER);
    let devices = Devices::at(folder.path(), LONG);
    let compilation = devices.compile(&fixture.model, true);
    let (execution, output) = in_memory(&compilation);
    let (before, mut write) = gate();
    let event = execution.start_compute_with_dependencies(&[before], 0).unwrap();
    write.write_all(&[1]).unwrap();
    assert_eq!(event.wait(), ResultCode::NoError);
    let mut found = [0; 16];
    output.read(0, &mut found).unwrap();
    assert_eq!(found.as_slice(), fixture.wanted[0]);
    // A service that dies over it breaks the chain behind it.
    let (execution, _) = in_memory(&compilation);
    let (before, write) = gate();
    let event = execution.start_compute_with_dependencies(&[before], 0).unwrap();
    multiplier.service.kill();
    drop(write);
    assert_ne!(event.wait(), ResultCode::NoError);
    assert_eq!(execution.output_operand_rank(0).0, ResultCode::BadState);
}

#[test]
fn a_fence_of_a_service_that_hangs_is_not_waited_for_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let _adder = Peer::start(folder.path(), ADDER);
    let multiplier = Peer::start(folder.path(), MULTIPLIER);
    let devices = Devices::at(folder.path(), SHORT);
    let compilation = devices.compile(&chain().model, true);
    let (execution, _) = in_memory(&compilation);
    let (behind, _) = in_memory(&compilation);
    let (before, mut write) = gate();
    let event = execution.start_compute_with_dependencies(&[before], 0).unwrap();
    let last = behind.start_compute_with_dependencies(std::slice::from_ref(&event), 0).unwrap();
    multiplier.service.stop();
    write.write_all(&[1]).unwrap();
    let ended = ends("a wait", move || [event.wait(), last.wait()]);
    assert_eq!(ended, [ResultCode::DeadObject; 2]);
    assert_eq!(execution.output_operand_rank(0).0, ResultCode::BadState);
}

#[test]
fn a_device_of_a_service_has_the_level_that_it_says_and_gets_what_that_can_say() {
    for (level, takes_less) in [(27, false), (28, false), (29, true), (30, true)] {
        let folder = tempfile::tempdir().unwrap();
        let _adder = Peer::of_level(folder.path(), ADDER, level);
        let path = socket(folder.path(), ADDER);
        let device = RuntimeDevice::remote(&path, ADDER.name).unwrap();
        assert_eq!(device.feature_level(), i64::from(level));
        // ADD is as old as the HAL, LESS came with 1.2.
        let net = Net::new();
        let x = net.floats();
        let sum = net.run(ADD, [x, x], net.floats());
        let less = net.run(LESS, [sum, x], net.operand(OperandType::TensorBool8, &[4]));
        let model = net.finish(&[x], &[less]);
        let devices = std::slice::from_ref(&device);
        assert_eq!(model.supported_operations(devices).unwrap(), [true, takes_less], "{level}");
        let net = Net::new();
        let x = net.floats();
        let sum = net.run(ADD, [x, x], net.floats());
        let fixture = Fixture {
            name: "sum",
            model: net.finish(&[x], &[sum]),
            inputs: vec![bytes(&X)],
            wanted: vec![bytes(&X.map(|x| x + x))],
            executions: [1, 0],
        };
        let compilation = Compilation::for_devices(&fixture.model, devices).unwrap();
        compilation.finish().unwrap();
        assert_eq!(fixture.run(&compilation), None, "{level}");
    }
}
