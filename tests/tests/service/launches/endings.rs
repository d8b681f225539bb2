//! What becomes of executions when their client goes, or the service stops.

use std::io::BufRead;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Duration;

use burst_hal::ErrorStatus;
use burst_launch::FenceState;

use super::client::{
    Launching, in_use, memory, output, pipe, service, used, wait_for, wait_for_nothing,
};
use super::device::Gated;
use crate::burst_support::{LONG, wait_until};

#[test]
fn a_client_that_hangs_up_ends_what_waits_and_what_runs() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let (_never, read) = pipe();
    let waiting = client.fenced(&memory(1), &[read.as_fd()]).unwrap();
    let running = client.fenced(&memory(2), &[]).unwrap();
    device.wait_begun(2);
    drop(client);
    device.wait_cancelled(2);
    wait_for(&running.fence, FenceState::Failed);
    wait_for(&waiting.fence, FenceState::Failed);
    wait_for_nothing(&service);
    assert_eq!(device.begun(), [2]);
}

#[test]
fn a_service_that_stops_lets_what_runs_end_and_begins_nothing() {
    let (service, device) = service(Gated::default(), |options| options.grace = LONG);
    let mut client = Launching::connect(&service);
    let (_never, read) = pipe();
    let waiting = client.fenced(&memory(1), &[read.as_fd()]).unwrap();
    let memory = memory(2);
    let running = client.fenced(&memory, &[]).unwrap();
    device.wait_begun(2);
    let stopping = std::thread::spawn(move || drop(service));
    wait_for(&waiting.fence, FenceState::Failed);
    assert!(client.raw.is_hung_up());
    device.release_all();
    wait_for(&running.fence, FenceState::Done);
    assert_eq!(output(&memory), 3);
    stopping.join().unwrap();
    assert_eq!(device.begun(), [2]);
}

#[test]
fn after_the_grace_what_runs_is_cancelled() {
    let (service, device) = service(Gated::default(), |options| {
        options.grace = Duration::from_millis(20);
    });
    let mut client = Launching::connect(&service);
    let running = client.fenced(&memory(2), &[]).unwrap();
    client.launch(1, &memory(3)).unwrap();
    device.wait_begun(2);
    device.wait_begun(3);
    drop(service); // it returns, and in order
    device.wait_cancelled(2);
    device.wait_cancelled(3);
    wait_for(&running.fence, FenceState::Failed);
}

#[test]
fn the_threads_of_a_client_end_with_it() {
    let (service, _device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    for number in 0..10 {
        client.launch(number, &memory(super::device::QUICK)).unwrap();
    }
    for number in 0..10 {
        client.executed(number);
    }
    let threads = || used(&service, "threads");
    assert!(threads() >= 2, "the reader, and one that executes");
    drop(client);
    wait_until("the end of its threads", || threads() == 0);
}

#[test]
fn a_client_that_is_killed_leaves_nothing() {
    let (service, _device) = service(Gated::default(), |_| ());
    let arguments = ["launch", service.path.to_str().unwrap()];
    let (mut client, mut said) = crate::peer::spawn(&arguments, Stdio::null());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "launched\n");
    assert_eq!(in_use(&service, "pending_executions"), 20);
    client.kill().unwrap();
    client.wait().unwrap();
    wait_for_nothing(&service);
}

#[test]
fn a_service_that_is_killed_fails_its_fences_and_the_chain_behind_them_in_another_one() {
    let (killed, socket) = crate::peer::Service::private("serve-stuck");
    let mut client = Launching::over(socket);
    let (_never, read) = pipe();
    let waiting = client.fenced(&memory(1), &[read.as_fd()]).unwrap();
    let running = client.fenced(&memory(1), &[]).unwrap();
    let (service, device) = service(Gated::default(), |_| ());
    let mut other = Launching::connect(&service);
    let chained = other.fenced(&memory(2), &[running.fence.as_fd()]).unwrap();
    killed.kill();
    wait_for(&waiting.fence, FenceState::Failed);
    wait_for(&running.fence, FenceState::Failed);
    wait_for(&chained.fence, FenceState::Failed);
    assert_eq!(other.info(chained.number).unwrap().status, ErrorStatus::GeneralFailure);
    assert!(device.begun().is_empty());
}
