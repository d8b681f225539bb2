//! Every peer does the work it says it does: two real processes, each answer checked. Nothing here
//! depends on how long anything takes.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::path::Path;

use burst_harness::engine::Length;
use burst_harness::transport::process::{Runner, has_strace};
use burst_harness::{Case, HarnessError, Placement, WaitKind, own_peers};
use burst_testing::program;

burst_testing::tests![
    every_peer_answers_every_request_in_every_case_it_supports(),
    requests_overtake_no_answer_when_several_are_in_flight(),
    service_time_is_part_of_every_round_trip(),
    requests_come_no_faster_than_their_period(),
    an_end_that_cannot_do_its_part_is_named_and_nobody_hangs(),
    a_program_that_is_no_peer_is_an_error(),
    system_calls_are_those_of_the_messages_alone(&program("strace")?),
];

const PROGRAM: &str = env!("CARGO_BIN_EXE_burst-bench-peer");
const SHORT: Length = Length { warm_up: 3, counted: 40 };

fn runner() -> Runner {
    Runner::new(PROGRAM).expect("the CPUs of this process")
}

fn every_peer_answers_every_request_in_every_case_it_supports() {
    let runner = runner();
    for peer in own_peers() {
        let mut cases = 0;
        for wait in WaitKind::ALL {
            for placement in Placement::ALL {
                for bytes in [64, 1024, 150_528, 602_112] {
                    let case = Case::ping_pong(wait, placement, bytes);
                    if !peer.supports(&case) || !runner.can(placement) {
                        continue;
                    }
                    let (measured, _) = runner
                        .measure(peer.name(), &case, SHORT)
                        .unwrap_or_else(|error| panic!("{}, {case:?}: {error}", peer.name()));
                    assert_eq!(measured.sample.trips, 40, "{}, {case:?}", peer.name());
                    assert!(measured.sample.max_ns >= measured.sample.p50_ns);
                    cases += 1;
                }
            }
        }
        // Frames are measured between two CPUs alone.
        let has_cpus = runner.can(Placement::PinnedApart);
        assert!(cases > 0 || !has_cpus, "{} supports nothing", peer.name());
    }
}

fn requests_overtake_no_answer_when_several_are_in_flight() {
    let runner = runner();
    for name in ["ours", "libfmq-algorithm", "pipe", "unix-seqpacket"] {
        let case = Case::ping_pong(WaitKind::Sleep, Placement::Unpinned, 64);
        let case = Case { in_flight: 8, ..case };
        let (measured, _) = runner.measure(name, &case, SHORT).expect(name);
        assert_eq!(measured.sample.trips, 40, "{name}");
    }
}

fn service_time_is_part_of_every_round_trip() {
    let case = Case::ping_pong(WaitKind::Adaptive, Placement::Unpinned, 64);
    let case = Case { service_ns: 300_000, ..case };
    let (measured, _) = runner().measure("ours", &case, SHORT).unwrap();
    let fastest = measured.sample.curve[0].1;
    assert!(fastest >= 300_000.0, "{fastest}");
}

fn requests_come_no_faster_than_their_period() {
    let case = Case::ping_pong(WaitKind::Adaptive, Placement::Unpinned, 64);
    let case = Case { period_ns: 500_000, ..case };
    let (measured, _) = runner().measure("ours", &case, SHORT).unwrap();
    assert!(measured.sample.elapsed_ns >= 40 * 500_000, "{}", measured.sample.elapsed_ns);
}

fn an_end_that_cannot_do_its_part_is_named_and_nobody_hangs() {
    let case = Case::ping_pong(WaitKind::Spin, Placement::Unpinned, 64);
    let error = runner().measure("nobody", &case, SHORT).unwrap_err();
    assert!(
        matches!(&error, HarnessError::EndFailed { message, .. } if message.contains("nobody")),
        "{error}"
    );
    // Larger than the ring: the client fails in the middle of the work.
    let case = Case::ping_pong(WaitKind::Sleep, Placement::Unpinned, 1 << 20);
    let error = runner().measure("ours", &case, SHORT).unwrap_err();
    assert!(matches!(error, HarnessError::EndFailed { .. }), "{error}");
}

fn a_program_that_is_no_peer_is_an_error() {
    let runner = Runner::new("/bin/true").unwrap();
    let case = Case::ping_pong(WaitKind::Sleep, Placement::Unpinned, 64);
    assert!(runner.measure("ours", &case, SHORT).is_err());
}

fn system_calls_are_those_of_the_messages_alone(_strace: &Path) {
    assert!(has_strace(), "the command finds it too");
    // A pipe costs each end one read and one write per round trip: two calls per message.
    let case = Case::ping_pong(WaitKind::Sleep, Placement::Unpinned, 64);
    let calls = runner().calls_per_message("pipe", &case, [10, 510]).unwrap();
    assert!((calls - 2.0).abs() < 0.1, "{calls}");
}
