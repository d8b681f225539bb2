//! A burst's life between its requests: resources that go after idle time and come back, and the
//! system's high-performance state, held for as long as a burst wants speed.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use burst_client::{Client, Stream, StreamOptions};
use burst_hal::{
    Burst, Capabilities, Device, DeviceType, ExecutionOptions, ExecutionPreference,
    ExecutionResult, Failure, Model, PrepareOptions, PreparedModel, Request,
};
use burst_server::{Performance, PerformancePaths, ServiceOptions};

use crate::burst_support::{FakeDevice, LONG, long, model, wait_until};
use crate::service_support::Shared;

/// What a burst of [`HotDevice`] says of itself.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Built,
    Released,
    Ended,
}

/// The fake device, whose bursts keep something that they build, release and build again.
struct HotDevice {
    fake: FakeDevice,
    news: Mutex<Sender<News>>,
    panics: Arc<AtomicBool>,
}

struct HotModel {
    fake: Arc<dyn PreparedModel>,
    news: Sender<News>,
    panics: Arc<AtomicBool>,
}

struct HotBurst {
    model: Arc<HotModel>,
    fake: Box<dyn Burst>,
    is_built: bool,
}

impl Device for HotDevice {
    fn name(&self) -> &str {
        "fake"
    }

    fn version_string(&self) -> &str {
        "hot-1"
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        self.fake.capabilities()
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.fake.supported_operations(model)
    }

    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let fake = self.fake.prepare_model(model, options)?;
        let news = self.news.lock().unwrap().clone();
        Ok(Arc::new(HotModel { fake, news, panics: Arc::clone(&self.panics) }))
    }
}

impl PreparedModel for HotModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.fake.execute_synchronously(request, options)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        let fake = Arc::clone(&self.fake).open_burst()?;
        self.news.send(News::Built).unwrap();
        Ok(Box::new(HotBurst { model: self, fake, is_built: true }))
    }
}

impl Burst for HotBurst {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        if !self.is_built {
            self.is_built = true;
            self.model.news.send(News::Built).unwrap();
        }
        self.fake.execute(request, options, result);
    }

    fn release_resources(&mut self) {
        assert!(self.is_built, "released twice without a request in between");
        self.is_built = false;
        self.model.news.send(News::Released).unwrap();
        assert!(!self.model.panics.load(Ordering::SeqCst), "asked to panic");
    }
}

impl Drop for HotBurst {
    fn drop(&mut self) {
        // Nobody listens at the end of a test.
        let _ = self.model.news.send(News::Ended);
    }
}

/// A service that waits so long before it releases; what its bursts say; how to make them panic.
fn service(
    idle_time: Option<Duration>,
    change: impl FnOnce(&mut ServiceOptions),
) -> (Shared, Receiver<News>, Arc<AtomicBool>) {
    let (news, heard) = channel();
    let panics = Arc::new(AtomicBool::new(false));
    let device = HotDevice {
        fake: FakeDevice::default(),
        news: Mutex::new(news),
        panics: Arc::clone(&panics),
    };
    let mut options = ServiceOptions::default();
    options.idle_time = idle_time;
    change(&mut options);
    (Shared::start(Arc::new(device), options), heard, panics)
}

fn stream(client: &Client, preference: ExecutionPreference) -> Stream {
    let mut options = StreamOptions::default();
    options.prepare.preference = preference;
    client.device("fake").unwrap().stream(&model(), &options).unwrap()
}

#[track_caller]
fn expect(heard: &Receiver<News>, want: &News) {
    assert_eq!(heard.recv_timeout(LONG).as_ref(), Ok(want));
}

/// Short enough to wait for; nothing here depends on how long it takes.
const SHORT: Option<Duration> = Some(Duration::from_millis(20));

#[test]
fn an_idle_burst_lets_go_of_its_resources_and_the_next_request_builds_them_again() {
    let (service, heard, _) = service(SHORT, |_| {});
    let client = service.connect().unwrap();
    let mut stream = stream(&client, ExecutionPreference::FastSingleAnswer);
    expect(&heard, &News::Built);
    for round in 0..3 {
        expect(&heard, &News::Released);
        // Not again: the device asserts it, and so does the next piece of news.
        stream.input(0).fill(round);
        stream.run(long()).unwrap();
        assert_eq!(stream.output(0).unwrap(), [round + 1; 16]);
        expect(&heard, &News::Built);
    }
    drop(stream);
    let last = std::iter::repeat_with(|| heard.recv_timeout(LONG).unwrap());
    assert!(last.take(2).any(|news| news == News::Ended), "with or without a last release");
    assert!(service.metric("burst_resources_released_total") >= 3);
}

#[test]
fn a_burst_is_kept_hot_where_the_service_is_told_so() {
    let (service, heard, _) = service(None, |_| {});
    let client = service.connect().unwrap();
    let mut stream = stream(&client, ExecutionPreference::FastSingleAnswer);
    for _ in 0..3 {
        stream.run(long()).unwrap();
    }
    drop(stream);
    expect(&heard, &News::Built);
    expect(&heard, &News::Ended);
}

#[test]
fn a_driver_that_panics_while_it_lets_go_ends_its_burst_alone() {
    let (service, heard, panics) = service(SHORT, |_| {});
    let client = service.connect().unwrap();
    let mut broken = stream(&client, ExecutionPreference::FastSingleAnswer);
    expect(&heard, &News::Built);
    panics.store(true, Ordering::SeqCst);
    expect(&heard, &News::Released);
    expect(&heard, &News::Ended);
    panics.store(false, Ordering::SeqCst);
    assert!(broken.run(long()).is_err());
    let mut again = stream(&client, ExecutionPreference::FastSingleAnswer);
    again.run(long()).unwrap();
    assert_eq!(service.metric("burst_bursts_given_up_total{reason=\"panicked\"}"), 1);
}

/// A file that stands for the device through which CPUs are kept from deep sleep.
fn latency_device(folder: &tempfile::TempDir) -> (PathBuf, Arc<Performance>) {
    let path = folder.path().join("cpu_dma_latency");
    std::fs::write(&path, "----").unwrap();
    let mut paths = PerformancePaths::default();
    paths.cpu_dma_latency.clone_from(&path);
    paths.own_cgroup = folder.path().join("none");
    (path, Arc::new(Performance::open(&paths)))
}

/// What was asked for last, in microseconds.
fn asked(path: &PathBuf) -> Option<i32> {
    Some(i32::from_ne_bytes(std::fs::read(path).ok()?.try_into().ok()?))
}

#[test]
fn the_system_is_asked_to_be_quick_while_a_burst_lives_and_not_while_it_idles() {
    let folder = tempfile::tempdir().unwrap();
    let (path, performance) = latency_device(&folder);
    let (service, heard, _) = service(SHORT, |options| options.performance = performance);
    let held = || service.metric("burst_performance_held{lever=\"cpu_dma_latency\"}");
    let permitted =
        |lever: &str| service.metric(&format!("burst_performance_permitted{{lever=\"{lever}\"}}"));
    assert_eq!((permitted("cpu_dma_latency"), permitted("uclamp_min")), (1, 0));
    assert_eq!(held(), 0, "nobody asked yet");
    let client = service.connect().unwrap();
    let mut stream = stream(&client, ExecutionPreference::SustainedSpeed);
    expect(&heard, &News::Built);
    // The wish goes before the resources do.
    expect(&heard, &News::Released);
    assert_ne!(asked(&path), Some(0), "given back with the idle time");
    // While a request runs it stands: the device answers only after it was looked at.
    stream.run(long()).unwrap();
    expect(&heard, &News::Built);
    drop((stream, client));
    wait_until("the wish to be taken back", || held() == 0 && asked(&path) != Some(0));
}

#[test]
fn a_burst_that_never_idles_holds_the_wish_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (path, performance) = latency_device(&folder);
    let (service, _heard, _) = service(None, |options| options.performance = performance);
    let client = service.connect().unwrap();
    let first = stream(&client, ExecutionPreference::FastSingleAnswer);
    let second = stream(&client, ExecutionPreference::SustainedSpeed);
    assert_eq!(asked(&path), Some(0));
    drop(first);
    assert_eq!(asked(&path), Some(0), "one is left");
    drop(second);
    wait_until("the wish to be taken back", || asked(&path) == Some(2_000_000_000));
}

#[test]
fn a_low_power_burst_never_asks_for_speed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, performance) = latency_device(&folder);
    let (service, heard, _) = service(None, |options| options.performance = performance);
    let client = service.connect().unwrap();
    let mut stream = stream(&client, ExecutionPreference::LowPower);
    expect(&heard, &News::Built);
    for _ in 0..3 {
        stream.run(long()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"----", "untouched");
    }
}
