use std::os::fd::AsFd;
use std::time::Duration;

use burst_hal::{ErrorStatus, TimePoint, Timing};
use burst_launch::FenceState;
use rustix::event::{EventfdFlags, eventfd};

use super::client::{
    Launching, in_use, memory, output, pipe, service, signal, state, wait_for, wait_for_nothing,
};
use super::device::{Gated, QUICK};

#[test]
fn it_begins_when_all_fences_are_done_and_tells_its_end_by_its_own() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let (write, read) = pipe();
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let memory = memory(5);
    let execution = client.fenced(&memory, &[read.as_fd(), event.as_fd()]).unwrap();
    assert_eq!(client.info(execution.number), Err(ErrorStatus::GeneralFailure), "before its end");
    signal(&write);
    rustix::io::write(&event, &1_u64.to_ne_bytes()).unwrap();
    device.wait_begun(5);
    assert_eq!(state(&execution.fence), FenceState::Pending);
    device.release(5);
    wait_for(&execution.fence, FenceState::Done);
    assert_eq!(output(&memory), 6);
    let info = client.info(execution.number).unwrap();
    assert_eq!((info.status, info.timing_launched), (ErrorStatus::None, Timing::UNAVAILABLE));
    // Nothing of its fences was consumed.
    assert_eq!(state(&read), FenceState::Done);
    assert_eq!(state(&event), FenceState::Done);
    client.release(execution.number).unwrap();
    assert_eq!(client.info(execution.number), Err(ErrorStatus::InvalidArgument));
    assert_eq!(client.release(execution.number), Err(ErrorStatus::InvalidArgument));
    drop(client);
    wait_for_nothing(&service);
}

#[test]
fn times_are_told_where_they_were_asked_for() {
    let (service, _device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let (write, read) = pipe();
    let started = client.fenced_with(&memory(QUICK), &[read.as_fd()], |fenced| {
        fenced.request.measure_timing = true;
    });
    let execution = started.unwrap();
    signal(&write);
    wait_for(&execution.fence, FenceState::Done);
    let info = client.info(execution.number).unwrap();
    assert_ne!(info.timing_fenced.time_in_driver_us, u64::MAX);
    assert!(info.timing_launched.time_in_driver_us >= info.timing_fenced.time_in_driver_us);
}

#[test]
fn a_chain_runs_in_the_service_without_its_client() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let (write, read) = pipe();
    let memories = [1, 2, 3].map(memory);
    let first = client.fenced(&memories[0], &[read.as_fd()]).unwrap();
    let second = client.fenced(&memories[1], &[first.fence.as_fd()]).unwrap();
    let third = client.fenced(&memories[2], &[second.fence.as_fd()]).unwrap();
    device.release_all();
    signal(&write);
    wait_for(&third.fence, FenceState::Done);
    assert_eq!(device.begun(), [1, 2, 3]);
    assert!(memories.iter().zip(2..).all(|(memory, byte)| output(memory) == byte));
}

#[test]
fn a_chain_whose_middle_is_cancelled_fails_from_there_on() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let first = client.fenced(&memory(1), &[]).unwrap();
    let second = client.fenced(&memory(2), &[first.fence.as_fd()]).unwrap();
    let third = client.fenced(&memory(3), &[second.fence.as_fd()]).unwrap();
    device.release(1);
    device.wait_begun(2);
    client.cancel(second.number);
    wait_for(&first.fence, FenceState::Done);
    wait_for(&second.fence, FenceState::Failed);
    wait_for(&third.fence, FenceState::Failed);
    for number in [second.number, third.number] {
        assert_eq!(client.info(number).unwrap().status, ErrorStatus::GeneralFailure);
    }
    assert_eq!(device.begun(), [1, 2]);
}

#[test]
fn deadline_and_duration_end_it_and_its_fence_fails() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let missed = ErrorStatus::MissedDeadlineTransient;
    // It passes while it waits.
    let (_never, read) = pipe();
    let at = TimePoint::after(Duration::from_millis(100)).nanos;
    let late = client
        .fenced_with(&memory(1), &[read.as_fd()], |fenced| fenced.request.deadline = Some(at))
        .unwrap();
    wait_for(&late.fence, FenceState::Failed);
    assert_eq!(client.info(late.number).unwrap().status, missed);
    // It had passed when it was launched: no refusal.
    let past =
        client.fenced_with(&memory(1), &[], |fenced| fenced.request.deadline = Some(1)).unwrap();
    wait_for(&past.fence, FenceState::Failed);
    let persistent = ErrorStatus::MissedDeadlinePersistent;
    assert_eq!(client.info(past.number).unwrap().status, persistent);
    // A duration counts from the end of the fences on.
    let (write, read) = pipe();
    let short = client
        .fenced_with(&memory(1), &[read.as_fd()], |fenced| fenced.duration = Some(0))
        .unwrap();
    assert_eq!(state(&short.fence), FenceState::Pending);
    signal(&write);
    wait_for(&short.fence, FenceState::Failed);
    assert_eq!(client.info(short.number).unwrap().status, missed);
    assert!(device.begun().is_empty());
}

#[test]
fn a_fence_that_never_signals_is_waited_for_as_long_as_the_service_says() {
    let (service, _device) = service(Gated::default(), |options| {
        options.limits.fence_wait_ms = 10;
    });
    let mut client = Launching::connect(&service);
    let (_never, read) = pipe();
    let execution = client.fenced(&memory(1), &[read.as_fd()]).unwrap();
    wait_for(&execution.fence, FenceState::Failed);
    let status = client.info(execution.number).unwrap().status;
    assert_eq!(status, ErrorStatus::MissedDeadlineTransient);
    assert_eq!(service.metric("burst_refusals_total{limit=\"fence_wait_ms\"}"), 1);
}

#[test]
fn one_that_is_released_goes_on_and_counts_until_its_end() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let memory = memory(1);
    let execution = client.fenced(&memory, &[]).unwrap();
    device.wait_begun(1);
    client.release(execution.number).unwrap();
    assert_eq!(client.info(execution.number), Err(ErrorStatus::InvalidArgument));
    assert_eq!(in_use(&service, "pending_executions"), 1);
    device.release_all();
    wait_for(&execution.fence, FenceState::Done);
    assert_eq!(output(&memory), 2);
    crate::burst_support::wait_until("its place", || in_use(&service, "pending_executions") == 0);
}

#[test]
fn one_that_has_ended_counts_until_it_is_released() {
    let (service, _device) = service(Gated::default(), |options| {
        options.limits.pending_executions = 1;
    });
    let mut client = Launching::connect(&service);
    let execution = client.fenced(&memory(QUICK), &[]).unwrap();
    wait_for(&execution.fence, FenceState::Done);
    let refused = client.fenced(&memory(QUICK), &[]).map(drop).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
    client.release(execution.number).unwrap();
    crate::burst_support::wait_until("its place", || in_use(&service, "pending_executions") == 0);
    client.fenced(&memory(QUICK), &[]).unwrap();
}
