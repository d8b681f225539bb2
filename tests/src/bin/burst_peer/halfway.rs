//! Roles that stop halfway through a request and wait to be killed.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use burst_hal::{ErrorStatus, ExecutionResult, Failure};
use burst_server::{BurstContext, BurstContexts, BurstSetup, Service, ServiceOptions};
use burst_wire::{ResultExtras, ResultPacket};

use super::burst_support::raw::{RawBurst, request};
use super::burst_support::{FakeDevice, long, model, wait_for_sleep_of};
use super::say;

/// Datums of the result queue: room for any answer to one small request.
const RESULT_DATUMS: usize = 64;

fn socket() -> OwnedFd {
    std::io::stdin().as_fd().try_clone_to_owned().expect("a socket")
}

/// Says this and does nothing any more.
fn stop_at(word: &str) -> ! {
    say(word);
    loop {
        std::thread::park();
    }
}

pub(super) fn publish_unwoken() {
    let mut burst = RawBurst::start(socket(), &model(), RESULT_DATUMS);
    // The service is the test itself, which started this process.
    let service = rustix::process::getppid().expect("a parent").as_raw_nonzero().get();
    wait_for_sleep_of(service.unsigned_abs(), "burst-");
    burst.requests.write_quiet(request(1, false).as_flattened()).expect("room");
    stop_at("published");
}

pub(super) fn leave_unread() {
    let mut burst = RawBurst::start(socket(), &model(), RESULT_DATUMS);
    burst.send(&request(1, false));
    burst.results.wait(1, long()).expect("an answer");
    stop_at("answered");
}

pub(super) fn answer_unwoken() {
    let mut options = ServiceOptions::default();
    options.contexts = Some(Arc::new(AnswerUnwoken));
    let service = Service::new(vec![Arc::new(FakeDevice::default())], options);
    say("ready");
    service.serve_socket(socket()).expect("the client speaks the protocol");
}

/// Serves a burst until it has published one answer.
#[derive(Debug)]
struct AnswerUnwoken;

impl BurstContexts for AnswerUnwoken {
    fn configure(&self, mut setup: BurstSetup) -> Result<Box<dyn BurstContext>, Failure> {
        std::thread::spawn(move || {
            setup.requests.wait(1, long()).expect("a request");
            let client = rustix::process::getppid().expect("a parent").as_raw_nonzero().get();
            wait_for_sleep_of(client.unsigned_abs(), "sleeping-client");
            let result = ExecutionResult::of(ErrorStatus::GeneralFailure);
            let answer = ResultPacket::new(&result, ResultExtras::default(), setup.features);
            let mut packet = Vec::new();
            answer.encode_into(&mut packet).expect("short");
            setup.results.write_quiet(&packet).expect("room");
            stop_at("answered");
        });
        Ok(Box::new(Served))
    }
}

struct Served;

impl BurstContext for Served {}
