//! Buffers of the driver: every row of the original suites in process and through a service, with the same
//! answers; and what a client of ours has of them over the socket and over bursts.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::Arc;

use burst_client::{BurstOptions, Client, RemoteBuffer, ShmMemory};
use burst_driver::CpuDevice;
use burst_hal::{
    Buffer, Device, ErrorStatus, ExecutionOptions, HeapMemory, Model, ModelBuilder, OperandType,
    OperationType, OutputSpec, Pool, PrepareOptions, PreparedModel, RequestPool,
};
use burst_server::{BurstContexts, ServiceOptions};
use burst_verify::functional::{Verdict, memory_domains};
use burst_wire::Features;
use burst_wire::control::{Call, PoolSource};

use crate::burst_support::raw::RawBurst;
use crate::burst_support::{FakeDevice, buffer_for, long, model, request_whole, wait_until};
use crate::service_support::Shared;
use crate::service_support::context::{Contexts, ContextsWithBuffers};

/// The verdict of each check, by name; whatever was wrong fails the test.
fn verdicts(device: &dyn Device, place: &str) -> Vec<(&'static str, Verdict)> {
    let mut wrong = Vec::new();
    let verdicts = memory_domains::CHECKS.iter().filter_map(|check| {
        (check.run)(device)
            .map(|verdict| (check.name, verdict))
            .map_err(|cause| wrong.push(format!("{}: {cause}", check.name)))
            .ok()
    });
    let verdicts: Vec<_> = verdicts.collect();
    assert!(wrong.is_empty(), "{place}: {wrong:#?}");
    verdicts
}

#[test]
fn every_row_about_buffers_is_as_it_should_be_in_process_and_through_a_service() {
    let here = verdicts(&CpuDevice::default(), "in process");
    let service = Shared::start(Arc::new(CpuDevice::default()), ServiceOptions::default());
    let client = service.connect().unwrap();
    let there = verdicts(&client.device("cpu").unwrap(), "through a service");
    // What a client is told begins with the status a second time.
    let plain = |verdicts: &[(&'static str, Verdict)]| -> Vec<_> {
        verdicts.iter().map(|(name, verdict)| (*name, *verdict == Verdict::Passed)).collect()
    };
    assert_eq!(plain(&here), plain(&there), "the same answer on both");
    for (name, verdict) in here {
        assert_eq!(verdict, Verdict::Passed, "{name} applies to this device");
    }
    drop(client);
    let memory = || service.metric("burst_service_used{resource=\"memory_bytes\"}");
    let buffers = || service.metric("burst_in_use{limit=\"buffers\"}");
    wait_until("nothing in use", || buffers() + memory() == 0);
}

/// `x + 1` on four floats.
fn plus_one() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[4]);
    let (one, none) = (b.constant_f32(&[1], &[1.0]), b.scalar_i32(0));
    let y = b.result_of(OperationType::Add, &[x, one, none], OutputSpec::f32(&[4]));
    b.output(y);
    b.build().unwrap()
}

fn floats(values: [f32; 4]) -> Vec<u8> {
    values.map(f32::to_ne_bytes).concat()
}

fn shm(values: [f32; 4]) -> Pool {
    let memory = ShmMemory::create(16).unwrap();
    burst_hal::Memory::write(&memory, 0, &floats(values)).unwrap();
    Arc::new(memory)
}

#[track_caller]
fn expect_value(buffer: &RemoteBuffer, values: [f32; 4]) {
    let copy = Arc::new(HeapMemory::new(vec![0; 16]));
    buffer.read_into(&(Arc::clone(&copy) as Pool)).unwrap();
    assert_eq!(copy.to_vec(), floats(values));
}

#[test]
fn a_value_goes_from_model_to_model_over_bursts_and_stays_in_the_driver() {
    let service = Shared::start(Arc::new(CpuDevice::default()), ServiceOptions::default());
    let client = service.connect().unwrap();
    let device = client.device("cpu").unwrap();
    let models = [(); 2].map(|()| device.prepare(&plus_one(), &PrepareOptions::default()).unwrap());
    let mut bursts =
        models.each_ref().map(|model| model.configure_burst(&BurstOptions::default()).unwrap());
    assert!(bursts[0].features().contains(Features::TOKENS));
    let role = |model| burst_hal::BufferRole { model, position: 0, frequency: 1.0 };
    let roles = |input: u32, output: u32| burst_hal::BufferRequest {
        models: models.iter().map(|model| Arc::clone(model) as _).collect(),
        inputs: vec![role(input)],
        outputs: vec![role(output)],
        ..Default::default()
    };
    let there = device.allocate_buffer(&roles(1, 0)).unwrap();
    let back = device.allocate_buffer(&roles(0, 1)).unwrap();
    back.fill_from(&shm([0.5, 0.0, -1.0, 9.0]), &[]).unwrap();
    let token = |buffer: &RemoteBuffer| RequestPool::Token(buffer.token());
    let forth = request_whole(token(&back), token(&there));
    let and_back = request_whole(token(&there), token(&back));
    for round in 1..=5_u8 {
        for (burst, request) in bursts.iter_mut().zip([&forth, &and_back]) {
            let result = burst.execute(request, &ExecutionOptions::default(), long()).unwrap();
            assert_eq!(result.status, ErrorStatus::None);
            assert!(!burst.fell_back(), "a burst carries tokens");
        }
        let more = f32::from(2 * round);
        expect_value(&back, [0.5, 0.0, -1.0, 9.0].map(|value| value + more));
    }
    // One that was dropped is no argument any more, over the burst as over the socket.
    drop(there);
    for _ in 0..2 {
        let result = bursts[0].execute(&forth, &ExecutionOptions::default(), long()).unwrap();
        assert_eq!(result.status, ErrorStatus::InvalidArgument);
    }
    let memory = request_whole(token(&back), RequestPool::Memory(shm([0.0; 4])));
    let result = bursts[0].execute(&memory, &ExecutionOptions::default(), long()).unwrap();
    assert_eq!(result.status, ErrorStatus::None, "the burst goes on");
}

#[test]
fn where_a_burst_takes_no_buffers_requests_with_them_go_over_the_socket() {
    let service = Shared::start(Arc::new(CpuDevice::default()), ServiceOptions::default());
    let plain = Features::ALL.without(Features::TOKENS);
    for (of_client, of_burst) in [(plain, Features::ALL), (Features::ALL, plain)] {
        let socket = crate::burst_support::raw::connect(&service.path);
        let client = Client::from_socket_with(socket, of_client).unwrap();
        let device = client.device("cpu").unwrap();
        let model = device.prepare(&plus_one(), &PrepareOptions::default()).unwrap();
        let options = BurstOptions::default().with_features(of_burst);
        let mut burst = model.configure_burst(&options).unwrap();
        let model = Arc::clone(&model) as Arc<dyn PreparedModel>;
        let [from, to] = [(); 2].map(|()| device.allocate_buffer(&buffer_for(&model)).unwrap());
        from.fill_from(&shm([1.0; 4]), &[4]).unwrap();
        let [from_token, to_token] = [&from, &to].map(|one| RequestPool::Token(one.token()));
        let request = request_whole(from_token, to_token);
        let result = burst.execute(&request, &ExecutionOptions::default(), long()).unwrap();
        assert_eq!(result.status, ErrorStatus::None);
        assert!(burst.fell_back());
        expect_value(&to, [2.0; 4]);
    }
}

/// A burst of the fake device in which a value goes from buffer to buffer, and whether it went over the
/// socket.
fn between_buffers(service: &Shared) -> bool {
    let client = service.connect().unwrap();
    let device = client.device("fake").unwrap();
    let model = device.prepare(&model(), &PrepareOptions::default()).unwrap();
    let mut burst = model.configure_burst(&BurstOptions::default()).unwrap();
    let as_model = Arc::clone(&model) as Arc<dyn PreparedModel>;
    let [from, to] = [(); 2].map(|()| device.allocate_buffer(&buffer_for(&as_model)).unwrap());
    let token = |buffer: &RemoteBuffer| RequestPool::Token(buffer.token());
    let copy = Arc::new(HeapMemory::new(vec![0; 16]));
    let mut fell_back = Vec::new();
    for round in 1..=3 {
        from.fill_from(&(Arc::new(HeapMemory::new(vec![round; 16])) as Pool), &[]).unwrap();
        let request = request_whole(token(&from), token(&to));
        let result = burst.execute(&request, &ExecutionOptions::default(), long()).unwrap();
        assert_eq!(result.status, ErrorStatus::None);
        fell_back.push(burst.fell_back());
        to.read_into(&(Arc::clone(&copy) as Pool)).unwrap();
        assert_eq!(copy.to_vec(), [round + 1; 16]);
        // Memory beside it, as ever.
        let memory = request_whole(token(&from), RequestPool::Memory(shm([0.0; 4])));
        let result = burst.execute(&memory, &ExecutionOptions::default(), long()).unwrap();
        assert_eq!(result.status, ErrorStatus::None);
    }
    // What was released stands for nothing.
    let (gone, kept) = (token(&from), token(&to));
    drop(from);
    let request = request_whole(gone, kept);
    let result = burst.execute(&request, &ExecutionOptions::default(), long()).unwrap();
    assert_eq!(result.status, ErrorStatus::InvalidArgument);
    assert!(fell_back.iter().all(|one| *one == fell_back[0]), "{fell_back:?}");
    fell_back[0]
}

#[test]
fn executors_and_contexts_of_drivers_take_buffers_where_they_say_so() {
    for takes_buffers in [true, false] {
        let fake = FakeDevice::default();
        *fake.0.executor.lock().unwrap() = Some(takes_buffers);
        let service = Shared::start(Arc::new(fake), ServiceOptions::default());
        assert_eq!(between_buffers(&service), !takes_buffers, "an executor");
        let mut options = ServiceOptions::default();
        let contexts: Arc<dyn BurstContexts> = match takes_buffers {
            true => Arc::new(ContextsWithBuffers),
            false => Arc::new(Contexts),
        };
        options.contexts.insert("fake".to_owned(), contexts);
        let service = Shared::start(Arc::new(FakeDevice::default()), options);
        assert_eq!(between_buffers(&service), !takes_buffers, "a context");
    }
}

#[test]
fn a_burst_that_takes_memory_only_refuses_a_buffer_by_name() {
    for has_executor in [true, false] {
        let (fake, mut options) = (FakeDevice::default(), ServiceOptions::default());
        match has_executor {
            true => *fake.0.executor.lock().unwrap() = Some(false),
            false => drop(options.contexts.insert("fake".to_owned(), Arc::new(Contexts))),
        }
        let service = Shared::start(Arc::new(fake), options);
        let socket = crate::burst_support::raw::connect(&service.path);
        let (datums, agreed) = (64, Features::TOKENS);
        let mut burst = RawBurst::start_with_features(socket, &model(), datums, agreed);
        let source = PoolSource::Token { token: 1 };
        let push = Call::PushMemory { burst: burst.number, slot: 3, source };
        let refusal = burst.client.call(push, &[]).unwrap_err();
        assert_eq!(refusal.status(), ErrorStatus::InvalidArgument);
        let want = "the driver's own burst takes memory only, and no buffer";
        assert_eq!(refusal.detail.as_str(), want);
    }
}

#[test]
fn a_buffer_that_is_dropped_while_requests_are_under_way_lasts_until_they_are_done() {
    let service = Shared::start(Arc::new(CpuDevice::default()), ServiceOptions::default());
    let client = service.connect().unwrap();
    let device = client.device("cpu").unwrap();
    let model = device.prepare(&plus_one(), &PrepareOptions::default()).unwrap();
    let mut burst = model.configure_burst(&BurstOptions::default().with_depth(8)).unwrap();
    let model = Arc::clone(&model) as Arc<dyn PreparedModel>;
    let result = shm([0.0; 4]);
    for round in 0..50_u8 {
        let buffer = device.allocate_buffer(&buffer_for(&model)).unwrap();
        let start = f32::from(round);
        buffer.fill_from(&shm([start; 4]), &[]).unwrap();
        let token = RequestPool::Token(buffer.token());
        let request = request_whole(token, RequestPool::Memory(Pool::clone(&result)));
        let options = ExecutionOptions::default();
        let tickets = [(); 4].map(|()| burst.submit(&request, &options, long()).unwrap());
        drop(buffer);
        for ticket in tickets {
            assert_eq!(burst.wait(&ticket, long()).unwrap().status, ErrorStatus::None);
        }
        let mut bytes = [0; 16];
        result.read(0, &mut bytes).unwrap();
        assert_eq!(bytes.as_slice(), floats([start + 1.0; 4]));
    }
    let used = || service.metric("burst_in_use{limit=\"buffers\"}");
    assert_eq!(used(), 0, "what was dropped is given back");
}

#[test]
fn a_role_in_a_model_of_another_connection_or_device_is_refused() {
    let service = Shared::start(Arc::new(CpuDevice::default()), ServiceOptions::default());
    let [one, other] = [(); 2].map(|()| service.connect().unwrap());
    let device = one.device("cpu").unwrap();
    let model = other.device("cpu").unwrap();
    let model = model.prepare(&plus_one(), &PrepareOptions::default()).unwrap();
    let foreign = buffer_for(&(model as Arc<dyn PreparedModel>));
    let refused = device.allocate_buffer(&foreign).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{refused}");
    assert!(refused.to_string().contains("not prepared over this connection"), "{refused}");
    let here = CpuDevice::default().prepare_model(&model_here(), &PrepareOptions::default());
    let refused = device.allocate_buffer(&buffer_for(&here.unwrap())).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{refused}");
}

fn model_here() -> Model {
    model()
}
