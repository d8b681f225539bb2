//! Either end killed between two steps of a request's way through the queues, which no message on
//! the socket shows: published but nobody woken, answered but not read. The other end sleeps at its
//! queue meanwhile; it learns of the death from the socket and keeps nothing.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use burst_client::{Client, ClientError, StreamOptions, Wait};
use burst_server::ServiceOptions;

use super::kill_matrix::{Held, Victim, back_at, held};
use crate::burst_support::{Private, long, model, wait_until};

burst_testing::tests![
    a_client_killed_when_its_request_is_published_and_the_service_not_woken(),
    a_client_killed_when_its_answer_is_published_and_not_read(),
    a_service_killed_when_its_answer_is_published_and_the_client_not_woken(),
];

/// Sooner than anybody would notice by a deadline, later than any scheduler needs.
const AT_ONCE: std::time::Duration = std::time::Duration::from_secs(5);

fn a_client_killed_when_its_request_is_published_and_the_service_not_woken() {
    killed_client("publish-unwoken", "published", 0);
}

fn a_client_killed_when_its_answer_is_published_and_not_read() {
    killed_client("leave-unread", "answered", 1);
}

/// A service in this process whose client is killed once it says this word; by then the driver has
/// begun so many executions.
fn killed_client(role: &str, word: &str, begun: u64) {
    let level: Held = held();
    let (service, to_service) = Private::start(ServiceOptions::default());
    let (mut victim, to_client) = Victim::start(role, None);
    let relay = crate::burst_support::tour::Relay::start_into(
        std::sync::Arc::default(),
        to_client,
        to_service,
        None,
    );
    victim.expect(word);
    let executions = || service.controls.begun.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(executions(), begun, "{role}");
    victim.kill();
    drop(relay.join());
    let controls = std::sync::Arc::clone(&service.controls);
    service.join();
    // A request without a client is not worth an execution; one that began before is none either.
    let after = controls.begun.load(std::sync::atomic::Ordering::SeqCst);
    println!("{role}: {after} executions in all");
    assert!(after <= 1, "{after} executions of one request");
    drop(controls);
    back_at(level, &role);
}

fn a_service_killed_when_its_answer_is_published_and_the_client_not_woken() {
    let level = held();
    let (mut victim, socket) = Victim::start("answer-unwoken", Some("ready"));
    let client = Client::from_socket(socket).unwrap();
    let device = client.device("fake").unwrap();
    let mut options = StreamOptions::default();
    options.wait = Wait::Sleep;
    let mut stream = device.stream(&model(), &options).unwrap();
    let waiting = std::thread::Builder::new().name("sleeping-client".into());
    let waiting = waiting
        .spawn(move || {
            stream.input(0).fill(7);
            let answer = stream.run(long()).map(drop);
            (answer, std::time::Instant::now())
        })
        .unwrap();
    victim.expect("answered");
    let killed = std::time::Instant::now();
    victim.kill();
    let (answer, at) = waiting.join().unwrap();
    println!("told after {:?}: {answer:?}", at.saturating_duration_since(killed));
    assert!(at.saturating_duration_since(killed) < AT_ONCE, "not at its deadline");
    match answer {
        // The answer, a failure, was there: to read it is as right as to say that its sender died.
        Err(ClientError::Execution { .. } | ClientError::PeerDied { .. }) => {}
        other => panic!("{other:?}"),
    }
    wait_until("the death", || !client.is_alive());
    drop((device, client));
    back_at(level, &"a service killed before it woke its client");
}
