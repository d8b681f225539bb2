//! A service that is short of something: what a stream with a policy does about it.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_client::{Backoff, Client, ClientError, RetryPolicy, StreamOptions};
use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model, PrepareOptions,
    PrepareResult, PreparedModel, Request,
};
use burst_server::{Service, ServiceOptions};

use crate::burst_support::{LONG, long, model};

/// Fails so many executions with a status, then works.
#[derive(Clone)]
struct Short {
    status: ErrorStatus,
    left: Arc<AtomicU64>,
    begun: Arc<AtomicU64>,
}

impl Device for Short {
    fn name(&self) -> &str {
        "short"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(self.clone()))
    }
}

impl PreparedModel for Short {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        ExecutionResult::of(if left.is_ok() { self.status } else { ErrorStatus::None })
    }
}

fn serve(device: Short, options: ServiceOptions) -> Client {
    let (ours, theirs) = burst_wire::socket::pair().unwrap();
    let service = Service::new(vec![Arc::new(device)], options);
    std::thread::spawn(move || service.serve_socket(theirs));
    Client::from_socket(ours).unwrap()
}

fn short(status: ErrorStatus, times: u64) -> Short {
    Short { status, left: Arc::new(AtomicU64::new(times)), begun: Arc::default() }
}

fn patient() -> StreamOptions {
    let mut options = StreamOptions::default();
    options.retry =
        RetryPolicy { transient: Some(Backoff { total: LONG, ..Backoff::BUSY }), fall_back: true };
    options
}

#[test]
fn a_transient_shortage_is_waited_out_and_a_persistent_one_is_not() {
    let device = short(ErrorStatus::ResourceExhaustedTransient, 3);
    let client = serve(device.clone(), ServiceOptions::default());
    let remote = client.device("short").unwrap();
    let mut stream = remote.stream(&model(), &patient()).unwrap();
    stream.run(long()).unwrap();
    assert_eq!((stream.retries(), device.begun.load(Ordering::SeqCst)), (3, 4));

    for status in [ErrorStatus::ResourceExhaustedPersistent, ErrorStatus::MissedDeadlineTransient] {
        let device = short(status, 1);
        let client = serve(device.clone(), ServiceOptions::default());
        let remote = client.device("short").unwrap();
        let mut stream = remote.stream(&model(), &patient()).unwrap();
        let error = stream.run(long()).unwrap_err();
        assert_eq!(error.status(), status);
        assert_eq!((stream.retries(), device.begun.load(Ordering::SeqCst)), (0, 1));
    }
}

#[test]
fn without_a_policy_every_shortage_is_the_callers() {
    let client =
        serve(short(ErrorStatus::ResourceExhaustedTransient, 1), ServiceOptions::default());
    let remote = client.device("short").unwrap();
    let mut stream = remote.stream(&model(), &StreamOptions::default()).unwrap();
    let error = stream.run(long()).unwrap_err();
    assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient);
    stream.run(long()).unwrap();
}

#[test]
fn requests_go_over_the_socket_where_no_burst_can_be_had() {
    let mut options = ServiceOptions::default();
    options.limits.bursts = 0;
    let client = serve(short(ErrorStatus::None, 0), options);
    let remote = client.device("short").unwrap();
    let mut stream = remote.stream(&model(), &patient()).unwrap();
    assert!(stream.burst().is_none());
    stream.run(long()).unwrap();
    match remote.stream(&model(), &StreamOptions::default()) {
        Err(ClientError::Refused { status, .. }) => {
            assert_eq!(status, ErrorStatus::ResourceExhaustedPersistent);
        }
        other => panic!("{other:?}"),
    }
}
