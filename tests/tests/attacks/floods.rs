//! Cheap things that are done very often are counted, and wake nobody else.

use std::time::{Duration, Instant};

use burst_tests::attacks::{EXECUTE_FLOOD, FLIPPED_EVENTS, QUESTIONS};

use crate::beside::{LONGEST, Scene};

burst_testing::tests![
    executions_with_many_descriptors_count_as_set_up(),
    bits_that_a_client_flips_keep_nobody_else_from_its_answers(),
    a_client_is_heard_while_its_bursts_are_closed_and_started(),
];

/// Answers among which a refusal must be.
const ANSWERS: u32 = 20_000;

fn executions_with_many_descriptors_count_as_set_up() {
    // 100 set-up calls at once; each execution of the flood hands over 128 memories.
    let attack = EXECUTE_FLOOD.with_flags(&["--setup-rate", "50", "--setup-burst", "100"]);
    let mut scene = Scene::begin(&attack);
    let start = Instant::now();
    let refusal = (0..ANSWERS).find_map(|_| {
        assert!(start.elapsed() < Duration::from_secs(30), "neither answers nor a refusal");
        let line = scene.attacker.line(Duration::from_secs(30)).expect("an answer");
        line.contains("per second").then_some(line)
    });
    println!("{}: {refusal:?} after {:?}", attack.name, start.elapsed());
    assert!(refusal.is_some(), "{ANSWERS} executions with 128 descriptors each, none refused");
    scene.is_served();
}

fn bits_that_a_client_flips_keep_nobody_else_from_its_answers() {
    let mut scene = Scene::begin(&FLIPPED_EVENTS);
    scene.is_served();
    scene.attacker.kill();
    scene.comes_to("the end of its bursts", Duration::from_secs(40), |now| {
        now.in_use("bursts") == 1
    });
}

fn a_client_is_heard_while_its_bursts_are_closed_and_started() {
    let mut scene = Scene::begin(&QUESTIONS);
    for round in 0..3 {
        let line = scene.attacker.line(Duration::from_secs(40)).unwrap_or_else(|| {
            panic!("no answer in round {round}; the log: {}", scene.service.log())
        });
        println!("{}: {line}", QUESTIONS.name);
        let millis = line.strip_prefix("answered ").and_then(|millis| millis.parse().ok());
        assert!(millis.is_some_and(|millis| Duration::from_millis(millis) < LONGEST), "{line}");
    }
    scene.is_served();
}
