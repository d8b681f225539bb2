//! What is launched, kept in files or allocated over a connection that is made again.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use burst_client::{Backoff, Client, ClientError, Deadline, ReconnectingDevice, ShmMemory};
use burst_driver::{CacheKey, CpuDevice};
use burst_hal::{
    CACHE_TOKEN_BYTES, Caller, CompilationCache, Device, ErrorStatus, ExecutionOptions,
    ExecutionResult, Failure, Fence, FenceState, FencedExecution, FencedOptions, Pool,
    PrepareOptions, PreparedModel, TimePoint,
};
use burst_launch::Execution;
use burst_server::ServiceOptions;

use crate::burst_support::{LONG, buffer_for, model, request_in, wait_until};
use crate::peer::Service;
use crate::service_support::Shared;

fn shm(byte: u8) -> Pool {
    let memory = ShmMemory::create(32).unwrap();
    burst_hal::Memory::write(&memory, 0, &[byte; 16]).unwrap();
    Arc::new(memory)
}

fn output(memory: &Pool) -> u8 {
    let mut byte = [0];
    memory.read(16, &mut byte).unwrap();
    byte[0]
}

/// A device whose services are processes that play these roles of the peer, one after the other.
fn played(roles: &'static [&'static str]) -> (ReconnectingDevice, Arc<Mutex<Vec<Service>>>) {
    let services = Arc::new(Mutex::new(Vec::new()));
    let (started, mut roles) = (Arc::clone(&services), roles.iter());
    let connector = move |_: Deadline| {
        let (service, socket) = Service::private(roles.next().expect("no further service"));
        started.lock().unwrap().push(service);
        Client::from_socket(socket)
    };
    let device = ReconnectingDevice::with_connector("fake", Backoff::RESTART, connector);
    (device.unwrap(), services)
}

fn kill_last(services: &Mutex<Vec<Service>>, device: &ReconnectingDevice) {
    let last = services.lock().unwrap().pop().unwrap();
    last.kill();
    wait_until("the news", || !device.current().is_alive());
}

/// Launches with a callback.
fn launch(
    model: &Arc<dyn PreparedModel>,
    memory: &Pool,
) -> (Result<(), Failure>, Receiver<ExecutionResult>) {
    let (tell, told) = channel();
    let callback = Box::new(move |result| tell.send(result).unwrap());
    let (request, options) = (request_in(memory), ExecutionOptions::default());
    let model = Arc::clone(model);
    (model.execute_asynchronously(request, options, Caller::default(), callback), told)
}

fn fenced(model: &Arc<dyn PreparedModel>, memory: &Pool, wait_for: Vec<Fence>) -> FencedExecution {
    let (request, options) = (request_in(memory), FencedOptions::default());
    Arc::clone(model).execute_fenced(request, wait_for, options, Caller::default()).unwrap()
}

#[track_caller]
fn ended(execution: &FencedExecution) -> FenceState {
    match &execution.fence {
        Some(fence) => fence.wait(Some(TimePoint::after(LONG))),
        None => FenceState::Done,
    }
}

#[test]
fn launches_of_every_kind_go_on_over_a_service_that_was_started_again() {
    let (device, services) = played(&["serve-private"; 4]);
    let prepared = device.prepare(&model(), &PrepareOptions::default()).unwrap();
    let model = Arc::clone(&prepared) as Arc<dyn PreparedModel>;
    for round in 0..4 {
        assert_eq!(device.reconnects(), round.max(1) - 1, "nobody has asked for anything yet");
        match round {
            // The first use after a death makes everything again, whichever it is.
            1 => assert_eq!(start(&model), (ErrorStatus::None, 4)),
            2 => {
                let memory = shm(7);
                assert_eq!(ended(&fenced(&model, &memory, Vec::new())), FenceState::Done);
                assert_eq!(output(&memory), 8);
            }
            _ => {
                let memory = shm(1);
                let (launched, told) = launch(&model, &memory);
                launched.unwrap();
                assert_eq!(told.recv_timeout(LONG).unwrap().status, ErrorStatus::None);
                assert_eq!(output(&memory), 2);
            }
        }
        assert_eq!(device.reconnects(), round);
        if round < 3 {
            kill_last(&services, &device);
        }
    }
}

/// Executes as an object, from 3; gives the status and what came out.
fn start(model: &Arc<dyn PreparedModel>) -> (ErrorStatus, u8) {
    let memory = shm(3);
    let options = ExecutionOptions::default();
    let execution = Execution::start(Arc::clone(model), request_in(&memory), options).unwrap();
    (execution.wait().status, output(&memory))
}

#[test]
fn what_is_under_way_when_the_service_dies_is_told_once_and_not_started_again() {
    // The first service never finishes what it begins.
    let (device, services) = played(&["serve-stuck", "serve-private"]);
    let prepared = device.prepare(&model(), &PrepareOptions::default()).unwrap();
    let model = Arc::clone(&prepared) as Arc<dyn PreparedModel>;
    let memories = [(); 4].map(|()| shm(5));
    let (launched, told) = launch(&model, &memories[0]);
    launched.unwrap();
    let options = ExecutionOptions::default();
    let object = Execution::start(Arc::clone(&model), request_in(&memories[1]), options).unwrap();
    let running = fenced(&model, &memories[2], Vec::new());
    let behind = fenced(&model, &memories[3], vec![running.fence.clone().unwrap()]);
    assert_eq!(running.fence.as_ref().unwrap().state(), FenceState::Pending);
    kill_last(&services, &device);
    let gone = ErrorStatus::DeviceUnavailable;
    assert_eq!(told.recv_timeout(LONG).unwrap().status, gone);
    assert_eq!(object.wait().status, gone);
    for execution in [&running, &behind] {
        assert_eq!(ended(execution), FenceState::Failed);
        assert_eq!(execution.info.execution_info().unwrap_err().status, gone);
    }
    assert_eq!(device.reconnects(), 0, "nobody has asked for anything since");
    assert_eq!(start(&model), (ErrorStatus::None, 4));
    assert_eq!(device.reconnects(), 1);
    // The fence of an execution that died with its service stays what it is: nothing waits for it.
    let (request, wait_for) = (request_in(&memories[3]), vec![running.fence.clone().unwrap()]);
    let options = FencedOptions::default();
    let refused = Arc::clone(&model).execute_fenced(request, wait_for, options, Caller::default());
    assert_eq!(refused.err().unwrap().status, ErrorStatus::InvalidArgument);
    assert!(told.try_recv().is_err(), "told twice");
    assert_eq!(memories.each_ref().map(output), [0; 4], "nothing was started again");
}

#[test]
fn a_launch_over_a_service_that_does_not_come_back_is_told_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = Service::start(&path);
    let device = ReconnectingDevice::connect(&path, "fake").unwrap();
    let prepared = device.prepare(&model(), &PrepareOptions::default()).unwrap();
    service.kill();
    wait_until("the news", || !device.current().is_alive());
    let (tell, told) = channel();
    let callback = Box::new(move |result| tell.send(result).unwrap());
    let soon = TimePoint::after(std::time::Duration::from_millis(20));
    let options = ExecutionOptions { deadline: Some(soon), ..ExecutionOptions::default() };
    let model = Arc::clone(&prepared) as Arc<dyn PreparedModel>;
    let memory = shm(1);
    let launched = Arc::clone(&model).execute_asynchronously(
        request_in(&memory),
        options,
        Caller::default(),
        callback,
    );
    let result = told.recv_timeout(LONG).unwrap();
    assert_ne!(result.status, ErrorStatus::None);
    if let Err(failure) = launched {
        assert_eq!(failure.status, result.status, "said twice, and the same");
    }
    assert_eq!(Arc::strong_count(&memory), 1, "the request is let go of");
}

/// A service of the CPU device with this key, and its address, which the next one replaces.
fn keeping(address: &Mutex<PathBuf>, key: u8) -> Shared {
    let device = CpuDevice::default().with_cache_key(CacheKey::new([key; CacheKey::BYTES]));
    let service = Shared::start(Arc::new(device), ServiceOptions::default());
    *address.lock().unwrap() = service.path.clone();
    service
}

fn cache(folder: &Path) -> CompilationCache {
    let open = |name: &str| {
        let path = folder.join(name);
        File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
    };
    CompilationCache {
        token: [3; CACHE_TOKEN_BYTES],
        model: vec![open("model")],
        data: vec![open("data")],
    }
}

fn relu_of_ones(model: &dyn PreparedModel) -> ErrorStatus {
    let memory: Pool = Arc::new(ShmMemory::create(32).unwrap());
    memory.write(0, &[1.0_f32; 4].map(f32::to_ne_bytes).concat()).unwrap();
    let options = ExecutionOptions::default();
    let status = model.execute_synchronously(&request_in(&memory), &options).status;
    if status == ErrorStatus::None {
        let mut out = [0; 16];
        memory.read(16, &mut out).unwrap();
        assert_eq!(out.as_slice(), [1.0_f32; 4].map(f32::to_ne_bytes).concat());
    }
    status
}

#[test]
fn a_model_from_files_is_taken_from_them_again_and_one_that_was_kept_is_prepared_again() {
    let address = Arc::new(Mutex::new(PathBuf::new()));
    let folder = tempfile::tempdir().unwrap();
    let service = keeping(&address, 1);
    let connector = {
        let address = Arc::clone(&address);
        move |_: Deadline| Client::connect(&*address.lock().unwrap())
    };
    let device = ReconnectingDevice::with_connector("cpu", Backoff::RESTART, connector).unwrap();
    let files = cache(folder.path());
    assert_eq!(device.cache_files_needed(), files.files());
    let options = PrepareOptions::default();
    let device_of_hal: &dyn Device = &device;
    let kept = device_of_hal.prepare_model_caching(&model(), &options, &files, &Caller::default());
    let restored = device_of_hal.prepare_model_from_cache(&files, None, &Caller::default());
    let (kept, restored) = (kept.unwrap(), restored.unwrap());
    drop(files); // it has descriptors of its own
    for model in [&kept, &restored] {
        assert_eq!(relu_of_ones(&**model), ErrorStatus::None);
    }
    // The same key: both are there again. Another one: what lies in the files is not its own.
    let end = |service: Shared| {
        drop(service);
        wait_until("the news", || !device.current().is_alive());
    };
    end(service);
    let service = keeping(&address, 1);
    for model in [&kept, &restored] {
        assert_eq!(relu_of_ones(&**model), ErrorStatus::None);
    }
    assert_eq!(device.reconnects(), 1);
    end(service);
    let _service = keeping(&address, 2);
    assert_eq!(relu_of_ones(&*kept), ErrorStatus::None);
    assert_eq!(relu_of_ones(&*restored), ErrorStatus::GeneralFailure);
    let refused = device.prepare_from_cache(&cache(folder.path()), None).map(drop).unwrap_err();
    assert!(matches!(refused, ClientError::Refused { .. }), "{refused}");
    // It makes no buffers, and says why.
    let no_buffer = device.allocate(&buffer_for(&kept), &Caller::default()).err().unwrap();
    assert_eq!(no_buffer.status, ErrorStatus::GeneralFailure);
    assert!(no_buffer.to_string().contains("would not outlive its service"), "{no_buffer}");
}
