//! A client and a service that does not do what it should, or nothing at all.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use burst_client::{BurstOptions, ClientError, Deadline, RemotePreparedModel};
use burst_hal::{
    Buffer, BufferRequest, BufferRole, Caller, ExecutionOptions, FencedOptions, PreparedModel,
};
use burst_wire::WireError;
use burst_wire::control::{Answer, Call};

mod fake;

use fake::{LONG, Said, Scripted, request};

/// Far more than anything here takes, and less than the 30 seconds after which the client itself gives up a call that
/// needs no work.
const LESS_THAN_THE_CLIENTS_OWN: Duration = Duration::from_secs(20);

fn is_malformed<T>(result: Result<T, ClientError>) -> bool {
    matches!(result, Err(ClientError::Wire(WireError::Malformed { .. })))
}

fn is_timeout<T>(result: Result<T, ClientError>) -> bool {
    matches!(result, Err(ClientError::Timeout))
}

/// A deadline that has passed by the time that anybody could answer.
fn now() -> Deadline {
    Deadline::at_ns(1)
}

fn buffer_request(model: &Arc<RemotePreparedModel>) -> BufferRequest {
    BufferRequest {
        models: vec![Arc::clone(model) as Arc<dyn PreparedModel>],
        inputs: vec![BufferRole { model: 0, position: 0, frequency: 1.0 }],
        ..BufferRequest::default()
    }
}

#[test]
fn a_number_that_two_bursts_are_given_ends_the_connection_and_leaves_nobody_waiting() {
    let scripted = Scripted::start(|_| None);
    let prepared = scripted.prepared();
    let mut first = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let (_memory, request) = request();
    let (tell, told) = channel();
    let waiting = std::thread::spawn(move || {
        let executed = first.execute(&request, &ExecutionOptions::default(), Deadline::never());
        tell.send(executed.map(drop)).unwrap();
    });
    // It has sent its memory: it waits for its result, or is about to.
    scripted.asked(|call| matches!(call, Call::PushMemory { .. }).then_some(()));
    assert!(is_malformed(prepared.configure_burst(&BurstOptions::default())));
    let ended = told.recv_timeout(LONG).expect("it waits for ever");
    assert!(matches!(ended, Err(ClientError::PeerDied { .. })), "{ended:?}");
    assert!(!scripted.client.is_alive());
    waiting.join().unwrap();
}

#[test]
fn a_burst_that_is_dropped_leaves_its_number_to_the_next_one() {
    let scripted = Scripted::start(|_| None);
    let prepared = scripted.prepared();
    for _ in 0..2 {
        assert!(prepared.configure_burst(&BurstOptions::default()).unwrap().is_alive());
    }
}

#[test]
fn a_token_that_two_buffers_are_given_ends_the_connection() {
    let scripted = Scripted::start(|call| match call {
        Call::AllocateBuffer { .. } => Some(Said::Answer(Answer::Buffer { token: 7 })),
        _ => None,
    });
    let (device, prepared) = (scripted.device(), scripted.prepared());
    let asked = buffer_request(&prepared);
    for _ in 0..2 {
        assert_eq!(device.allocate_buffer(&asked).unwrap().token(), 7, "its own, once it is free");
    }
    let first = device.allocate_buffer(&asked).unwrap();
    assert!(is_malformed(device.allocate_buffer(&asked)));
    assert!(!scripted.client.is_alive());
    drop(first);
}

#[test]
fn a_memory_that_came_without_a_usable_descriptor_is_given_back() {
    let mut none = false;
    let scripted = Scripted::start(move |call| match call {
        Call::AllocateMemory { .. } => {
            none = !none;
            let (read, _write) = std::io::pipe().unwrap();
            let no_memory = if none { Vec::new() } else { vec![read.into()] };
            Some(Said::With(Answer::Done, no_memory))
        }
        _ => None,
    });
    let prepared = scripted.prepared();
    for _ in 0..2 {
        assert!(prepared.allocate_outputs(4096).is_err());
        scripted.is_made_and_forgotten();
    }
    assert!(scripted.client.is_alive());
}

#[test]
fn a_memory_of_a_request_whose_caller_gave_up_is_not_freed_under_it() {
    let scripted = Scripted::start(|_| None);
    let mut burst = scripted.prepared().configure_burst(&BurstOptions::default()).unwrap();
    let (memory, request) = request();
    burst.push_memory(&memory).unwrap();
    assert!(is_timeout(burst.execute(&request, &ExecutionOptions::default(), now())));
    assert_eq!(burst.outstanding(), 1);
    assert!(matches!(burst.free_memory(&memory), Err(ClientError::MemoryInUse)));
    // Nor is it when the program has dropped it.
    drop((memory, request));
    assert_eq!(burst.memories_in_slots(), 1);
}

#[test]
fn whatever_a_caller_waits_for_ends_with_its_deadline() {
    let (tell, told) = channel();
    let waiting = std::thread::spawn(move || {
        give_up_everything();
        tell.send(()).unwrap();
    });
    let ended = told.recv_timeout(LESS_THAN_THE_CLIENTS_OWN);
    assert!(ended.is_ok() || waiting.is_finished(), "it waits for longer than its caller");
    waiting.join().unwrap();
}

fn give_up_everything() {
    let scripted = Scripted::start(|call| match call {
        Call::ConfigureBurst { .. }
        | Call::AllocateBuffer { .. }
        | Call::ExecuteAsynchronously { .. }
        | Call::ExecutionInfo { .. } => Some(Said::Nothing),
        Call::ExecuteFenced(_) => Some(Said::Answer(Answer::Fenced { execution: 3 })),
        _ => None,
    });
    let (device, prepared) = (scripted.device(), scripted.prepared());
    assert!(is_timeout(prepared.configure_burst_until(&BurstOptions::default(), now())));
    assert!(is_timeout(device.allocate_buffer_until(&buffer_request(&prepared), now())));
    let (_memory, request) = request();
    let (options, caller) = (FencedOptions::default(), Caller::default());
    let fenced =
        prepared.start_fenced_until(request.clone(), &[], &options, &caller, Deadline::after(LONG));
    let (_, info) = fenced.unwrap();
    assert!(is_timeout(info.execution_info_until(now())));
    let (tell, told) = channel();
    let callback = move |outcome| tell.send(outcome).unwrap();
    // The service has the memory already.
    let options = ExecutionOptions::default();
    let started = prepared.start_until(request, &options, &caller, now(), callback);
    assert!(is_timeout(started));
    assert!(is_timeout(told.recv_timeout(LONG).unwrap()));
    assert!(scripted.client.is_alive());
}
