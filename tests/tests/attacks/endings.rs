//! A client's death and the service's end come soon, however much there is to do.

use std::time::{Duration, Instant};

use burst_tests::attacks::{Attack, DEEP_QUEUES, FULL_QUEUE, LONG_EXECUTIONS};
use rustix::process::Signal;

use crate::beside::Scene;

burst_testing::tests![
    a_full_queue_of_a_dead_client_is_not_worked_off(),
    a_deep_queue_of_a_dead_client_is_not_worked_off(),
    a_service_under_full_load_ends_within_its_grace(),
    a_second_signal_ends_a_service_at_once(),
];

/// How long what a dead client had may stay.
const SOON: Duration = Duration::from_secs(40);
/// How long a service may take to end: several times the grace that it gives executions by default.
const GRACE: Duration = Duration::from_secs(40);
/// Executions that may have been begun when their client died.
const BEGUN: u64 = 64;

fn a_full_queue_of_a_dead_client_is_not_worked_off() {
    nothing_is_done_for_the_dead(&FULL_QUEUE);
}

fn a_deep_queue_of_a_dead_client_is_not_worked_off() {
    nothing_is_done_for_the_dead(&DEEP_QUEUES);
}

fn nothing_is_done_for_the_dead(attack: &Attack) {
    let mut scene = Scene::begin(attack);
    scene.honest.report(0, Duration::ZERO).expect("a report");
    let before = scene.service.metrics().expect("metrics").executions();
    scene.attacker.kill();
    scene.comes_to("the end of its bursts", SOON, |now| {
        now.in_use("bursts") == 1 && now.in_use("clients") == 1
    });
    let after = scene.service.metrics().expect("metrics").executions();
    let report = scene.honest.report(0, Duration::ZERO).expect("a report");
    println!(
        "{}: {} executions, {} of the honest client",
        attack.name,
        after - before,
        report.frames
    );
    assert!(after - before <= report.frames + BEGUN, "{} executions", after - before);
    scene.is_served();
    scene.service.signal(Signal::TERM);
    let status = scene.service.ended_within(SOON);
    assert!(status.is_some_and(|status| status.success()), "SIGTERM: {status:?}");
}

/// A service whose bursts all execute for a minute, with nobody else.
fn fully_loaded() -> Scene {
    let mut scene = Scene::begin(&LONG_EXECUTIONS);
    for _ in 0..16 {
        scene.attacker_says("executing", SOON);
    }
    scene.comes_to("16 executions", SOON, |now| now.in_use("bursts") == 17);
    scene.is_served();
    scene
}

fn a_service_under_full_load_ends_within_its_grace() {
    let mut scene = fully_loaded();
    let told = Instant::now();
    scene.service.signal(Signal::TERM);
    let status = scene.service.ended_within(GRACE);
    println!("SIGTERM under full load: {status:?} after {:?}", told.elapsed());
    let status = status.unwrap_or_else(|| panic!("it lives: {}", scene.service.standing()));
    // Where the machine gives cancelled executions no time to notice it, the service says so and ends.
    let said = scene.service.log();
    assert!(status.success() || said.contains("still running"), "{status:?}: {said}");
}

fn a_second_signal_ends_a_service_at_once() {
    let mut scene = fully_loaded();
    scene.service.signal(Signal::TERM);
    // The first one has been heard: the service says so in its log.
    let told = Instant::now();
    while !scene.service.log().contains("stopping") {
        assert!(told.elapsed() < SOON, "{}", scene.service.log());
        std::thread::yield_now();
    }
    let told = Instant::now();
    scene.service.signal(Signal::TERM);
    let status = scene.service.ended_within(SOON);
    println!("the second SIGTERM: {status:?} after {:?}", told.elapsed());
    // 128 and the signal's number: it ended because it was told again, not when its grace was over.
    assert_eq!(status.and_then(|status| status.code()), Some(143), "after {:?}", told.elapsed());
}
