//! A caller that calls remote work off: it is not kept waiting, what is made all the same is given back, and the
//! connection goes on.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use burst_client::{
    Backoff, BurstOptions, Client, ClientError, ReconnectingDevice, RemoteDevice, ShmMemory,
};
use burst_driver::CpuDevice;
use burst_hal::validate::RequestRules;
use burst_hal::{
    Burst, CACHE_TOKEN_BYTES, Caller, CancelWord, CompilationCache, Device, ErrorStatus,
    ExecutionOptions, ExecutionResult, Failure, Model, Pool, PrepareOptions, PrepareResult,
    PreparedModel, Request, TimePoint,
};
use burst_server::ServiceOptions;

use crate::burst_support::{LONG, long, model, request_in, wait_until};
use crate::service_support::Shared;

/// What a driver answers whose caller has called its work off.
const CANCELLED: ErrorStatus = ErrorStatus::GeneralFailure;

/// A device that does nothing before the test lets it, whoever calls it off.
#[derive(Clone)]
struct Stubborn {
    begun: Sender<()>,
    /// Lets one go on.
    go_on: Arc<Mutex<Receiver<()>>>,
    is_stubborn: Arc<AtomicBool>,
}

/// The test's side of it.
struct Watch {
    begun: Receiver<()>,
    go_on: Sender<()>,
    is_stubborn: Arc<AtomicBool>,
}

fn stubborn() -> (Stubborn, Watch) {
    let ((begin, begun), (go_on, may)) = (channel(), channel());
    let is_stubborn = Arc::new(AtomicBool::new(false));
    let device = Stubborn {
        begun: begin,
        go_on: Arc::new(Mutex::new(may)),
        is_stubborn: Arc::clone(&is_stubborn),
    };
    (device, Watch { begun, go_on, is_stubborn })
}

impl Stubborn {
    fn wait(&self) {
        if self.is_stubborn.load(Ordering::SeqCst) {
            self.begun.send(()).unwrap();
            self.go_on.lock().unwrap().recv_timeout(LONG).expect("the test lets it go on");
        }
    }

    fn prepared(&self, model: &Model) -> PrepareResult {
        self.wait();
        Ok(Arc::new(StubbornModel(self.clone(), RequestRules::new(model)?)))
    }
}

impl Device for Stubborn {
    fn name(&self) -> &str {
        "stubborn"
    }

    fn version_string(&self) -> &str {
        "stubborn-1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.wait();
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, model: &Model, _: &PrepareOptions) -> PrepareResult {
        self.prepared(model)
    }

    fn prepare_model_from_cache(
        &self,
        _: &CompilationCache,
        _: Option<TimePoint>,
        _: &Caller,
    ) -> PrepareResult {
        self.prepared(&model())
    }
}

struct StubbornModel(Stubborn, RequestRules);

impl PreparedModel for StubbornModel {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        self.0.wait();
        ExecutionResult::of(ErrorStatus::None)
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.1)
    }

    fn prepare_options(&self) -> Option<PrepareOptions> {
        Some(PrepareOptions::default())
    }
}

/// A service of such a device, and a client.
struct Scene {
    watch: Watch,
    service: Shared,
    client: Client,
    remote: RemoteDevice,
}

impl Scene {
    fn begin() -> Scene {
        let (device, watch) = stubborn();
        let mut options = ServiceOptions::default();
        options.limits.setup_rate = 0;
        let service = Shared::start(Arc::new(device), options);
        let client = service.connect().unwrap();
        let remote = client.device("stubborn").unwrap();
        Scene { watch, service, client, remote }
    }

    /// Calls something off that the device is in the middle of: its caller is told while the device goes on. And
    /// something that was called off before: it is not even begun.
    #[track_caller]
    fn call_off(&self, what: &str, mut attempt: impl FnMut(&Caller) -> ErrorStatus + Send) {
        let word = CancelWord::default();
        let caller = Caller::new(&word);
        self.watch.is_stubborn.store(true, Ordering::SeqCst);
        std::thread::scope(|scope| {
            let (attempt, caller) = (&mut attempt, &caller);
            let (tell, told) = channel();
            scope.spawn(move || tell.send(attempt(caller)).unwrap());
            self.watch.begun.recv_timeout(LONG).unwrap();
            word.cancel();
            // The device still waits.
            assert_eq!(told.recv_timeout(LONG / 2), Ok(CANCELLED), "{what}");
        });
        assert_eq!(attempt(&caller), CANCELLED, "{what}");
        assert!(self.watch.begun.try_recv().is_err(), "{what}: begun for nobody");
        self.watch.is_stubborn.store(false, Ordering::SeqCst);
        assert!(self.client.is_alive(), "{what}");
        self.watch.go_on.send(()).unwrap();
        wait_until("the end of the call", || self.in_use("slow_calls") == 0);
    }

    fn in_use(&self, limit: &str) -> u64 {
        self.service.metric(&format!("burst_in_use{{limit=\"{limit}\"}}"))
    }
}

fn cache() -> CompilationCache {
    CompilationCache { token: [7; CACHE_TOKEN_BYTES], model: Vec::new(), data: Vec::new() }
}

fn outcome<T>(outcome: Result<T, Failure>) -> ErrorStatus {
    outcome.map_or_else(|failure| failure.status, |_| ErrorStatus::None)
}

fn request() -> Request {
    let memory: Pool = Arc::new(ShmMemory::create(32).unwrap());
    request_in(&memory)
}

#[test]
fn questions_and_preparations_that_are_called_off_end_and_what_they_make_is_released() {
    let scene = Scene::begin();
    let reconnecting = ReconnectingDevice::connect(&scene.service.path, "stubborn").unwrap();
    let devices: [(&str, &dyn Device); 2] =
        [("device", &scene.remote), ("reconnecting device", &reconnecting)];
    let (model, options, cache) = (model(), PrepareOptions::default(), cache());
    for (name, device) in devices {
        let prepare = |caller: &Caller| outcome(device.prepare_model_for(&model, &options, caller));
        scene.call_off(&format!("{name}: survey"), |caller| {
            outcome(device.supported_operations_for(&model, caller))
        });
        scene.call_off(&format!("{name}: prepare"), prepare);
        scene.call_off(&format!("{name}: prepare caching"), |caller| {
            outcome(device.prepare_model_caching(&model, &options, &cache, caller))
        });
        scene.call_off(&format!("{name}: prepare from cache"), |caller| {
            outcome(device.prepare_model_from_cache(&cache, None, caller))
        });
        wait_until("the release of every model", || scene.in_use("models") == 0);
        assert_eq!(prepare(&Caller::default()), ErrorStatus::None, "{name}: it goes on");
    }
    assert_eq!(reconnecting.reconnects(), 0);
}

#[test]
fn executions_that_are_called_off_end_over_socket_and_burst_and_the_next_ones_are_their_own() {
    let scene = Scene::begin();
    let reconnecting = ReconnectingDevice::connect(&scene.service.path, "stubborn").unwrap();
    let (model, options) = (model(), PrepareOptions::default());
    let models: [Arc<dyn PreparedModel>; 2] = [
        scene.remote.prepare(&model, &options).unwrap(),
        reconnecting.prepare(&model, &options).unwrap(),
    ];
    let (request, options) = (request(), ExecutionOptions::default());
    for model in &models {
        let execute = |caller: &Caller| model.execute_for(&request, &options, caller).status;
        scene.call_off("execution", execute);
        assert_eq!(execute(&Caller::default()), ErrorStatus::None);
        let mut burst = Arc::clone(model).open_burst().unwrap();
        scene.call_off("burst", |caller| over_burst(&mut *burst, &request, caller));
        assert_eq!(over_burst(&mut *burst, &request, &Caller::default()), ErrorStatus::None);
    }
    assert_eq!(reconnecting.reconnects(), 0);
}

fn over_burst(burst: &mut dyn Burst, request: &Request, caller: &Caller) -> ErrorStatus {
    let mut result = ExecutionResult::of(ErrorStatus::InvalidArgument);
    burst.work_for(caller);
    burst.execute(request, &ExecutionOptions::default(), &mut result);
    result.status
}

#[test]
fn a_late_result_of_a_burst_is_waited_for_by_the_next_request_which_may_be_called_off_too() {
    let scene = Scene::begin();
    let prepared = scene.remote.prepare(&model(), &PrepareOptions::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let request = request();
    scene.watch.is_stubborn.store(true, Ordering::SeqCst);
    for round in 0..2 {
        let word = CancelWord::default();
        let caller = Caller::new(&word);
        std::thread::scope(|scope| {
            let (burst, request) = (&mut burst, &request);
            let waiting = scope.spawn(move || over_burst(burst, request, &caller));
            if round == 0 {
                scene.watch.begun.recv_timeout(LONG).unwrap();
            }
            word.cancel();
            assert_eq!(waiting.join().unwrap(), CANCELLED, "round {round}");
        });
    }
    assert!(scene.watch.begun.try_recv().is_err(), "one at a time");
    scene.watch.is_stubborn.store(false, Ordering::SeqCst);
    scene.watch.go_on.send(()).unwrap();
    burst.work_for(&Caller::default());
    let done = burst.execute(&request, &ExecutionOptions::default(), long()).unwrap();
    assert_eq!(done.status, ErrorStatus::None);
}

#[test]
fn the_status_of_work_that_is_called_off_is_that_of_a_device_in_this_process() {
    let service = Shared::start(Arc::new(CpuDevice::default()), ServiceOptions::default());
    let remote = service.connect().unwrap().device("cpu").unwrap();
    let here = CpuDevice::default();
    let word = CancelWord::default();
    word.cancel();
    let caller = Caller::new(&word);
    for device in [&here as &dyn Device, &remote] {
        let options = PrepareOptions::default();
        assert_eq!(outcome(device.prepare_model_for(&model(), &options, &caller)), CANCELLED);
        let prepared = device.prepare_model(&model(), &options).unwrap();
        let executed = prepared.execute_for(&request(), &ExecutionOptions::default(), &caller);
        assert_eq!(executed.status, CANCELLED);
        let mut burst = prepared.open_burst().unwrap();
        assert_eq!(over_burst(&mut *burst, &request(), &caller), CANCELLED);
    }
}

#[test]
fn whoever_calls_off_does_not_wait_for_a_service_to_come_back() {
    let (device, _watch) = stubborn();
    let service = Shared::start(Arc::new(device), ServiceOptions::default());
    let (path, (tell, dialed)) = (service.path.clone(), channel());
    // As good as for ever: nobody else ends it.
    let backoff = Backoff { total: LONG * 100, longest: LONG * 100, ..Backoff::RESTART };
    let device = ReconnectingDevice::with_connector("stubborn", backoff, move |_| {
        let connected = Client::connect(&path);
        tell.send(connected.is_ok()).unwrap();
        connected
    });
    let device = device.unwrap();
    assert_eq!(dialed.recv_timeout(LONG), Ok(true));
    let options = PrepareOptions::default();
    let prepared: Arc<dyn PreparedModel> = device.prepare(&model(), &options).unwrap();
    drop(service);
    wait_until("the end of the connection", || !device.current().is_alive());
    let word = CancelWord::default();
    let caller = Caller::new(&word);
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let caller = &caller;
        let executing = tell.clone();
        scope.spawn(move || {
            let options = ExecutionOptions::default();
            executing.send(prepared.execute_for(&request(), &options, caller).status).unwrap();
        });
        assert_eq!(dialed.recv_timeout(LONG), Ok(false), "it looks for a service");
        scope.spawn(|| tell.send(outcome(device.prepare_model_for(&model(), &options, caller))));
        word.cancel();
        for _ in 0..2 {
            assert_eq!(told.recv_timeout(LONG), Ok(CANCELLED));
        }
    });
    let refused = device.try_reconnect(burst_client::Deadline::after(Duration::from_secs(1)));
    assert!(matches!(refused, Err(ClientError::NobodyListens { .. })), "{refused:?}");
}
