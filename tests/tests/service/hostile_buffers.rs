//! Clients that do with buffers of a driver what they should not: it harms nobody else, and costs nobody
//! else anything.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use burst_client::BurstOptions;
use burst_driver::CpuDevice;
use burst_hal::{
    BufferRole, Device, ErrorStatus, ExecutionOptions, PrepareOptions, PreparedModel, RequestPool,
};
use burst_server::{Service, ServiceOptions};
use burst_shm::Memory;
use burst_wire::Features;
use burst_wire::control::{
    Answer, Call, ClientMessage, List, PoolSource, Refusal, ServerMessage, SynchronousRequest,
    WireArgument, WireBufferRequest, WireRole,
};

use crate::burst_support::raw::{RawBurst, RawClient, connect};
use crate::burst_support::{FakeDevice, buffer_for, long, model, request_whole, wait_until};
use crate::service_support::{Shared, passes_after_waiting};

const INVALID: ErrorStatus = ErrorStatus::InvalidArgument;

fn allocate(model: u32, inputs: &[BufferRole], outputs: &[BufferRole]) -> Call {
    let roles = |roles: &[BufferRole]| List(roles.iter().map(WireRole::from).collect());
    let (inputs, outputs) = (roles(inputs), roles(outputs));
    let request = WireBufferRequest {
        dimensions: List::default(),
        models: List(vec![model]),
        inputs,
        outputs,
    };
    Call::AllocateBuffer { device: 0, request }
}

const ROLE: BufferRole = BufferRole { model: 0, position: 0, frequency: 1.0 };

/// A buffer of the client, for input and output 0 of the model.
fn buffer(client: &mut RawClient, model: u32) -> u32 {
    match client.call(allocate(model, &[ROLE], &[ROLE]), &[]) {
        Ok(Answer::Buffer { token }) => token,
        other => panic!("{other:?}"),
    }
}

fn memory() -> Memory {
    Memory::create("value", 16).unwrap()
}

const HERE: PoolSource = PoolSource::Descriptor { length: 16 };

fn fill(client: &mut RawClient, token: u32) -> Result<Answer, Refusal> {
    let call = Call::CopyToBuffer { token, from: HERE, dimensions: List::default() };
    client.call(call, &[memory().as_fd()])
}

/// From one pool into another.
fn execute(model: u32, pools: [PoolSource; 2]) -> Call {
    let argument = |pool_index| WireArgument {
        has_no_value: false,
        pool_index,
        offset: 0,
        length: 0,
        dimensions: List::default(),
    };
    Call::Execute(SynchronousRequest {
        model,
        inputs: List(vec![argument(0)]),
        outputs: List(vec![argument(1)]),
        pools: List(pools.to_vec()),
        measure_timing: false,
        deadline: None,
        loop_timeout: None,
    })
}

#[track_caller]
fn expect_refused(outcome: Result<Answer, Refusal>, want: ErrorStatus, words: &str) {
    let refusal = outcome.expect_err("refused");
    assert_eq!(refusal.status(), want, "{refusal:?}");
    assert!(refusal.detail.as_str().contains(words), "{refusal:?}");
}

#[track_caller]
fn status(outcome: Result<Answer, Refusal>) -> i32 {
    match outcome {
        Ok(Answer::Executed(executed)) => executed.status,
        Err(refusal) => refusal.status().code(),
        Ok(other) => panic!("{other:?}"),
    }
}

#[test]
fn tokens_of_another_client_name_nothing() {
    let service = Shared::start(Arc::new(FakeDevice::default()), ServiceOptions::default());
    let [mut owner, mut thief] = [(); 2].map(|()| RawClient::greet(connect(&service.path)));
    let (owners, thiefs) = (owner.prepare(&model()), thief.prepare(&model()));
    let tokens = [(); 3].map(|()| buffer(&mut owner, owners));
    for token in tokens {
        fill(&mut owner, token).unwrap();
    }
    let names = |token| format!("there is no buffer {token}");
    for token in tokens {
        let said = names(token);
        let pool = PoolSource::Token { token };
        expect_refused(
            thief.call(execute(thiefs, [pool, HERE]), &[memory().as_fd()]),
            INVALID,
            &said,
        );
        expect_refused(
            thief.call(execute(thiefs, [HERE, pool]), &[memory().as_fd()]),
            INVALID,
            &said,
        );
        expect_refused(fill(&mut thief, token), INVALID, &said);
        let read = Call::CopyFromBuffer { token, to: HERE };
        expect_refused(thief.call(read, &[memory().as_fd()]), INVALID, &said);
        expect_refused(thief.call(Call::ReleaseBuffer { token }, &[]), INVALID, &said);
    }
    // Its own first token is as good a number as the owner's, and stands for its own buffer.
    let own = buffer(&mut thief, thiefs);
    assert_eq!(own, tokens[0]);
    let read = |token| Call::CopyFromBuffer { token, to: HERE };
    let read_own = thief.call(read(own), &[memory().as_fd()]);
    expect_refused(read_own, ErrorStatus::GeneralFailure, "no value");
    assert_eq!(owner.call(read(tokens[0]), &[memory().as_fd()]), Ok(Answer::Done));
}

#[test]
fn calls_about_buffers_say_what_is_wrong_with_them_and_the_client_goes_on() {
    let service = Shared::start(Arc::new(FakeDevice::default()), ServiceOptions::default());
    let mut client = RawClient::greet(connect(&service.path));
    let number = client.prepare(&model());
    let wrong = |role: BufferRole| allocate(number, &[role], &[]);
    for (call, words) in [
        (allocate(99, &[ROLE], &[]), "there is no prepared model 99"),
        (allocate(number, &[], &[]), "at least one role"),
        (wrong(BufferRole { model: 1, ..ROLE }), "input role 0 of the buffer: model 1 of 1"),
        (wrong(BufferRole { position: 1, ..ROLE }), "position 1 of 1"),
        (wrong(BufferRole { frequency: f32::NAN, ..ROLE }), "frequency NaN"),
        (
            allocate(number, &[], &[ROLE, ROLE]),
            "output role 1 of the buffer: it stands in the list",
        ),
        (Call::ReleaseBuffer { token: 0 }, "there is no buffer 0"),
    ] {
        expect_refused(client.call(call, &[]), INVALID, words);
    }
    let Call::AllocateBuffer { request, .. } = allocate(number, &[ROLE], &[]) else { panic!() };
    let no_device = Call::AllocateBuffer { device: 7, request };
    expect_refused(client.call(no_device, &[]), INVALID, "there is no device 7");
    let token = buffer(&mut client, number);
    let onto_itself = Call::CopyFromBuffer { token, to: PoolSource::Token { token } };
    expect_refused(client.call(onto_itself, &[]), INVALID, "memory only");
    let lost = Call::CopyFromBuffer { token, to: PoolSource::Shared { memory: 5 } };
    expect_refused(client.call(lost, &[]), INVALID, "there is no memory 5");
    let bare = Call::CopyFromBuffer { token, to: HERE };
    expect_refused(client.call(bare, &[]), INVALID, "1 descriptors and came with 0");
    fill(&mut client, token).unwrap();
    let short = Call::CopyFromBuffer { token, to: PoolSource::Descriptor { length: 15 } };
    expect_refused(client.call(short, &[memory().as_fd()]), INVALID, "15 bytes for a value of 16");
    let mut sealed = memory();
    sealed.seal_write().unwrap();
    let into_sealed = Call::CopyFromBuffer { token, to: HERE };
    let refused = client.call(into_sealed.clone(), &[sealed.as_fd()]);
    expect_refused(refused, ErrorStatus::GeneralFailure, "may only be read");
    let from_sealed = Call::CopyToBuffer { token, from: HERE, dimensions: List(vec![1, 4]) };
    assert_eq!(client.call(from_sealed, &[sealed.as_fd()]), Ok(Answer::Done));
    let pipe: (OwnedFd, OwnedFd) = rustix::pipe::pipe().unwrap();
    let refused = client.call(into_sealed.clone(), &[pipe.0.as_fd()]).unwrap_err();
    assert_eq!(refused.status(), INVALID, "{refused:?}");
    assert_eq!(client.call(into_sealed, &[memory().as_fd()]), Ok(Answer::Done), "it goes on");
}

/// A file that ends early, as one on a file system of the client's may at any time.
#[test]
fn a_copy_from_a_file_that_loses_its_end_leaves_no_value_and_harms_nobody() {
    let service = Shared::start(Arc::new(CpuDevice::default()), ServiceOptions::default());
    let mut client = RawClient::greet(connect(&service.path));
    let number = client.prepare(&model());
    let token = buffer(&mut client, number);
    fill(&mut client, token).unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(16).unwrap();
    let share = Call::ShareMemory { memory: 1, length: 16 };
    assert_eq!(client.call(share, &[file.as_fd()]), Ok(Answer::Done));
    file.set_len(7).unwrap();
    let shared = PoolSource::Shared { memory: 1 };
    let from = Call::CopyToBuffer { token, from: shared, dimensions: List::default() };
    let refusal = client.call(from, &[]).unwrap_err();
    assert_eq!(refusal.status(), ErrorStatus::GeneralFailure, "{refusal:?}");
    let read = || Call::CopyFromBuffer { token, to: HERE };
    let read_it = client.call(read(), &[memory().as_fd()]);
    expect_refused(read_it, ErrorStatus::GeneralFailure, "no value");
    fill(&mut client, token).unwrap();
    assert_eq!(client.call(read(), &[memory().as_fd()]), Ok(Answer::Done));
}

#[test]
fn a_buffer_released_in_flight_lasts_until_the_execution_has_ended() {
    let device = FakeDevice::default();
    let controls = Arc::clone(&device.0);
    let service = Shared::start(Arc::new(device), ServiceOptions::default());
    let mut client = RawClient::greet(connect(&service.path));
    let number = client.prepare(&model());
    let [from, to] = [(); 2].map(|()| buffer(&mut client, number));
    fill(&mut client, from).unwrap();
    controls.close_gate();
    let pools = [from, to].map(|token| PoolSource::Token { token });
    client.send(&ClientMessage::Call { id: 500, call: execute(number, pools) }, &[]);
    controls.wait_begun(1);
    for token in [from, to] {
        assert_eq!(client.call(Call::ReleaseBuffer { token }, &[]), Ok(Answer::Done));
    }
    assert_eq!(service.metric("burst_in_use{limit=\"buffers\"}"), 2, "the execution has them");
    // What is made meanwhile is another buffer, by any number.
    let next = buffer(&mut client, number);
    assert!(![from, to].contains(&next));
    controls.open_gate();
    let (message, _) = client.receive();
    let ServerMessage::Reply(reply) = message else { panic!("{message:?}") };
    assert_eq!((reply.id, status(reply.outcome)), (500, 0), "it ends well");
    wait_until("the end of both", || service.metric("burst_in_use{limit=\"buffers\"}") == 1);
    let again = client.call(execute(number, pools), &[]);
    expect_refused(again, INVALID, "there is no buffer");
}

#[test]
fn slots_take_buffers_only_where_that_was_agreed_and_lose_them_with_their_release() {
    let service = Shared::start(Arc::new(FakeDevice::default()), ServiceOptions::default());
    let plain = RawBurst::start(connect(&service.path), &model(), 64);
    let mut client = plain.client;
    let number = client.prepare(&model());
    let token = buffer(&mut client, number);
    let push =
        |burst, slot, token| Call::PushMemory { burst, slot, source: PoolSource::Token { token } };
    let refused = client.call(push(plain.number, 20, token), &[]);
    expect_refused(refused, INVALID, "were not negotiated");

    let agreed = Features::TOKENS;
    let socket = connect(&service.path);
    let mut burst = RawBurst::start_with_features(socket, &model(), 64, agreed);
    let source = PoolSource::Descriptor { length: 4096 };
    let memory = Call::PushMemory { burst: burst.number, slot: 4, source };
    let descriptor = burst.input.try_clone().unwrap();
    assert_eq!(burst.client.call(memory, &[descriptor.as_fd()]), Ok(Answer::Done));
    let number = burst.client.prepare(&model());
    let token = buffer(&mut burst.client, number);
    expect_refused(burst.client.call(push(burst.number, 9, 77), &[]), INVALID, "no buffer 77");
    assert_eq!(burst.client.call(push(burst.number, 9, token), &[]), Ok(Answer::Done));
    expect_refused(burst.client.call(push(burst.number, 9, token), &[]), INVALID, "in use");
    // The buffer is for another model than the burst's: the driver sees that.
    let datums = request_into_slot(9);
    assert_eq!(burst.run(&datums, 1).status, INVALID);
    // The client is not asked for what it has released.
    assert_eq!(burst.client.call(Call::ReleaseBuffer { token }, &[]), Ok(Answer::Done));
    assert_eq!(service.metric("burst_in_use{limit=\"buffers\"}"), 1, "only the first one is left");
    assert_eq!(burst.run(&datums, 1).status, INVALID);
    let free = Call::FreeMemory { burst: burst.number, slot: 9 };
    assert_eq!(burst.client.call(free, &[]), Ok(Answer::Done));
}

/// 16 bytes out of slot 4 into all of this slot.
fn request_into_slot(slot: i32) -> Vec<burst_wire::DatumBytes> {
    let argument = |pool_index, length| burst_hal::RequestArgument {
        location: burst_hal::DataLocation { pool_index, offset: 0, length },
        ..burst_hal::RequestArgument::default()
    };
    crate::burst_support::raw::packet(&[argument(0, 16)], &[argument(1, 0)], &[4, slot], false)
}

/// A storm of allocations by one client; another one computes beside it, and finds its own buffers.
#[test]
fn a_storm_of_allocations_is_refused_by_name_and_an_honest_client_works_beside_it() {
    let mut options = ServiceOptions::default();
    options.limits.buffers = 50;
    options.limits.setup_rate = 0;
    let service = Shared::start(Arc::new(CpuDevice::default()), options);
    let honest = service.connect().unwrap();
    let device = honest.device("cpu").unwrap();
    let model_of_honest = device.prepare(&model(), &PrepareOptions::default()).unwrap();
    let mut burst = model_of_honest.configure_burst(&BurstOptions::default()).unwrap();
    let as_model = Arc::clone(&model_of_honest) as Arc<dyn PreparedModel>;
    let own = device.allocate_buffer(&buffer_for(&as_model)).unwrap();
    let storm = {
        let socket = connect(&service.path);
        std::thread::spawn(move || {
            let mut client = RawClient::greet(socket);
            let number = client.prepare(&model());
            let mut refusals = 0;
            for _ in 0..2000 {
                match client.call(allocate(number, &[ROLE], &[ROLE]), &[]) {
                    Ok(Answer::Buffer { .. }) => {}
                    Err(refusal) => {
                        assert_eq!(refusal.status(), ErrorStatus::ResourceExhaustedTransient);
                        refusals += 1;
                    }
                    Ok(other) => panic!("{other:?}"),
                }
            }
            refusals
        })
    };
    let memory: burst_hal::Pool = Arc::new(burst_client::ShmMemory::create(16).unwrap());
    for _ in 0..200 {
        burst_hal::Buffer::copy_from(&own, &memory, &[]).unwrap();
        let token = RequestPool::Token(burst_hal::Buffer::token(&own));
        let request = request_whole(token, RequestPool::Memory(Arc::clone(&memory)));
        let result = burst.execute(&request, &ExecutionOptions::default(), long()).unwrap();
        assert_eq!(result.status, ErrorStatus::None);
    }
    assert_eq!(storm.join().unwrap(), 1950);
    let used = || service.metric("burst_in_use{limit=\"buffers\"}");
    wait_until("the end of the storm's buffers", || used() == 1);
    passes_after_waiting(|| device.allocate_buffer(&buffer_for(&as_model)));
}

/// Two devices in one service: a token of the one says nothing to the other.
#[test]
fn a_token_is_good_for_the_device_that_made_it() {
    struct Named(FakeDevice, &'static str);
    impl Device for Named {
        fn name(&self) -> &str {
            self.1
        }
        fn version_string(&self) -> &str {
            "1"
        }
        fn supported_operations(
            &self,
            model: &burst_hal::Model,
        ) -> Result<Vec<bool>, burst_hal::Failure> {
            self.0.supported_operations(model)
        }
        fn prepare_model(
            &self,
            model: &burst_hal::Model,
            options: &PrepareOptions,
        ) -> burst_hal::PrepareResult {
            self.0.prepare_model(model, options)
        }
        fn allocate(
            &self,
            request: &burst_hal::BufferRequest,
            caller: &burst_hal::Caller,
        ) -> Result<Arc<dyn burst_hal::Buffer>, burst_hal::Failure> {
            self.0.allocate(request, caller)
        }
    }
    let devices: Vec<Arc<dyn Device>> = ["one", "two"]
        .map(|name| Arc::new(Named(FakeDevice::default(), name)) as Arc<dyn Device>)
        .to_vec();
    let (ours, theirs) = burst_wire::socket::pair().unwrap();
    let service = Service::new(devices, ServiceOptions::default());
    let serving = std::thread::spawn(move || service.serve_socket(theirs));
    let client = burst_client::Client::from_socket(ours).unwrap();
    let [one, two] = ["one", "two"].map(|name| client.device(name).unwrap());
    let prepare = |device: &burst_client::RemoteDevice| {
        device.prepare(&model(), &PrepareOptions::default()).unwrap()
    };
    let (of_one, of_two) = (prepare(&one), prepare(&two));
    let as_model = |model: &Arc<_>| Arc::clone(model) as Arc<dyn PreparedModel>;
    let refused = one.allocate_buffer(&buffer_for(&as_model(&of_two))).unwrap_err();
    assert_eq!(refused.status(), INVALID);
    assert!(refused.to_string().contains("of device two, and not of one"), "{refused}");
    let [first, second] = [(&one, &of_one), (&two, &of_two)]
        .map(|(device, model)| device.allocate_buffer(&buffer_for(&as_model(model))).unwrap());
    let memory: burst_hal::Pool = Arc::new(burst_client::ShmMemory::create(16).unwrap());
    for buffer in [&first, &second] {
        burst_hal::Buffer::copy_from(buffer, &memory, &[]).unwrap();
    }
    let request = |buffer: &burst_client::RemoteBuffer| {
        let token = RequestPool::Token(burst_hal::Buffer::token(buffer));
        request_whole(token, RequestPool::Memory(Arc::clone(&memory)))
    };
    let options = ExecutionOptions::default();
    for (model, own, other) in [(&of_one, &first, &second), (&of_two, &second, &first)] {
        let run = |buffer| model.execute(&request(buffer), &options, long()).unwrap();
        // In shared memory the argument is all of the pool, too.
        assert_eq!(run(own).result.status, ErrorStatus::None);
        assert_eq!(run(other).result.status, INVALID);
        let mut burst = model.configure_burst(&BurstOptions::default()).unwrap();
        let result = burst.execute(&request(other), &options, long()).unwrap();
        assert_eq!(result.status, INVALID, "nor over a burst");
    }
    drop((of_one, of_two, first, second, one, two, client));
    serving.join().unwrap().unwrap();
}
