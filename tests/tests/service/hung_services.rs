//! What an application sees of a service that has stopped answering: each call ends with its own deadline, or as
//! soon as the framework waits no longer, whatever the call is about.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use burst_client::ShmMemory;
use burst_hal::{HeapMemory, OperandType, OperationType, Pool, ResultCode};
use neuralnetworks::{
    Argument, Burst, Compilation, Event, Execution, Memory, MemoryDesc, Model, OperandTypeDesc,
    RuntimeDevice,
};
use rustix::process::Signal;

use crate::burst_support::LONG;
use crate::peer::Service;

/// No call to a service takes longer than this here: enough for one that is answered, on a busy machine too.
const SHORT: Duration = Duration::from_secs(1);
/// Far more than a few of them take, and less than the 30 seconds after which the client itself gives up a call that
/// needs no work, whoever waits for it.
const LESS_THAN_THE_CLIENTS_OWN: Duration = Duration::from_secs(20);

/// A service of the CPU, and a device of it.
struct Hung {
    service: Service,
    device: Arc<RuntimeDevice>,
    model: Arc<Model>,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Hung {
    fn start(longest: Duration) -> Hung {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("burst.sock");
        let service = Service::start_as("serve-cpu", &path);
        let device = RuntimeDevice::remote_within(&path, "cpu", longest).unwrap();
        Hung { service, device, model: twice(), path, _folder: folder }
    }

    fn compile(&self) -> Arc<Compilation> {
        let devices = std::slice::from_ref(&self.device);
        let compilation = Compilation::for_devices(&self.model, devices).unwrap();
        compilation.finish().unwrap();
        compilation
    }

    /// It goes on, and is used again.
    fn go_on(&self) {
        self.service.signal(Signal::CONT);
        self.device.wait().unwrap();
    }
}

/// `x + x` of four floats.
fn twice() -> Arc<Model> {
    let model = Model::new();
    let operand = |ty: OperandType, dimensions: &[u32]| {
        let (code, dimensions) = (ty.code(), dimensions.to_vec());
        model
            .add_operand(&OperandTypeDesc { code, dimensions, ..OperandTypeDesc::default() })
            .unwrap()
    };
    let x = operand(OperandType::TensorFloat32, &[4]);
    let none = operand(OperandType::Int32, &[]);
    let y = operand(OperandType::TensorFloat32, &[4]);
    model.set_operand_value(i32::try_from(none).unwrap(), Some(&[0; 4])).unwrap();
    model.add_operation(OperationType::Add.code(), &[x, x, none], &[y]).unwrap();
    model.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    model.finish().unwrap();
    model
}

const X: [f32; 4] = [0.0, 1.0, 2.0, -3.0];

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// What this comes to. It ends, and not only because a client's own patience does.
fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(work()));
    told.recv_timeout(LESS_THAN_THE_CLIENTS_OWN).unwrap_or_else(|_| panic!("{what} takes too long"))
}

/// In memory of this process.
fn ready(compilation: &Arc<Compilation>) -> Arc<Execution> {
    let execution = Execution::new(compilation).unwrap();
    let input = Argument::Host(Arc::new(HeapMemory::new(bytes(&X))));
    execution.set_input(0, None, input).unwrap();
    execution.set_output(0, None, Argument::Host(Arc::new(HeapMemory::new(vec![0; 16])))).unwrap();
    execution
}

/// In memory that the service reaches, too: it waits for fences itself.
fn ready_in_memory(compilation: &Arc<Compilation>) -> Arc<Execution> {
    let execution = Execution::new(compilation).unwrap();
    let shared = |values: &[f32]| {
        let pool: Pool = Arc::new(ShmMemory::create(16).unwrap());
        pool.write(0, &bytes(values)).unwrap();
        Argument::Memory { memory: Memory::from_pool(pool), offset: 0, length: 16 }
    };
    execution.set_input(0, None, shared(&X)).unwrap();
    execution.set_output(0, None, shared(&[0.0; 4])).unwrap();
    execution
}

fn code<T>(result: neuralnetworks::Result<T>) -> ResultCode {
    result.err().map_or(ResultCode::NoError, |error| error.code)
}

fn waited(event: neuralnetworks::Result<Arc<Event>>) -> ResultCode {
    event.map_or_else(|error| error.code, |event| event.wait())
}

#[test]
fn the_first_execution_of_a_compilation_misses_its_own_deadline_although_a_burst_has_to_be_opened()
{
    let hung = Hung::start(LONG);
    for way in ["compute", "start", "burst", "behind fences"] {
        let compilation = hung.compile();
        let burst = Burst::new(&compilation).unwrap();
        let execution = match way {
            "behind fences" => ready_in_memory(&compilation),
            _ => ready(&compilation),
        };
        let timeout = u64::try_from(SHORT.as_nanos()).unwrap();
        execution.set_timeout(timeout).unwrap();
        hung.service.stop();
        let ended = ends(way, move || match way {
            "compute" => code(execution.compute()),
            "start" => waited(execution.start_compute()),
            "burst" => code(execution.burst_compute(&burst)),
            _ => waited(execution.start_compute_with_dependencies(&[], 0)),
        });
        assert_eq!(ended, ResultCode::MissedDeadlineTransient, "{way}");
        hung.go_on();
        assert_eq!(code(ready(&compilation).compute()), ResultCode::NoError, "after {way}");
    }
}

#[test]
fn no_way_of_execution_takes_longer_than_a_call_to_a_service_may() {
    let hung = Hung::start(SHORT);
    for way in ["compute", "start", "burst", "a burst, then compute", "behind fences"] {
        let compilation = hung.compile();
        let burst = Burst::new(&compilation).unwrap();
        if way == "a burst, then compute" {
            assert_eq!(code(ready(&compilation).burst_compute(&burst)), ResultCode::NoError);
        }
        hung.service.stop();
        let same = Arc::clone(&compilation);
        let ended = ends(way, move || match way {
            "compute" | "a burst, then compute" => code(ready(&same).compute()),
            "start" => waited(ready(&same).start_compute()),
            "burst" => code(ready(&same).burst_compute(&burst)),
            _ => waited(ready_in_memory(&same).start_compute_with_dependencies(&[], 0)),
        });
        assert_eq!(ended, ResultCode::DeadObject, "{way}");
        hung.go_on();
        assert_eq!(code(ready(&compilation).compute()), ResultCode::NoError, "after {way}");
    }
}

#[test]
fn a_memory_for_roles_is_made_here_where_the_service_does_not_answer() {
    let hung = Hung::start(SHORT);
    let compilation = hung.compile();
    let desc = MemoryDesc::new();
    desc.add_input_role(&compilation, 0, 1.0).unwrap();
    desc.finish().unwrap();
    assert_eq!(Memory::from_desc(&desc).unwrap().size(), 0, "a buffer of the device");
    hung.service.stop();
    let made = ends("a memory", move || Memory::from_desc(&desc).map(|memory| memory.size()));
    assert_eq!(made.unwrap(), 16);
    hung.go_on();
}

#[test]
fn a_service_that_hangs_once_its_fence_is_done_is_a_dead_object_and_is_asked_once() {
    let hung = Hung::start(SHORT);
    let compilation = hung.compile();
    let execution = ready_in_memory(&compilation);
    execution.set_measure_timing(true).unwrap();
    let (read, mut write) = std::io::pipe().unwrap();
    let before = Event::from_sync_fence_fd(read.as_fd()).unwrap();
    let event = execution.start_compute_with_dependencies(&[before], 0).unwrap();
    // Whoever has the fence sees that it is done, and asks nobody how it ended.
    let fence = event.sync_fence_fd().unwrap();
    std::io::Write::write_all(&mut write, &[1]).unwrap();
    assert_eq!(Event::from_sync_fence_fd(fence.as_fd()).unwrap().wait(), ResultCode::NoError);
    hung.service.stop();
    let (ended, again, duration) =
        ends("a wait", move || (event.wait(), event.wait(), execution.duration(1).0));
    assert_eq!((ended, again), (ResultCode::DeadObject, ResultCode::DeadObject));
    assert_eq!(duration, ResultCode::BadState, "it has failed");
    hung.go_on();
    assert_eq!(code(ready(&compilation).compute()), ResultCode::NoError);
}

#[test]
fn a_memory_of_a_service_that_died_is_of_no_use_and_a_new_one_of_the_same_description_is() {
    let hung = Hung::start(LONG);
    let compilation = hung.compile();
    let desc = MemoryDesc::new();
    desc.add_input_role(&compilation, 0, 1.0).unwrap();
    desc.finish().unwrap();
    let lost = Memory::from_desc(&desc).unwrap();
    let plain = Memory::from_pool(Arc::new(HeapMemory::new(bytes(&X))));
    Memory::copy(&plain, &lost).unwrap();
    let Hung { service, device, path, _folder, .. } = hung;
    service.kill();
    let _next = Service::start_as("serve-cpu", &path);
    device.wait().unwrap();
    assert_eq!(code(ready(&compilation).compute()), ResultCode::NoError, "made again");
    assert_eq!(code(Memory::copy(&plain, &lost)), ResultCode::DeadObject);
    let new = Memory::from_desc(&desc).unwrap();
    Memory::copy(&plain, &new).unwrap();
    let execution = Execution::new(&compilation).unwrap();
    let whole = Argument::Memory { memory: new, offset: 0, length: 0 };
    execution.set_input(0, None, whole).unwrap();
    execution.set_output(0, None, Argument::Host(Arc::new(HeapMemory::new(vec![0; 16])))).unwrap();
    assert_eq!(code(execution.compute()), ResultCode::NoError);
}
