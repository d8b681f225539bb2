//! The threads that read a client's socket never wait for another thread, whatever their client asks
//! for: its other calls are answered meanwhile.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::burst_support::raw::{
    Beside, POOL_BYTES, RawBurst, RawClient, configure_call, connect, request,
};
use crate::burst_support::{LONG, model, wait_for_no_thread_named, wait_until};
use burst_hal::{
    Burst, Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model, PlainBurst,
    PrepareOptions, PrepareResult, PreparedModel, Request,
};
use burst_server::ServiceOptions;
use burst_tests::repository;
use burst_wire::DATUM_BYTES;
use burst_wire::control::{Answer, Call, ClientMessage, List, Refusal, ServerMessage, Text};
use fmq::{Consumer, Producer, QueueConfig};

use crate::service_support::{Shared, context::Contexts};

burst_testing::tests![
    a_connection_is_read_while_closed_bursts_still_execute(),
    a_connection_is_read_while_a_burst_is_opened(),
    what_was_queued_on_a_closed_burst_is_not_executed(),
    what_lay_in_the_slots_of_a_closed_burst_is_given_back_with_the_reply(),
    no_reader_waits_for_what_is_executed_for_a_client_that_hung_up(),
    the_service_joins_no_thread_and_starts_them_in_one_place(),
];

/// A device whose executions report when they begin and end. Each ends when the test lets it, even
/// when its client is gone by then.
#[derive(Clone)]
struct Gated {
    news: Sender<News>,
    end: Arc<Mutex<Receiver<()>>>,
}

#[derive(Debug, PartialEq, Eq)]
enum News {
    Begun,
    Ended,
}

/// The test's side of it. Executions end with it, so that a test that fails does not hang.
struct Gate {
    news: Receiver<News>,
    end: Sender<()>,
}

fn gated() -> (Gated, Gate) {
    let ((news, heard), (end, ends)) = (channel(), channel());
    (Gated { news, end: Arc::new(Mutex::new(ends)) }, Gate { news: heard, end })
}

impl Device for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    fn version_string(&self) -> &str {
        "gated-1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(self.clone()))
    }
}

impl PreparedModel for Gated {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        let _ = self.news.send(News::Begun);
        let _ = self.end.lock().unwrap().recv();
        let _ = self.news.send(News::Ended);
        ExecutionResult::of(ErrorStatus::None)
    }
}

/// A burst with a request under way.
fn executing(service: &Shared, gate: &Gate) -> RawBurst {
    let mut burst = RawBurst::start(connect(&service.path), &model(), 1024);
    burst.send(&request(1, false));
    assert_eq!(gate.news.recv_timeout(LONG), Ok(News::Begun));
    burst
}

/// The next reply, to whichever call.
fn reply(client: &mut RawClient) -> (u64, Result<Answer, Refusal>) {
    match client.receive().0 {
        ServerMessage::Reply(reply) => (reply.id, reply.outcome),
        other => panic!("not a reply: {other:?}"),
    }
}

/// One more burst of the same client with a request under way.
fn another(burst: &mut RawBurst, model: u32, gate: &Gate) -> Beside {
    let mut another = Beside::start(&mut burst.client, model).expect("another burst");
    another.ask(&mut burst.client, "while others execute");
    assert_eq!(gate.news.recv_timeout(LONG), Ok(News::Begun));
    another
}

fn a_connection_is_read_while_closed_bursts_still_execute() {
    /// More than there are readers, which are as many as slow calls at once and one.
    const BURSTS: u64 = 3;
    const CLOSE: u64 = 1000;
    const LIST: u64 = 2000;
    for in_context in [false, true] {
        let mut options = ServiceOptions::default();
        options.limits.bursts = BURSTS;
        options.limits.slow_calls = 1;
        if in_context {
            // Dropping one joins its thread.
            options.contexts.insert("gated".to_owned(), Arc::new(Contexts));
        }
        let (device, gate) = gated();
        let service = Shared::start(Arc::new(device), options);
        let gate = gate; // dropped before the service, which waits for executions
        let mut burst = executing(&service, &gate);
        let second = burst.client.prepare(&model());
        let more: Vec<_> = (1..BURSTS).map(|_| another(&mut burst, second, &gate)).collect();
        let numbers = more.iter().map(|another| another.number).chain([burst.number]);
        for (id, number) in (CLOSE..).zip(numbers) {
            let call = Call::CloseBurst { burst: number };
            burst.client.send(&ClientMessage::Call { id, call }, &[]);
        }
        burst.client.send(&ClientMessage::Call { id: LIST, call: Call::ListDevices }, &[]);
        let devices = Answer::Devices([Text::cut("gated")].into_iter().collect());
        assert_eq!(reply(&mut burst.client), (LIST, Ok(devices)), "in a context: {in_context}");
        // Until they have ended they count: closing bursts does not heap up threads.
        let refused = Beside::start(&mut burst.client, second).map(drop).expect_err("one too many");
        assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);

        (0..BURSTS).for_each(|_| gate.end.send(()).unwrap());
        let mut closed: Vec<_> = (0..BURSTS).map(|_| reply(&mut burst.client)).collect();
        closed.sort_by_key(|(id, _)| *id);
        let all: Vec<_> = (CLOSE..CLOSE + BURSTS).map(|id| (id, Ok(Answer::Done))).collect();
        assert_eq!(closed, all);
        // Each said before its execution returned, and so before the reply if that waits for it.
        let ended: Vec<_> = gate.news.try_iter().collect();
        assert!(ended.len() == more.len() + 1 && ended.iter().all(|news| *news == News::Ended));
        Beside::start(&mut burst.client, second).map(drop).expect("room for another one");
    }
}

/// The gated device, whose bursts wait for the test when they are opened.
struct SlowToOpen(Gated);

impl Device for SlowToOpen {
    fn name(&self) -> &str {
        "gated"
    }

    fn version_string(&self) -> &str {
        "slow-to-open-1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.0.supported_operations(model)
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(SlowToOpen(self.0.clone())))
    }
}

impl PreparedModel for SlowToOpen {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        ExecutionResult::of(ErrorStatus::None)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        let _ = self.0.news.send(News::Begun);
        let _ = self.0.end.lock().unwrap().recv();
        Ok(Box::new(PlainBurst::new(self)))
    }
}

fn a_connection_is_read_while_a_burst_is_opened() {
    const CONFIGURE: u64 = 1000;
    const LIST: u64 = 2000;
    let (device, gate) = gated();
    let service = Shared::start(Arc::new(SlowToOpen(device)), ServiceOptions::default());
    let gate = gate; // dropped before the service, which waits for its threads
    gate.end.send(()).unwrap();
    let mut first = RawBurst::start_without_memories(connect(&service.path), &model(), 1024);
    assert_eq!(gate.news.recv_timeout(LONG), Ok(News::Begun));
    let prepared = first.client.prepare(&model());
    let requests = Producer::create(&QueueConfig::new(DATUM_BYTES, 64)).unwrap();
    let results = Consumer::create(&QueueConfig::new(DATUM_BYTES, 64)).unwrap();
    let descriptors = (requests.descriptor().unwrap(), results.descriptor().unwrap());
    let (call, fds) = configure_call(prepared, &descriptors.0, &descriptors.1);
    first.client.send(&ClientMessage::Call { id: CONFIGURE, call }, &fds);
    assert_eq!(gate.news.recv_timeout(LONG), Ok(News::Begun), "the second is being opened");

    // Another call is answered, and so is the question of another burst.
    first.client.send(&ClientMessage::Call { id: LIST, call: Call::ListDevices }, &[]);
    assert_eq!(reply(&mut first.client).0, LIST);
    first.send(&request(1, false));
    let (question, _) = first.client.receive();
    let ServerMessage::GetMemories { id, .. } = question else { panic!("{question:?}") };
    let lengths = List(vec![POOL_BYTES as u64; 2]);
    let answer = ClientMessage::Memories { id, status: 0, lengths };
    first.client.send(&answer, &[first.input.as_fd(), first.output.as_fd()]);
    assert_eq!(first.receive()[0][12..16], [0; 4], "its status");

    gate.end.send(()).unwrap();
    let opened = reply(&mut first.client);
    assert!(matches!(opened, (CONFIGURE, Ok(Answer::Burst { .. }))), "{opened:?}");
}

fn what_was_queued_on_a_closed_burst_is_not_executed() {
    const CLOSE: u64 = 1000;
    const LIST: u64 = 2000;
    let (device, gate) = gated();
    let service = Shared::start(Arc::new(device), ServiceOptions::default());
    let gate = gate; // dropped before the service, which waits for executions
    let mut burst = executing(&service, &gate);
    burst.send(&request(1, false));
    let call = Call::CloseBurst { burst: burst.number };
    burst.client.send(&ClientMessage::Call { id: CLOSE, call }, &[]);
    burst.client.send(&ClientMessage::Call { id: LIST, call: Call::ListDevices }, &[]);
    assert_eq!(reply(&mut burst.client).0, LIST, "the burst is closed by now");
    gate.end.send(()).unwrap();
    assert_eq!(reply(&mut burst.client), (CLOSE, Ok(Answer::Done)));
    let news: Vec<_> = gate.news.try_iter().collect();
    assert_eq!(news, [News::Ended], "the next one was begun");
}

fn what_lay_in_the_slots_of_a_closed_burst_is_given_back_with_the_reply() {
    for in_context in [false, true] {
        let mut options = ServiceOptions::default();
        options.limits.memories = 3;
        if in_context {
            options.contexts.insert("gated".to_owned(), Arc::new(Contexts));
        }
        let (device, gate) = gated();
        let service = Shared::start(Arc::new(device), options);
        let gate = gate; // dropped before the service, which waits for executions
        for _ in 0..20 {
            let mut burst = executing(&service, &gate);
            gate.end.send(()).unwrap();
            let closed = burst.client.call(Call::CloseBurst { burst: burst.number }, &[]);
            assert_eq!(closed, Ok(Answer::Done));
            assert_eq!(gate.news.try_recv(), Ok(News::Ended));
            for memory in 0..3 {
                let share = Call::ShareMemory { memory, length: 64 };
                let shared = burst.client.call(share, &[burst.input.as_fd()]);
                assert_eq!(shared, Ok(Answer::Done), "memory {memory}, context: {in_context}");
            }
        }
    }
}

fn no_reader_waits_for_what_is_executed_for_a_client_that_hung_up() {
    wait_for_no_thread_named("client-");
    let (device, gate) = gated();
    let service = Shared::start(Arc::new(device), ServiceOptions::default());
    let gate = gate; // dropped before the service, which waits for executions
    let burst = executing(&service, &gate);
    drop(burst);
    wait_for_no_thread_named("client-");
    // The client counts as long as a thread works for it.
    let in_use = |limit: &str| service.metric(&format!("burst_in_use{{limit=\"{limit}\"}}"));
    assert_eq!((in_use("clients"), in_use("bursts")), (1, 1));
    gate.end.send(()).unwrap();
    wait_until("the client's end", || in_use("clients") == 0);
    assert_eq!((in_use("bursts"), in_use("models"), in_use("memories")), (0, 0, 0));
}

/// Sources of the service without their tests.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if !path.file_stem().unwrap().to_string_lossy().ends_with("tests") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            found.push((path, code));
        }
    }
}

/// Joining is what makes a reader wait; the tests above cannot reach every place it could come back.
fn the_service_joins_no_thread_and_starts_them_in_one_place() {
    let mut found = Vec::new();
    sources(&repository().join("burst-server/src"), &mut found);
    let users = |words: &[&str]| -> Vec<String> {
        let is_in = |code: &str| words.iter().any(|word| code.contains(word));
        let users = found.iter().filter(|(_, code)| is_in(code));
        users.map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(users(&[".join()", "JoinHandle", "thread::scope"]), [""; 0]);
    assert_eq!(users(&["thread::Builder", "thread::spawn"]), ["threads.rs"]);
    assert_eq!(users(&["Running::new()"]), ["service.rs"], "who waits for the end of clients");
}
