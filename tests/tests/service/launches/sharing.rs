//! Executions that nobody waits for beside those of others: run tokens and threads.

use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::time::Duration;

use burst_hal::ErrorStatus;
use burst_server::ServiceOptions;

use super::client::{Launching, OWN, in_use, memory, pipe, service};
use super::device::{Gated, QUICK};
use crate::burst_support::raw::{RawBurst, RawClient, connect, request};
use crate::burst_support::{model, threads_named, wait_until};

/// Of the client whose threads are looked for.
const NUMBER: usize = 61;

/// Whoever waits for it waits as long as that takes.
fn one_token(options: &mut ServiceOptions) {
    options.run_tokens = Some(NonZeroUsize::MIN);
    options.turn_patience = None;
}

fn on_cores() -> Gated {
    Gated { on_cores: true, ..Gated::default() }
}

#[test]
fn a_flood_of_launches_keeps_no_burst_of_others_waiting() {
    let (service, device) = service(on_cores(), one_token);
    let mut floods = Launching::connect(&service);
    let memories = memory(1);
    for number in 0..200 {
        floods.launch(number, &memories).unwrap();
    }
    device.wait_begun(1);
    // The inputs of the burst are zeros: its requests are quick, and each has its turn.
    let mut burst = RawBurst::start(connect(&service.path), &model(), 1024);
    for _ in 0..20 {
        let result = burst.run(&request(1, false), 1);
        assert_eq!(result.status, ErrorStatus::None);
    }
    assert!(in_use(&service, "pending_executions") == 200, "none of the flood has ended");
    device.release_all();
    for number in 0..200 {
        assert_eq!(floods.executed(number), ErrorStatus::None);
    }
}

#[test]
fn what_waits_has_no_thread() {
    let (service, device) = service(Gated { is_stubborn: true, ..on_cores() }, one_token);
    // Threads are named by the number of their client: one that no other test's service gets to.
    (1..NUMBER).for_each(|_| drop(RawClient::greet(connect(&service.path))));
    let (mut waits, mut computes) = (Launching::connect(&service), Launching::connect(&service));
    let (_never, read) = pipe();
    computes.launch(1, &memory(1)).unwrap();
    device.wait_begun(1);
    for number in OWN..OWN + 40 {
        waits.launch(number, &memory(QUICK)).unwrap();
        waits.fenced(&memory(QUICK), &[read.as_fd()]).unwrap();
    }
    let own = threads_named(&format!("launch-{NUMBER}"));
    assert_eq!(own, 0, "80 executions wait, for a token and for a fence");
    device.release_all();
    for number in OWN..OWN + 40 {
        assert_eq!(waits.executed(number), ErrorStatus::None);
    }
    assert_eq!(computes.executed(1), ErrorStatus::None);
}

#[test]
fn what_is_launched_computes_beside_an_execution_that_does_not_give_way() {
    let (service, device) = service(Gated { is_stubborn: true, ..on_cores() }, |options| {
        one_token(options);
        options.turn_patience = Some(Duration::ZERO);
    });
    let (mut waits, mut computes) = (Launching::connect(&service), Launching::connect(&service));
    computes.launch(1, &memory(1)).unwrap();
    device.wait_begun(1);
    for number in 0..20 {
        waits.launch(number, &memory(QUICK)).unwrap();
    }
    for number in 0..20 {
        assert_eq!(waits.executed(number), ErrorStatus::None, "while the other one computes");
    }
    assert!(service.metric("burst_computed_beside_total") > 0);
    device.release_all();
    assert_eq!(computes.executed(1), ErrorStatus::None);
    wait_until("an end of it", || service.metric("burst_computing_beside") == 0);
}

#[test]
fn threads_are_charged_to_the_user_and_given_back() {
    let (service, device) = service(Gated::default(), |options| {
        // Two read each connection that has prepared a model. One is left to execute, and one for errands.
        options.limits.threads_per_user = 6;
    });
    let (mut one, mut other) = (Launching::connect(&service), Launching::connect(&service));
    one.launch(1, &memory(1)).unwrap();
    one.launch(2, &memory(2)).unwrap();
    // Either may be the first: another reader of the connection may start the second.
    wait_until("a beginning", || device.begun().len() == 1);
    let refused = other.launch(1, &memory(3)).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
    assert_eq!(refused.detail.as_str(), "the limit of 6 on threads for one user is reached");
    device.release_all();
    assert_eq!(one.executed(1), ErrorStatus::None);
    assert_eq!(one.executed(2), ErrorStatus::None, "one after the other, on the one thread");
    crate::service_support::passes_after_waiting(|| {
        other.launch(1, &memory(3)).map_err(|refusal| refusal.detail.as_str().to_owned())
    });
    assert_eq!(other.executed(1), ErrorStatus::None);
}
