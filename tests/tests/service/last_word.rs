//! Who says what came of a deadline: the service, also after it has passed, and the client alone only where the
//! service says nothing.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use burst_client::{
    ANSWER_GRACE, Client, ReconnectingDevice, RemoteDevice, RemotePreparedModel, ShmMemory,
};
use burst_driver::{CacheKey, CpuDevice};
use burst_hal::{
    CACHE_TOKEN_BYTES, Caller, CompilationCache, Device, ErrorStatus, ExecutionOptions,
    ExecutionResult, Failure, FenceState, FencedOptions, Model, Pool, PrepareOptions,
    PrepareResult, PreparedModel, Request, TimePoint,
};
use burst_server::ServiceOptions;
use burst_wire::Features;

use crate::burst_support::{LONG, long, model, request_in};
use crate::peer::Service;
use crate::service_support::Shared;

const TRANSIENT: ErrorStatus = ErrorStatus::MissedDeadlineTransient;
const PERSISTENT: ErrorStatus = ErrorStatus::MissedDeadlinePersistent;

/// A way to have a model executed: the status that it ends with.
type Way = (&'static str, fn(&Arc<dyn PreparedModel>, &Request, ExecutionOptions) -> ErrorStatus);

/// Those that every device has.
const WAYS: [Way; 4] = [
    ("synchronous", |model, request, options| {
        model.execute_synchronously(request, &options).status
    }),
    ("for a caller", |model, request, options| {
        model.execute_for(request, &options, &Caller::default()).status
    }),
    ("asynchronous", |model, request, options| {
        let (tell, told) = channel();
        let callback = Box::new(move |result: ExecutionResult| tell.send(result.status).unwrap());
        let (model, request) = (Arc::clone(model), request.clone());
        model.execute_asynchronously(request, options, Caller::default(), callback).unwrap();
        told.recv_timeout(LONG).unwrap()
    }),
    ("burst", |model, request, options| {
        let mut result = ExecutionResult::of(ErrorStatus::None);
        Arc::clone(model).open_burst().unwrap().execute(request, &options, &mut result);
        result.status
    }),
];

/// Those that a device has in a service alone.
const FENCED: Way = ("fenced", |model, request, execution| {
    let options = FencedOptions { execution, duration: None };
    let (model, request) = (Arc::clone(model), request.clone());
    match model.execute_fenced(request, Vec::new(), options, Caller::default()) {
        Err(refused) => refused.status,
        Ok(started) => {
            if let Some(fence) = &started.fence {
                assert_ne!(fence.wait(Some(TimePoint::after(LONG))), FenceState::Pending);
            }
            started.info.execution_info().unwrap().status
        }
    }
});

fn by(deadline: TimePoint) -> ExecutionOptions {
    ExecutionOptions { deadline: Some(deadline), ..ExecutionOptions::default() }
}

fn passed() -> ExecutionOptions {
    by(TimePoint { nanos: 1 })
}

fn request() -> Request {
    let memory: Pool = Arc::new(ShmMemory::create(32).unwrap());
    request_in(&memory)
}

/// What it comes to where the service's word is there in time. On a machine that is so busy that it is not, the
/// client says TRANSIENT by itself: then it is asked for again.
#[track_caller]
fn in_time(mut attempt: impl FnMut() -> ErrorStatus) -> ErrorStatus {
    let until = Instant::now() + LONG;
    loop {
        match attempt() {
            TRANSIENT if Instant::now() < until => {}
            status => return status,
        }
    }
}

fn cpu() -> CpuDevice {
    CpuDevice::default().with_cache_key(CacheKey::new([3; CacheKey::BYTES]))
}

#[test]
fn an_execution_whose_deadline_has_passed_is_judged_by_the_service_as_by_the_device_itself() {
    let service = Shared::start(Arc::new(cpu()), ServiceOptions::default());
    let client = service.connect().unwrap();
    let reconnecting = ReconnectingDevice::connect(&service.path, "cpu").unwrap();
    let options = PrepareOptions::default();
    let here = cpu().prepare_model(&model(), &options).unwrap();
    let remote: [Arc<dyn PreparedModel>; 2] = [
        client.device("cpu").unwrap().prepare(&model(), &options).unwrap(),
        reconnecting.prepare(&model(), &options).unwrap(),
    ];
    // Before anything is known of the model, and when it is known how long it takes.
    for round in 0..2 {
        for (way, execute) in WAYS {
            assert_eq!(execute(&here, &request(), passed()), PERSISTENT, "{way}, here, {round}");
        }
        for (index, model) in remote.iter().enumerate() {
            for (way, execute) in WAYS.into_iter().chain([FENCED]) {
                let status = in_time(|| execute(model, &request(), passed()));
                assert_eq!(status, PERSISTENT, "{way}, {index}, {round}");
                let status = execute(model, &request(), ExecutionOptions::default());
                assert_eq!(status, ErrorStatus::None, "{way}, {index}, {round}");
            }
        }
        let done = here.execute_synchronously(&request(), &ExecutionOptions::default());
        assert_eq!(done.status, ErrorStatus::None);
    }
}

#[test]
fn a_request_that_its_burst_cannot_carry_is_judged_by_the_service_too() {
    let mut options = ServiceOptions::default();
    options.features = Features::ALL.without(Features::DEADLINES);
    let service = Shared::start(Arc::new(cpu()), options);
    let device = service.connect().unwrap().device("cpu").unwrap();
    let prepared: Arc<dyn PreparedModel> = device.prepare(&model(), &Default::default()).unwrap();
    let (_, over_burst) = WAYS[3];
    assert_eq!(in_time(|| over_burst(&prepared, &request(), passed())), PERSISTENT);
}

/// Every way to have a model prepared that its device may refuse for its deadline.
fn preparing(device: &dyn Device, cache: &CompilationCache) -> [ErrorStatus; 4] {
    let deadline = Some(TimePoint { nanos: 1 });
    let (options, caller) = (PrepareOptions { deadline, ..Default::default() }, Caller::default());
    let refused = |outcome: PrepareResult| outcome.map(drop).unwrap_err().status;
    [
        in_time(|| refused(device.prepare_model(&model(), &options))),
        in_time(|| refused(device.prepare_model_for(&model(), &options, &caller))),
        in_time(|| refused(device.prepare_model_caching(&model(), &options, cache, &caller))),
        in_time(|| refused(device.prepare_model_from_cache(cache, deadline, &caller))),
    ]
}

fn files(device: &dyn Device, folder: &std::path::Path) -> CompilationCache {
    let file = |name: String| {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        options.open(folder.join(name)).unwrap()
    };
    let needed = device.cache_files_needed();
    CompilationCache {
        token: [7; CACHE_TOKEN_BYTES],
        model: (0..needed.model).map(|index| file(format!("model-{index}"))).collect(),
        data: (0..needed.data).map(|index| file(format!("data-{index}"))).collect(),
    }
}

#[test]
fn a_preparation_whose_deadline_has_passed_is_judged_by_the_service_as_by_the_device_itself() {
    let service = Shared::start(Arc::new(cpu()), ServiceOptions::default());
    let folder = tempfile::tempdir().unwrap();
    let remote = service.connect().unwrap().device("cpu").unwrap();
    let reconnecting = ReconnectingDevice::connect(&service.path, "cpu").unwrap();
    let cache = files(&cpu(), folder.path());
    // There is something to be had from the files.
    let kept =
        cpu().prepare_model_caching(&model(), &Default::default(), &cache, &Caller::default());
    kept.map(drop).unwrap();
    let here = preparing(&cpu(), &cache);
    assert_eq!(here, [PERSISTENT; 4]);
    assert_eq!(preparing(&remote, &cache), here);
    assert_eq!(preparing(&reconnecting, &cache), here);
}

/// A device that begins before the deadline of an execution, and says something of it only when that has passed
/// for a while.
struct Late;

/// For how long: a client that gave up at the deadline has done so by then.
const WHILE: Duration = Duration::from_millis(50);

impl Device for Late {
    fn name(&self) -> &str {
        "late"
    }

    fn version_string(&self) -> &str {
        "late-1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(Late))
    }
}

impl PreparedModel for Late {
    fn execute_synchronously(&self, _: &Request, options: &ExecutionOptions) -> ExecutionResult {
        let deadline = options.deadline.unwrap();
        while TimePoint::now().since(deadline) < WHILE {
            std::thread::yield_now();
        }
        // The model knows of no pace: its word goes to the client as it is.
        ExecutionResult::of(ErrorStatus::ResourceExhaustedPersistent)
    }
}

#[test]
fn what_the_service_says_within_the_grace_counts_although_the_deadline_has_passed() {
    let service = Shared::start(Arc::new(Late), ServiceOptions::default());
    let device = service.connect().unwrap().device("late").unwrap();
    let prepared: Arc<dyn PreparedModel> = device.prepare(&model(), &Default::default()).unwrap();
    for (way, execute) in WAYS.into_iter().chain([FENCED]) {
        // One that comes too late to be begun is missed, as one whose answer comes too late is.
        let mut given = Duration::from_millis(20);
        let until = Instant::now() + LONG;
        let status = loop {
            let status = execute(&prepared, &request(), by(TimePoint::after(given)));
            if status == ErrorStatus::ResourceExhaustedPersistent || Instant::now() > until {
                break status;
            }
            given *= 2;
        };
        assert_eq!(status, ErrorStatus::ResourceExhaustedPersistent, "{way}");
    }
}

/// Asserts that something ends as missed for the moment, no sooner than the client may say so by itself.
fn is_given_up(what: &str, attempt: impl FnOnce(TimePoint) -> ErrorStatus) {
    let deadline = TimePoint::after(Duration::from_millis(20));
    let status = attempt(deadline);
    let waited = TimePoint::now().since(deadline);
    assert_eq!(status, TRANSIENT, "{what}");
    assert!(waited >= ANSWER_GRACE, "{what}: given up {waited:?} after the deadline");
    // Calls that keep books are given up after half a minute whatever the deadline.
    assert!(waited < LONG / 3, "{what}: given up {waited:?} after the deadline");
}

fn execution_is_given_up(prepared: &Arc<RemotePreparedModel>, (way, execute): Way) {
    let prepared = Arc::clone(prepared) as Arc<dyn PreparedModel>;
    is_given_up(way, |deadline| execute(&prepared, &request(), by(deadline)));
}

fn preparation_is_given_up(device: &RemoteDevice) {
    let folder = tempfile::tempdir().unwrap();
    let cache = files(device, folder.path());
    is_given_up("prepare", |deadline| {
        let options = PrepareOptions { deadline: Some(deadline), ..Default::default() };
        device.prepare(&model(), &options).unwrap_err().status()
    });
    is_given_up("prepare from cache", |deadline| {
        device.prepare_from_cache(&cache, Some(deadline)).unwrap_err().status()
    });
}

#[test]
fn a_service_that_says_nothing_is_given_up_a_grace_after_the_deadline_and_may_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let service = Service::start(&path);
    let client = Client::connect(&path).unwrap();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&Default::default()).unwrap();
    let (in_burst, options) = (request(), ExecutionOptions::default());
    assert_eq!(burst.execute(&in_burst, &options, long()).unwrap().status, ErrorStatus::None);
    service.stop();
    std::thread::scope(|scope| {
        for way in [WAYS[0], WAYS[1], WAYS[2], FENCED] {
            let prepared = &prepared;
            scope.spawn(move || execution_is_given_up(prepared, way));
        }
        scope.spawn(|| preparation_is_given_up(&device));
        is_given_up("burst", |deadline| {
            let mut result = ExecutionResult::of(ErrorStatus::None);
            burst_hal::Burst::execute(&mut burst, &in_burst, &by(deadline), &mut result);
            result.status
        });
    });
    assert!(client.is_alive(), "silent is not dead");
    service.signal(rustix::process::Signal::CONT);
    assert_eq!(burst.execute(&in_burst, &options, long()).unwrap().status, ErrorStatus::None);
    let done = prepared.execute(&request(), &options, long()).unwrap();
    assert_eq!(done.result.status, ErrorStatus::None);
}
