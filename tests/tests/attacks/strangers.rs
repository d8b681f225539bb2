//! Users who may not come in cost those nothing who may.

use std::time::{Duration, Instant};

use burst_testing::{Root, root};
use burst_tests::attacks::{ADMIN_STRANGERS, Honest, SILENT_STRANGERS, Service};

use crate::beside::{LONGEST, tell};

burst_testing::tests![
    silent_strangers_keep_nobody_out(root()?),
    silent_strangers_at_the_admin_socket_keep_no_operator_waiting(root()?),
];

/// Connections that are made one after the other beside the strangers.
const CONNECTIONS: u64 = 100;
/// Times that the metrics are read.
const SCRAPES: u32 = 5;

fn silent_strangers_keep_nobody_out(_: Root) {
    let attack = SILENT_STRANGERS;
    let service = attack.start_service().expect("a service");
    let mut honest = Honest::connect_again_and_again(service.socket()).expect("a client");
    let alone = honest.report(CONNECTIONS, Duration::from_secs(20)).expect("a report");
    tell(attack.name, "alone", &alone);
    alone.check(CONNECTIONS, LONGEST).expect("served alone");
    let _strangers = attack.begin(&service).expect("strangers");
    let beside = honest.report(CONNECTIONS, Duration::from_secs(20)).expect("a report");
    tell(attack.name, "beside", &beside);
    beside.check(CONNECTIONS, LONGEST).expect("connected again and again beside strangers");
}

fn silent_strangers_at_the_admin_socket_keep_no_operator_waiting(_: Root) {
    let attack = ADMIN_STRANGERS;
    let service = attack.start_service().expect("a service");
    let _strangers = attack.begin(&service).expect("strangers");
    let longest = (0..SCRAPES).map(|_| scrape(&service)).max().expect("some");
    println!("{}: the metrics came within {longest:?}", attack.name);
    assert!(longest < LONGEST, "{longest:?}");
}

fn scrape(service: &Service) -> Duration {
    let asked = Instant::now();
    service.metrics().expect("metrics");
    asked.elapsed()
}
