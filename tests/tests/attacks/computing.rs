//! Processors are the operator's: idle bursts use none, whatever their clients asked for, and busy ones
//! share them by user.

use std::time::{Duration, Instant};

use burst_testing::{Root, root};
use burst_tests::attacks::{
    BUSY_BURSTS, Child, Confinement, Honest, ONE_BUSY_BURST, SPINNING, Service, User,
};

use crate::beside::{LONGEST, Scene};

burst_testing::tests![
    idle_bursts_that_asked_to_spin_sleep(),
    many_busy_bursts_leave_another_user_its_share(root()?),
    many_busy_bursts_leave_a_camera_its_frames(root()?),
];

/// Idle bursts of the attack.
const IDLE_BURSTS: u64 = 500;
/// How long they are watched.
const WATCH: Duration = Duration::from_secs(10);
/// The share of one CPU that they may use together; what they do use is printed.
const IDLE_SHARE_MAX: f64 = 0.10;
/// The least share of the executions that one burst of one user gets beside 64 of another; what it does
/// get is printed.
const FAIR_SHARE_MIN: f64 = 0.25;

fn idle_bursts_that_asked_to_spin_sleep() {
    let service = SPINNING.start_service().expect("a service");
    let _attacker = SPINNING.begin(&service).expect("idle bursts");
    let is_idle = |now: &burst_tests::attacks::Metrics| {
        now.in_use("bursts") == IDLE_BURSTS
            && now.value("burst_resources_released_total") >= IDLE_BURSTS
    };
    let released = service.wait_until("the release", Duration::from_secs(30), is_idle);
    println!("{}: released: {released:?}", SPINNING.name);
    let before = service.cpu_time().expect("the service lives");
    let start = Instant::now();
    // Not a handshake: idleness can only be watched for a while.
    std::thread::sleep(WATCH);
    let used = service.cpu_time().expect("the service lives") - before;
    let share = used.as_secs_f64() / start.elapsed().as_secs_f64();
    println!("{IDLE_BURSTS} idle bursts that asked to spin: {:.2} % of a CPU", share * 100.0);
    assert!(released.is_ok() && share <= IDLE_SHARE_MAX, "{share}, {released:?}");
}

/// How many executions a process with busy bursts has had answered.
fn answered(busy: &mut Child) -> u64 {
    busy.say("");
    let line = busy.hear("answered", Duration::from_secs(20)).expect("a count");
    line.parse().expect("a number")
}

fn many_busy_bursts_leave_another_user_its_share(_: Root) {
    // One CPU for all executions: with as many as there are busy bursts nobody would have to share.
    let confinement = Confinement { address_space: None, one_cpu: true };
    let service = Service::start(confinement, &[]).expect("a service");
    let mut many = BUSY_BURSTS.begin(&service).expect("64 busy bursts");
    let mut one = ONE_BUSY_BURST.begin_as(User::Same, &service).expect("one busy burst");
    // Both are under way before they are counted.
    let (first_of_many, first_of_one) = (answered(&mut many), answered(&mut one));
    let (mut of_many, mut of_one) = (0, 0);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) && (of_one < 200 || of_many < 200) {
        std::thread::sleep(Duration::from_millis(50));
        of_many = answered(&mut many) - first_of_many;
        of_one = answered(&mut one) - first_of_one;
    }
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    let share = of_one as f64 / (of_one + of_many) as f64;
    println!(
        "one busy burst beside 64 of another user: {of_one} of {} executions, {:.1} %",
        of_one + of_many,
        share * 100.0
    );
    assert!(share >= FAIR_SHARE_MIN, "{share}");
}

fn many_busy_bursts_leave_a_camera_its_frames(_: Root) {
    let mut scene = Scene::begin(&BUSY_BURSTS);
    scene.is_served();
    let newcomer = Honest::connect_again_and_again(scene.service.socket());
    let report = newcomer.and_then(|mut newcomer| newcomer.report(20, Duration::from_secs(30)));
    report.and_then(|report| report.check(20, LONGEST)).expect("another user is served");
}
