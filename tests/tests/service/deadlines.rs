//! What ends an execution that would not end: the time-out of its loops and its deadline, over every
//! way to the CPU driver behind a service.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use burst_client::{BurstOptions, ClientError, Deadline, Route, ShmMemory, StreamOptions};
use burst_driver::CpuDevice;
use burst_hal::{
    Burst, DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model,
    ModelBuilder, OperandType, OperationType, OutputSpec, Pace, PlainBurst, Pool, PrepareOptions,
    PrepareResult, PreparedModel, Request, RequestArgument, RequestPool, TimePoint,
};
use burst_server::ServiceOptions;
use burst_wire::Features;

use crate::burst_support::{LONG, long};
use crate::service_support::Shared;

/// How long an execution is given, short beside [`LONG`]. On a busy machine a deadline may have passed
/// before the execution begins, which is told by another status; then it is given longer.
const GIVEN: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(200), Duration::from_secs(2)];

/// `x` as long as it is below `limit`: `x + step`, again and again.
fn adding(step: i32) -> Model {
    let number = |b: &mut ModelBuilder| b.input(OperandType::TensorInt32, &[1]);
    let int = || OutputSpec::new(OperandType::TensorInt32, &[1]);
    let mut b = ModelBuilder::new();
    let condition = b.referenced(|b| {
        let (x, limit) = (number(b), number(b));
        let truth = OutputSpec::new(OperandType::TensorBool8, &[1]);
        let less = b.result_of(OperationType::Less, &[x, limit], truth);
        b.output(less);
    });
    let body = b.referenced(|b| {
        let (x, _) = (number(b), number(b));
        let (step, none) = (b.constant_i32(&[1], &[step]), b.scalar_i32(0));
        let next = b.result_of(OperationType::Add, &[x, step, none], int());
        b.output(next);
    });
    let (x, limit) = (number(&mut b), number(&mut b));
    let graphs = [condition, body].map(|graph| b.subgraph(graph));
    let out = b.result_of(OperationType::While, &[graphs[0], graphs[1], x, limit], int());
    b.output(out);
    b.build().unwrap()
}

/// `x`, `limit` and the output, four bytes each.
fn request(x: i32, limit: i32) -> (Pool, Request) {
    let memory: Pool = Arc::new(ShmMemory::create(12).unwrap());
    memory.write(0, &[x.to_ne_bytes(), limit.to_ne_bytes()].concat()).unwrap();
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 4 },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0), argument(4)],
        outputs: vec![argument(8)],
        pools: vec![RequestPool::Memory(Pool::clone(&memory))],
    };
    (memory, request)
}

fn by_loop(given: Duration) -> ExecutionOptions {
    ExecutionOptions { loop_timeout: Some(given), ..Default::default() }
}

/// A loop would be left alone for much longer: it is the deadline that passes midway.
fn by_deadline(given: Duration) -> ExecutionOptions {
    ExecutionOptions {
        loop_timeout: Some(Duration::from_secs(15)),
        deadline: Some(TimePoint::after(given)),
        ..Default::default()
    }
}

/// What ends an execution, made when it begins, and the status that says so.
type Ending = (&'static str, fn(Duration) -> ExecutionOptions, ErrorStatus);
const ENDINGS: [Ending; 2] = [
    ("loop time-out", by_loop, ErrorStatus::MissedDeadlineTransient),
    // Nobody knows how long the model takes: it has never come to its end in time.
    ("deadline", by_deadline, ErrorStatus::MissedDeadlineTransient),
];

/// Asserts that an execution ends so, at the time that it was given.
#[track_caller]
fn assert_ended(
    (what, options, want): Ending,
    way: &str,
    mut run: impl FnMut(&ExecutionOptions) -> ErrorStatus,
) {
    let mut seen = Vec::new();
    for given in GIVEN {
        let begun = Instant::now();
        let status = run(&options(given));
        let took = begun.elapsed();
        assert!(took < LONG / 6, "{what} over the {way}: ended at {given:?}, not at ours");
        if status == want {
            assert!(took >= given, "{what} over the {way}: it was under way until then");
            return;
        }
        seen.push(status);
    }
    panic!("{what} over the {way}: {seen:?} and never {want}");
}

#[test]
fn an_endless_loop_ends_at_its_time_out_and_an_execution_at_its_deadline_over_burst_and_socket() {
    let service = Shared::start(Arc::new(CpuDevice::default()), ServiceOptions::default());
    let client = service.connect().unwrap();
    let device = client.device("cpu").unwrap();
    let prepared = device.prepare(&adding(0), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let (_memory, never_ends) = request(0, 1);
    let (memory, ends) = request(1, 1);

    for round in 0..2 {
        for ending in ENDINGS {
            assert_ended(ending, "burst", |options| {
                let status = burst.execute(&never_ends, options, long()).unwrap().status;
                assert!(!burst.fell_back(), "round {round}");
                status
            });
            assert_ended(ending, "socket", |options| {
                prepared.execute(&never_ends, options, long()).unwrap().result.status
            });
        }
        // The burst goes on: the next request is answered right.
        let status = burst.execute(&ends, &by_loop(GIVEN[0]), long()).unwrap().status;
        assert_eq!(status, ErrorStatus::None, "round {round}");
        let mut out = [0; 4];
        memory.read(8, &mut out).unwrap();
        assert_eq!(i32::from_ne_bytes(out), 1, "round {round}");
    }
}

/// Three rounds come to their end within what a loop may take where nobody says how long; here a
/// loop is given so little that its first round is one too many.
#[test]
fn a_short_loop_ends_at_a_shorter_time_out_and_so_it_is_the_clients_that_counts() {
    let service = Shared::start(Arc::new(CpuDevice::default()), ServiceOptions::default());
    let client = service.connect().unwrap();
    let device = client.device("cpu").unwrap();
    let prepared = device.prepare(&adding(1), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let (memory, three_rounds) = request(0, 3);
    let at_once = Some(Duration::from_nanos(1));
    for (loop_timeout, want) in
        [(at_once, ErrorStatus::MissedDeadlineTransient), (None, ErrorStatus::None)]
    {
        let options = ExecutionOptions { loop_timeout, ..Default::default() };
        let over_burst = burst.execute(&three_rounds, &options, long()).unwrap().status;
        assert_eq!(over_burst, want, "{loop_timeout:?} over the burst");
        assert!(!burst.fell_back());
        let over_socket = prepared.execute(&three_rounds, &options, long()).unwrap();
        assert_eq!(over_socket.result.status, want, "{loop_timeout:?} over the socket");
    }
    let mut out = [0; 4];
    memory.read(8, &mut out).unwrap();
    assert_eq!(i32::from_ne_bytes(out), 3);
}

/// A device that notes by when it was to be done, and ends each execution as it is told to.
#[derive(Default, Clone)]
struct Noting {
    deadlines: Arc<Mutex<Vec<Option<TimePoint>>>>,
    ends: Arc<Mutex<Option<ErrorStatus>>>,
}

impl Device for Noting {
    fn name(&self) -> &str {
        "noting"
    }

    fn version_string(&self) -> &str {
        "noting-1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(self.clone()))
    }
}

impl PreparedModel for Noting {
    fn execute_synchronously(&self, _: &Request, options: &ExecutionOptions) -> ExecutionResult {
        self.deadlines.lock().unwrap().push(options.deadline);
        ExecutionResult::of(self.ends.lock().unwrap().unwrap_or(ErrorStatus::None))
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        Ok(Box::new(PlainBurst::new(self)))
    }
}

#[test]
fn a_stream_tells_the_driver_by_when_its_caller_wants_the_result() {
    let device = Noting::default();
    let service = Shared::start(Arc::new(device.clone()), ServiceOptions::default());
    let client = service.connect().unwrap();
    let until = TimePoint::after(LONG);
    for route in Route::ALL {
        let mut options = StreamOptions::default();
        options.route = route;
        let remote = client.device("noting").unwrap();
        let mut stream = remote.stream(&crate::burst_support::model(), &options).unwrap();
        stream.run(Deadline::at_ns(until.nanos)).unwrap();
        stream.run(Deadline::never()).unwrap();
        let noted = std::mem::take(&mut *device.deadlines.lock().unwrap());
        assert_eq!(noted, [Some(until), None], "{route}");
        // A deadline that the driver missed is missed, as if the answer had not come.
        for status in [ErrorStatus::MissedDeadlineTransient, ErrorStatus::MissedDeadlinePersistent]
        {
            *device.ends.lock().unwrap() = Some(status);
            let missed = stream.run(Deadline::at_ns(until.nanos)).unwrap_err();
            assert!(matches!(missed, ClientError::Timeout), "{route}: {missed}");
            let without = stream.run(Deadline::never()).unwrap_err();
            assert!(matches!(without, ClientError::Execution { .. }), "{route}: {without}");
        }
        *device.ends.lock().unwrap() = None;
        device.deadlines.lock().unwrap().clear();
    }
}

/// A device whose executions are said to have taken a second, and lately ten hours.
struct Paced {
    pace: Pace,
    inner: Noting,
}

impl Device for Paced {
    fn name(&self) -> &str {
        "paced"
    }

    fn version_string(&self) -> &str {
        "paced-1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.inner.supported_operations(model)
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        let pace = Pace::default();
        pace.note(Duration::from_secs(1));
        (0..10).for_each(|_| pace.note(Duration::from_secs(36_000)));
        Ok(Arc::new(Paced { pace, inner: self.inner.clone() }))
    }
}

impl PreparedModel for Paced {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.inner.execute_synchronously(request, options)
    }

    fn pace(&self) -> Option<&Pace> {
        Some(&self.pace)
    }
}

#[test]
fn a_hopeless_deadline_is_refused_at_once_and_by_one_rule_whichever_way_it_came() {
    let inner = Noting::default();
    let device = Arc::new(Paced { pace: Pace::default(), inner: inner.clone() });
    let service = Shared::start(device, ServiceOptions::default());
    let client = service.connect().unwrap();
    let model = crate::burst_support::model();
    let prepared =
        client.device("paced").unwrap().prepare(&model, &PrepareOptions::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let memory: Pool = Arc::new(ShmMemory::create(32).unwrap());
    let request = crate::burst_support::request_in(&memory);
    let in_half_a_second = || Some(TimePoint::after(Duration::from_millis(500)));
    for (deadline, want) in [
        (Some(TimePoint { nanos: 1 }), ErrorStatus::MissedDeadlinePersistent),
        (in_half_a_second(), ErrorStatus::MissedDeadlinePersistent),
        (Some(TimePoint::after(LONG)), ErrorStatus::MissedDeadlineTransient),
    ] {
        let options = ExecutionOptions { deadline, ..Default::default() };
        assert_eq!(burst.execute(&request, &options, long()).unwrap().status, want);
        let over_socket = prepared.execute(&request, &options, long()).unwrap();
        assert_eq!(over_socket.result.status, want, "over the socket");
    }
    assert!(!burst.fell_back());
    assert!(inner.deadlines.lock().unwrap().is_empty(), "none was begun");
    // What a device ends midway with its own word is judged by what was left when the request came.
    *inner.ends.lock().unwrap() = Some(ErrorStatus::MissedDeadlinePersistent);
    let deadline = Some(TimePoint::after(Duration::from_secs(1_000_000)));
    let options = ExecutionOptions { deadline, ..Default::default() };
    let over_burst = burst.execute(&request, &options, long()).unwrap().status;
    let over_socket = prepared.execute(&request, &options, long()).unwrap().result.status;
    assert_eq!([over_burst, over_socket], [ErrorStatus::MissedDeadlineTransient; 2]);
}

#[test]
fn a_burst_that_cannot_say_a_deadline_carries_the_requests_of_a_stream_all_the_same() {
    let device = Noting::default();
    let mut options = ServiceOptions::default();
    options.features = Features::ALL.without(Features::DEADLINES);
    let service = Shared::start(Arc::new(device.clone()), options);
    let client = service.connect().unwrap();
    let remote = client.device("noting").unwrap();
    let options = StreamOptions::default();
    let mut stream = remote.stream(&crate::burst_support::model(), &options).unwrap();
    stream.run(long()).unwrap();
    assert!(!stream.burst().unwrap().fell_back(), "the client alone watches the deadline");
    assert_eq!(*device.deadlines.lock().unwrap(), [None]);
}
