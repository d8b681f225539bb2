//! Bursts that a driver serves itself get from the service what its own have: a reason that their client
//! is told, an idle time, an end before the next request, and a context per device.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use burst_client::BurstOptions;
use burst_hal::{
    Device, DeviceType, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model,
    PrepareOptions, PrepareResult, PreparedModel, Request,
};
use burst_launch::Launcher;
use burst_server::{BurstContext, BurstContexts, BurstSetup, GivenUp, Service, ServiceOptions};
use burst_wire::control::{Answer, Call, ServerMessage};
use burst_wire::{DATUM_BYTES, Features};
use fmq::QueueError;

use crate::burst_support::raw::{RawBurst, RawClient, connect, request};
use crate::burst_support::{Controls, FakeDevice, LONG, model};
use crate::service_support::Shared;

/// Takes one packet after the other and answers none.
#[derive(Debug)]
struct Taciturn {
    news: Mutex<Sender<News>>,
    /// Ends the burst with a reason instead, when it has taken one.
    ends: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum News {
    Configured,
    Took,
    Released,
    Ended,
}

struct Context(Option<JoinHandle<()>>);

impl BurstContext for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        self.0.take().unwrap().join().unwrap();
    }
}

impl BurstContexts for Taciturn {
    fn configure(&self, mut setup: BurstSetup) -> Result<Box<dyn BurstContext>, Failure> {
        let news = self.news.lock().unwrap().clone();
        let ends = self.ends;
        news.send(News::Configured).unwrap();
        let serve = move || {
            let say = |what| news.send(what).unwrap();
            loop {
                let datums = match setup.next_request(|| say(News::Released)) {
                    Ok(datums) => datums,
                    Err(error) => {
                        assert_eq!(error, QueueError::PeerDied);
                        return say(News::Ended);
                    }
                };
                setup.requests.read(&mut vec![0; datums * DATUM_BYTES]).unwrap();
                say(News::Took);
                if ends {
                    setup.ender.end(GivenUp::Driver, "the cable was pulled");
                    setup.ender.end(GivenUp::Driver, "once more");
                }
            }
        };
        Ok(Box::new(Context(Some(std::thread::spawn(serve)))))
    }
}

fn taciturn(ends: bool, idle_time: Option<Duration>) -> (Shared, Receiver<News>) {
    let (say, news) = channel();
    let mut options = ServiceOptions::default();
    options.idle_time = idle_time;
    let contexts = Arc::new(Taciturn { news: Mutex::new(say), ends });
    options.contexts.insert("fake".to_owned(), contexts);
    (Shared::start(Arc::new(FakeDevice::default()), options), news)
}

#[track_caller]
fn expect(news: &Receiver<News>, what: News) {
    assert_eq!(news.recv_timeout(LONG), Ok(what));
}

#[test]
fn a_service_offers_differences_where_all_its_contexts_know_them() {
    let offered = |service: &Shared| service.connect().unwrap().service().features;
    let (service, _news) = taciturn(false, None);
    assert_eq!(offered(&service), Features::ALL.without(Features::DIFFERENCES));
    let plain = Shared::start(Arc::new(FakeDevice::default()), ServiceOptions::default());
    assert_eq!(offered(&plain), Features::ALL);
}

#[test]
fn a_client_is_told_why_a_context_ends_its_burst() {
    let (service, news) = taciturn(true, None);
    let mut burst = RawBurst::start(connect(&service.path), &model(), 1024);
    expect(&news, News::Configured);
    burst.send(&request(1, false));
    let (message, _) = burst.client.receive();
    let ServerMessage::BurstEnded { burst: number, detail } = message else {
        panic!("{message:?}");
    };
    assert_eq!((number, detail.as_str()), (burst.number, "the cable was pulled"));
    expect(&news, News::Took);
    expect(&news, News::Ended);
    assert_eq!(service.metric("burst_bursts_given_up_total{reason=\"driver\"}"), 1);
    let closed = burst.client.call(Call::CloseBurst { burst: burst.number }, &[]);
    assert_eq!(closed, Ok(Answer::Done), "no further message came before");
}

#[test]
fn a_context_lets_go_of_its_resources_once_when_it_is_idle() {
    let (service, news) = taciturn(false, Some(Duration::from_millis(5)));
    let mut burst = RawBurst::start(connect(&service.path), &model(), 1024);
    expect(&news, News::Configured);
    expect(&news, News::Released);
    burst.send(&request(1, false));
    expect(&news, News::Took);
    expect(&news, News::Released);
    assert_eq!(service.metric("burst_resources_released_total"), 2);
    drop(burst);
    expect(&news, News::Ended);
}

/// The fake device under another name.
struct Named(&'static str, FakeDevice);

impl Device for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn version_string(&self) -> &str {
        self.1.version_string()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.1.supported_operations(model)
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        self.1.prepare_model(model, options)
    }
}

#[test]
fn contexts_are_those_of_their_device() {
    let (say, news) = channel();
    let mut options = ServiceOptions::default();
    let contexts = Arc::new(Taciturn { news: Mutex::new(say), ends: false });
    options.contexts.insert("second".to_owned(), contexts);
    let device = || FakeDevice(Arc::new(Controls::default()));
    let devices: Vec<Arc<dyn Device>> =
        vec![Arc::new(Named("first", device())), Arc::new(Named("second", device()))];
    let (ours, theirs) = burst_wire::socket::pair().unwrap();
    let service = Service::new(devices, options);
    let serving = std::thread::spawn(move || service.serve_socket(theirs));
    // Raw clients prepare for the first device: the service's own thread answers.
    let mut burst = RawBurst::start(ours, &model(), 1024);
    assert_eq!(burst.run(&request(1, false), 1).status, burst_hal::ErrorStatus::None);
    assert!(news.try_recv().is_err());
    let RawBurst { client, .. } = burst;
    let RawClient { socket, .. } = client;
    rustix::net::shutdown(&socket, rustix::net::Shutdown::Both).unwrap();
    serving.join().unwrap().unwrap();

    let mut options = ServiceOptions::default();
    let (say, news) = channel();
    let contexts = Arc::new(Taciturn { news: Mutex::new(say), ends: false });
    options.contexts.insert("first".to_owned(), contexts);
    let service = Shared::start(Arc::new(Named("first", device())), options);
    let _burst = RawBurst::start(connect(&service.path), &model(), 1024);
    expect(&news, News::Configured);
}

/// A model of a type that only its driver knows.
struct OwnModel {
    secret: u32,
}

impl PreparedModel for OwnModel {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        ExecutionResult::of(ErrorStatus::GeneralFailure)
    }
}

/// A device of such models.
struct OwnDevice;

impl Device for OwnDevice {
    fn name(&self) -> &str {
        "own"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(OwnModel { secret: 4711 }))
    }
}

/// Takes over bursts on models of its own type alone, and says what it found in them.
#[derive(Debug)]
struct Typed(Mutex<Sender<u32>>);

/// Ends with the queues that nobody waits at.
struct Idle;

impl BurstContext for Idle {}

impl BurstContexts for Typed {
    fn configure(&self, setup: BurstSetup) -> Result<Box<dyn BurstContext>, Failure> {
        let model = setup.own_model::<OwnModel>()?;
        self.0.lock().unwrap().send(model.secret).unwrap();
        Ok(Box::new(Idle))
    }
}

fn configure_typed(device: Arc<dyn Device>) -> (Result<(), String>, Vec<u32>) {
    let (say, news) = channel();
    let mut options = ServiceOptions::default();
    options.contexts.insert(device.name().to_owned(), Arc::new(Typed(Mutex::new(say))));
    let service = Shared::start(device, options);
    let device = service.connect().unwrap().devices().unwrap().remove(0);
    let prepared = device.prepare(&model(), &PrepareOptions::default()).unwrap();
    let burst = prepared.configure_burst(&BurstOptions::default());
    let configured = burst.map(drop).map_err(|error| error.to_string());
    (configured, news.try_iter().collect())
}

#[test]
fn a_context_gets_its_own_type_of_model_also_behind_a_launcher_and_no_other() {
    let own = || Arc::new(OwnDevice) as Arc<dyn Device>;
    assert_eq!(configure_typed(own()), (Ok(()), vec![4711]));
    assert_eq!(configure_typed(Launcher::default().wrap(own())), (Ok(()), vec![4711]));
    let (refused, news) = configure_typed(Arc::new(FakeDevice::default()));
    let text = refused.unwrap_err();
    assert!(text.contains("the models of fake are no ") && text.contains("OwnModel"), "{text}");
    assert!(news.is_empty());
}
