//! Preparing a model, and asking about one, neither ends the service nor goes on for nobody.

use std::time::{Duration, Instant};

use burst_client::Client;
use burst_hal::{PrepareOptions, TimePoint};
use burst_tests::attacks::{
    Attack, Confinement, PREPARE_MEMORY, PREPARE_TIME, SURVEY_MEMORY, SURVEY_TIME, Service,
};

use crate::beside::Scene;

burst_testing::tests![
    models_that_become_gigabytes_do_not_end_the_service(),
    questions_about_such_models_do_not_either(),
    a_preparation_ends_soon_after_its_client(),
    a_question_about_a_model_ends_soon_after_its_client(),
    a_preparation_ends_at_its_deadline(),
];

/// How long work may go on for a client that is gone, or past its deadline.
const SOON: Duration = Duration::from_secs(10);
/// What a service with a handful of small models needs of the machine's memory, and a lot more.
const MEMORY_MAX: u64 = 5 << 29;

fn models_that_become_gigabytes_do_not_end_the_service() {
    takes_no_more_than_its_share(&PREPARE_MEMORY);
}

fn questions_about_such_models_do_not_either() {
    takes_no_more_than_its_share(&SURVEY_MEMORY);
}

fn takes_no_more_than_its_share(attack: &Attack) {
    let mut scene = Scene::begin(attack);
    // Each is answered, with a refusal or not.
    for _ in 0..4 {
        let line = scene.attacker.line(Duration::from_secs(40));
        scene.service_lives();
        println!("{}: {}", attack.name, line.expect("an answer"));
    }
    scene.is_served();
    let most = scene.service.size("VmHWM").expect("the service lives");
    println!("{}: at most {} MiB", attack.name, most >> 20);
    assert!(most < MEMORY_MAX, "{most} bytes of memory");
    let mut newcomer =
        burst_tests::attacks::Honest::connect_again_and_again(scene.service.socket())
            .expect("a second client");
    let report = newcomer.report(5, Duration::from_secs(30));
    scene.service_lives();
    report
        .and_then(|report| report.check(5, Duration::from_secs(10)))
        .expect("new clients are served");
}

fn a_preparation_ends_soon_after_its_client() {
    ends_soon_after_its_client(&PREPARE_TIME);
}

fn a_question_about_a_model_ends_soon_after_its_client() {
    ends_soon_after_its_client(&SURVEY_TIME);
}

fn ends_soon_after_its_client(attack: &Attack) {
    let mut scene = Scene::begin(attack);
    is_under_way(&mut scene);
    scene.is_served();
    scene.attacker.kill();
    scene.comes_to("its end", SOON, |now| {
        now.in_use("slow_calls") == 0 && now.in_use("clients") == 1
    });
}

/// Waits until the service works on a call, or has answered one: then they do not take long.
fn is_under_way(scene: &mut Scene) {
    let until = Instant::now() + SOON;
    while scene.attacker.line(Duration::ZERO).is_none() {
        let now = scene.service.metrics();
        scene.service_lives();
        if now.expect("metrics").in_use("slow_calls") > 0 {
            return;
        }
        assert!(Instant::now() < until, "no call came");
    }
}

fn a_preparation_ends_at_its_deadline() {
    let service = Service::start(Confinement::MEMORY, &[]).expect("a service");
    let device =
        Client::connect(service.socket()).expect("a client").device("cpu").expect("the CPU");
    let model = burst_tests::attacks::slow_constants().expect("a legal model");
    let deadline = Some(TimePoint::after(Duration::from_secs(1)));
    let options = PrepareOptions { deadline, ..PrepareOptions::default() };
    let asked = Instant::now();
    let outcome = device.prepare(&model, &options).map(drop);
    println!("asked for an end after 1 s: {outcome:?} after {:?}", asked.elapsed());
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    // Whatever the client does then, the service works on it no more.
    let idle = service.wait_until("the end of the call", SOON, |now| now.in_use("slow_calls") == 0);
    println!("the service was done with it: {idle:?} later");
    assert!(idle.is_ok(), "{idle:?}");
}
