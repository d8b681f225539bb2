//! What is executed for a client that is gone is given up; what is executed when the service is told
//! to stop is not.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use burst_client::{Client, ClientError, Route, Stream, StreamOptions};
use burst_hal::{
    Caller, Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model, PrepareOptions,
    PrepareResult, PreparedModel, Request,
};
use burst_server::{Service, ServiceOptions};

use crate::burst_support::{LONG, long, model, wait_until};
use crate::service_support::Shared;

/// What becomes of an execution.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Begun,
    Cancelled,
    Ended,
}

/// A device that computes until the execution is cancelled or the test ends it.
struct Endless {
    news: Sender<News>,
    /// Lets an execution end.
    end: Arc<Mutex<Receiver<()>>>,
}

/// The test's side of it.
struct Watch {
    news: Receiver<News>,
    end: Sender<()>,
}

impl Watch {
    #[track_caller]
    fn expect(&self, news: News) {
        assert_eq!(self.news.recv_timeout(LONG), Ok(news));
    }
}

fn endless() -> (Endless, Watch) {
    let ((news, heard), (end, ends)) = (channel(), channel());
    let device = Endless { news, end: Arc::new(Mutex::new(ends)) };
    (device, Watch { news: heard, end })
}

impl Device for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn version_string(&self) -> &str {
        "endless-1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(Endless { news: self.news.clone(), end: Arc::clone(&self.end) }))
    }
}

impl PreparedModel for Endless {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        panic!("a service that cannot cancel");
    }

    fn execute_for(&self, _: &Request, _: &ExecutionOptions, caller: &Caller) -> ExecutionResult {
        self.news.send(News::Begun).unwrap();
        let until = Instant::now() + LONG;
        while !caller.is_cancelled() {
            if self.end.lock().unwrap().try_recv().is_ok() {
                self.news.send(News::Ended).unwrap();
                return ExecutionResult::of(ErrorStatus::None);
            }
            assert!(Instant::now() < until, "neither cancelled nor ended");
            std::thread::yield_now();
        }
        self.news.send(News::Cancelled).unwrap();
        ExecutionResult::of(ErrorStatus::GeneralFailure)
    }
}

fn stream(client: &Client, route: Route) -> Stream {
    let mut options = StreamOptions::default();
    options.route = route;
    client.device("endless").unwrap().stream(&model(), &options).unwrap()
}

/// A request under way in a thread of its own. It ends before its time: with an answer that came just
/// before the end of the connection, or with the news of that.
fn request(mut stream: Stream) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let ended = stream.run(long());
        assert!(!matches!(ended, Err(ClientError::Timeout)), "{ended:?}");
    })
}

fn hang_up(socket: &OwnedFd) {
    rustix::net::shutdown(socket, rustix::net::Shutdown::Both).unwrap();
}

#[test]
fn what_runs_for_a_client_that_is_gone_is_given_up() {
    for route in [Route::Burst, Route::Synchronous] {
        let (device, watch) = endless();
        let (ours, theirs) = burst_wire::socket::pair().unwrap();
        let service = Service::new(vec![Arc::new(device)], ServiceOptions::default());
        let service = std::thread::spawn(move || service.serve_socket(theirs));
        let socket = ours.try_clone().unwrap();
        let client = Client::from_socket(ours).unwrap();
        let asking = request(stream(&client, route));
        watch.expect(News::Begun);
        hang_up(&socket);
        // Ends with the session, and that with the last execution.
        service.join().unwrap().unwrap();
        watch.expect(News::Cancelled);
        asking.join().unwrap();
    }
}

#[test]
fn what_runs_for_one_client_goes_on_when_another_one_is_gone() {
    let (device, watch) = endless();
    let service = Shared::start(Arc::new(device), ServiceOptions::default());
    let [staying, leaving] = [(); 2].map(|()| service.connect().unwrap());
    let mut stays = stream(&staying, Route::Burst);
    let leaves = stream(&leaving, Route::Burst);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| stays.run(long()).map(drop));
        watch.expect(News::Begun);
        drop((leaves, leaving));
        wait_until("one client", || service.metric("burst_in_use{limit=\"clients\"}") == 1);
        watch.end.send(()).unwrap();
        asking.join().unwrap().expect("an answer");
        watch.expect(News::Ended);
    });
}

#[test]
fn a_service_that_is_told_to_stop_ends_what_it_executes() {
    let (device, watch) = endless();
    let service = Shared::start(Arc::new(device), ServiceOptions::default());
    let client = service.connect().unwrap();
    let asking = request(stream(&client, Route::Burst));
    watch.expect(News::Begun);
    let stopping = std::thread::spawn(move || drop(service));
    wait_until("the connection's end", || !client.is_alive());
    watch.end.send(()).unwrap();
    watch.expect(News::Ended);
    stopping.join().unwrap();
    asking.join().unwrap();
}
