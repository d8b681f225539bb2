//! What clients keep in a service is bounded together, whoever they are and however many connections
//! they have.

use std::time::Duration;

use burst_testing::{Root, root};
use burst_tests::attacks::{Attack, BURSTS, Honest, WEIGHTS};

use crate::beside::{LONGEST, Scene};

burst_testing::tests![
    bursts_with_much_working_memory_leave_the_others_what_they_have(),
    models_with_large_weights_leave_the_others_what_they_have(),
    another_user_still_comes_in_beside_such_bursts(root()?),
    another_user_still_comes_in_beside_such_models(root()?),
];

/// Several times what one user may have in such a service.
const MEMORY_MAX: u64 = 5 << 29;
/// How long it may take until what a client had is given back.
const SOON: Duration = Duration::from_secs(20);

fn bursts_with_much_working_memory_leave_the_others_what_they_have() {
    is_bounded(&BURSTS);
}

fn models_with_large_weights_leave_the_others_what_they_have() {
    is_bounded(&WEIGHTS);
}

fn is_bounded(attack: &Attack) {
    let mut scene = Scene::begin(attack);
    scene.is_served();
    let most = scene.service.size("VmHWM").expect("the service lives");
    println!("{}: at most {} MiB", attack.name, most >> 20);
    assert!(most < MEMORY_MAX, "{most} bytes of memory");
    scene.attacker.kill();
    scene.comes_to("all given back", SOON, |now| {
        now.in_use("clients") == 1 && now.in_use("bursts") == 1
    });
    scene.is_served();
}

fn another_user_still_comes_in_beside_such_bursts(_: Root) {
    leaves_room_for_another_user(&BURSTS);
}

fn another_user_still_comes_in_beside_such_models(_: Root) {
    leaves_room_for_another_user(&WEIGHTS);
}

fn leaves_room_for_another_user(attack: &Attack) {
    let mut scene = Scene::begin(attack);
    let newcomer = Honest::connect_again_and_again(scene.service.socket());
    scene.service_lives();
    let report = newcomer.and_then(|mut newcomer| newcomer.report(20, Duration::from_secs(30)));
    scene.service_lives();
    report.and_then(|report| report.check(20, LONGEST)).expect("another user is served");
    scene.is_served();
}
