//! Clients take turns on a device that computes on this machine's cores: who waits for its turn, and who
//! does not.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use burst_client::{BurstOptions, Client, RemotePreparedModel, ShmMemory, Stream, StreamOptions};
use burst_hal::{
    Caller, DataLocation, Device, DeviceType, ErrorStatus, ExecutionOptions, ExecutionPreference,
    ExecutionResult, Failure, Model, Pool, PrepareOptions, PrepareResult, PreparedModel, Priority,
    Request, RequestArgument, RequestPool, TimePoint,
};
use burst_server::ServiceOptions;
use burst_wire::control::{Answer, Call, ClientMessage, List, ServerMessage};

use crate::burst_support::raw::{INPUT_SLOT, OUTPUT_SLOT, POOL_BYTES, RawBurst, connect, request};
use crate::burst_support::{LONG, long, model, wait_until, wide_model};
use crate::service_support::Shared;

/// A device of one core. Models of one operation compute until the test ends them; any other is done at
/// once.
#[derive(Clone)]
struct OneCore {
    manners: Manners,
    begun: Sender<()>,
    end: Arc<Mutex<Receiver<()>>>,
    is_slow: bool,
}

/// Whether it lets others go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manners {
    Polite,
    Stubborn,
}

/// The test's side of it.
struct Watch {
    begun: Receiver<()>,
    end: Sender<()>,
}

impl Watch {
    #[track_caller]
    fn expect_begun(&self) {
        self.begun.recv_timeout(LONG).expect("an execution begins");
    }
}

/// A service whose clients wait for that core as long as it takes.
fn one_core(manners: Manners) -> (Shared, Watch) {
    one_core_with(manners, None)
}

fn one_core_with(manners: Manners, patience: Option<Duration>) -> (Shared, Watch) {
    let ((begins, begun), (end, ends)) = (channel(), channel());
    let end_of_all = Arc::new(Mutex::new(ends));
    let device = OneCore { manners, begun: begins, end: end_of_all, is_slow: false };
    let mut options = ServiceOptions::default();
    options.run_tokens = std::num::NonZeroUsize::new(1);
    options.turn_patience = patience;
    (Shared::start(Arc::new(device), options), Watch { begun, end })
}

impl OneCore {
    fn compute(&self, caller: &Caller) {
        let until = Instant::now() + LONG;
        self.begun.send(()).unwrap();
        while !caller.is_cancelled() && self.end.lock().unwrap().try_recv().is_err() {
            assert!(Instant::now() < until, "neither ended nor cancelled");
            match self.manners {
                Manners::Polite => caller.give_way(),
                Manners::Stubborn => std::thread::yield_now(),
            }
        }
    }
}

impl Device for OneCore {
    fn name(&self) -> &str {
        "one-core"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        unreachable!("the service names its client")
    }

    fn prepare_model_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        caller: &Caller,
    ) -> PrepareResult {
        if options.preference == ExecutionPreference::LowPower {
            self.compute(caller); // a preparation that takes long
        }
        Ok(Arc::new(OneCore { is_slow: model.main.operations.len() == 1, ..self.clone() }))
    }
}

impl PreparedModel for OneCore {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        unreachable!("the service names its client")
    }

    fn execute_for(
        &self,
        request: &Request,
        _: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        assert!(request.pools.iter().all(|pool| matches!(pool, RequestPool::Memory(_))));
        if self.is_slow {
            self.compute(caller);
        }
        ExecutionResult::of(ErrorStatus::None)
    }
}

fn prepared(client: &Client, model: &Model) -> Arc<RemotePreparedModel> {
    client.device("one-core").unwrap().prepare(model, &Default::default()).unwrap()
}

fn stream(client: &Client, model: &Model) -> Stream {
    Stream::new(&prepared(client, model), model, &StreamOptions::default()).unwrap()
}

#[test]
fn a_quick_request_is_answered_while_a_long_one_computes() {
    let (service, watch) = one_core(Manners::Polite);
    let (one, other) = (service.connect().unwrap(), service.connect().unwrap());
    let (mut slow, mut quick) = (stream(&one, &model()), stream(&other, &wide_model(2)));
    std::thread::scope(|scope| {
        let slow = scope.spawn(move || slow.run(long()).map(drop));
        watch.expect_begun();
        for _ in 0..5 {
            quick.run(long()).unwrap();
        }
        watch.end.send(()).unwrap();
        slow.join().unwrap().unwrap();
    });
}

fn stream_of(client: &Client, model: &Model, priority: Priority) -> Stream {
    let prepare = PrepareOptions { priority, ..PrepareOptions::default() };
    let prepared = client.device("one-core").unwrap().prepare(model, &prepare).unwrap();
    Stream::new(&prepared, model, &StreamOptions::default()).unwrap()
}

#[test]
fn a_more_urgent_model_of_a_user_is_served_in_the_midst_of_a_less_urgent_one() {
    let (service, watch) = one_core(Manners::Polite);
    let (one, other) = (service.connect().unwrap(), service.connect().unwrap());
    let mut slow = stream_of(&one, &model(), Priority::Low);
    let mut urgent = stream_of(&other, &wide_model(2), Priority::High);
    std::thread::scope(|scope| {
        let slow = scope.spawn(move || slow.run(long()).map(drop));
        watch.expect_begun();
        for _ in 0..100 {
            urgent.run(long()).unwrap();
        }
        watch.end.send(()).unwrap();
        slow.join().unwrap().unwrap();
    });
}

#[test]
fn a_less_urgent_model_of_a_user_waits_until_a_more_urgent_one_has_computed() {
    for slow in [Priority::Medium, Priority::High] {
        let (service, watch) = one_core(Manners::Polite);
        let (one, other) = (service.connect().unwrap(), service.connect().unwrap());
        let mut slow = stream_of(&one, &model(), slow);
        let prepare = PrepareOptions { priority: Priority::Low, ..PrepareOptions::default() };
        let device = other.device("one-core").unwrap();
        let patient = device.prepare(&wide_model(2), &prepare).unwrap();
        std::thread::scope(|scope| {
            let slow = scope.spawn(move || slow.run(long()).map(drop));
            watch.expect_begun();
            // As long as the other one computes, it is never this one's turn.
            let deadline = Some(TimePoint::after(Duration::from_millis(100)));
            let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
            let missed = patient.execute(&quick_request(), &options, long()).unwrap();
            assert_eq!(missed.result.status, ErrorStatus::MissedDeadlineTransient);
            watch.end.send(()).unwrap();
            slow.join().unwrap().unwrap();
            let options = ExecutionOptions::default();
            let done = patient.execute(&quick_request(), &options, long()).unwrap();
            assert_eq!(done.result.status, ErrorStatus::None);
        });
    }
}

/// A request to a burst of a model of two operations, with its memory.
fn quick_request() -> Request {
    let pool: Pool = Arc::new(ShmMemory::create(64).unwrap());
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 16 },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0), argument(16)],
        outputs: vec![argument(32), argument(48)],
        pools: vec![RequestPool::Memory(pool)],
    }
}

#[test]
fn a_request_whose_turn_does_not_come_leaves_at_its_deadline() {
    let (service, watch) = one_core(Manners::Stubborn);
    let (one, other) = (service.connect().unwrap(), service.connect().unwrap());
    let mut slow = stream(&one, &model());
    let quick = prepared(&other, &wide_model(2));
    let mut burst = quick.configure_burst(&BurstOptions::default()).unwrap();
    std::thread::scope(|scope| {
        let slow = scope.spawn(move || slow.run(long()).map(drop));
        watch.expect_begun();
        let deadline = Some(TimePoint::after(Duration::from_millis(50)));
        let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
        let request = quick_request();
        let over_burst = burst.execute(&request, &options, long()).map(|result| result.status);
        let over_socket = quick.execute(&request, &options, long()).map(|done| done.result.status);
        watch.end.send(()).unwrap();
        slow.join().unwrap().unwrap();
        assert_eq!(over_burst.unwrap(), ErrorStatus::MissedDeadlineTransient);
        // The same deadline: it had passed when this one came.
        assert_eq!(over_socket.unwrap(), ErrorStatus::MissedDeadlinePersistent);
    });
}

#[test]
fn an_honest_client_is_answered_beside_a_device_that_never_gives_way() {
    let (service, watch) = one_core_with(Manners::Stubborn, Some(Duration::from_millis(5)));
    let clients = [(); 3].map(|()| service.connect().unwrap());
    let mut slow = clients.each_ref().map(|client| stream(client, &model()));
    let mut quick = stream(&clients[2], &wide_model(2));
    let third = prepared(&clients[2], &wide_model(2));
    let counted = || service.metric("burst_computed_beside_total");
    assert_eq!(counted(), 0);
    std::thread::scope(|scope| {
        let [first, second, _] = &mut slow;
        let first = scope.spawn(move || first.run(long()).map(drop));
        watch.expect_begun();
        for frame in 1..=20 {
            quick.run(long()).unwrap();
            assert!(counted() >= frame, "each while the slow one has the only token");
        }
        // One more that does not give way has its user's place beside: there are no more for it.
        let second = scope.spawn(move || second.run(long()).map(drop));
        watch.expect_begun();
        assert_eq!(service.metric("burst_computing_beside"), 1);
        let deadline = Some(TimePoint::after(Duration::from_millis(50)));
        let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
        let missed = third.execute(&quick_request(), &options, long()).unwrap();
        assert_eq!(missed.result.status, ErrorStatus::MissedDeadlineTransient);
        for _ in [&first, &second] {
            watch.end.send(()).unwrap();
        }
        for slow in [first, second] {
            slow.join().unwrap().unwrap();
        }
    });
    quick.run(long()).unwrap();
    let is_over = || service.metric("burst_computing_beside") == 0;
    wait_until("an end of computing beside", is_over);
}

#[test]
fn a_preparation_takes_turns_with_executions() {
    let (service, watch) = one_core(Manners::Polite);
    let (one, other) = (service.connect().unwrap(), service.connect().unwrap());
    let mut quick = stream(&other, &wide_model(2));
    std::thread::scope(|scope| {
        let preparing = scope.spawn(|| {
            let preference = ExecutionPreference::LowPower;
            let options = PrepareOptions { preference, ..Default::default() };
            one.device("one-core").unwrap().prepare(&model(), &options).map(drop)
        });
        watch.expect_begun();
        quick.run(long()).unwrap();
        watch.end.send(()).unwrap();
        preparing.join().unwrap().unwrap();
    });
}

#[test]
fn what_waits_for_its_turn_is_not_begun_for_a_burst_that_is_closed() {
    let (service, watch) = one_core(Manners::Stubborn);
    let one = service.connect().unwrap();
    let mut slow = stream(&one, &model());
    let mut waits = RawBurst::start(connect(&service.path), &model(), 1024);
    std::thread::scope(|scope| {
        let slow = scope.spawn(move || slow.run(long()).map(drop));
        watch.expect_begun();
        waits.send(&request(1, false));
        // Answered although the burst's request still has not had its turn.
        let closed = waits.client.call(Call::CloseBurst { burst: waits.number }, &[]);
        assert_eq!(closed, Ok(Answer::Done));
        watch.end.send(()).unwrap();
        slow.join().unwrap().unwrap();
    });
    assert!(watch.begun.try_recv().is_err(), "it was executed all the same");
}

#[test]
fn nobody_has_the_core_while_a_client_is_asked_for_its_memories() {
    let (service, _watch) = one_core(Manners::Stubborn);
    let mut asked = RawBurst::start_without_memories(connect(&service.path), &wide_model(2), 1024);
    let other = service.connect().unwrap();
    asked.send(&request(2, false));
    let (question, _) = asked.client.receive();
    let ServerMessage::GetMemories { id, slots, .. } = question else { panic!("{question:?}") };
    assert_eq!(slots.0, [INPUT_SLOT, OUTPUT_SLOT]);
    stream(&other, &wide_model(2)).run(long()).unwrap();
    let lengths = List(vec![POOL_BYTES as u64; 2]);
    let answer = ClientMessage::Memories { id, status: 0, lengths };
    asked.client.send(&answer, &[asked.input.as_fd(), asked.output.as_fd()]);
    asked.receive();
}
