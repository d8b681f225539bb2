//! Every third-party peer does the same work as ours: two real processes, each answer checked.

use benches::{THIRD_PARTIES, all_peers, left_out, left_out_notice};
use burst_harness::engine::Length;
use burst_harness::transport::process::Runner;
use burst_harness::{Case, Placement, WaitKind, own_peers};

const PROGRAM: &str = env!("CARGO_BIN_EXE_benches");
const SHORT: Length = Length { warm_up: 3, counted: 40 };

#[test]
fn every_third_party_answers_every_request_in_every_case_it_supports() {
    let runner = Runner::new(PROGRAM).expect("the CPUs of this process");
    let ours: Vec<&str> = own_peers().iter().map(|peer| peer.name()).collect();
    for peer in all_peers() {
        if ours.contains(&peer.name()) {
            continue;
        }
        let mut cases = 0;
        for wait in WaitKind::ALL {
            for bytes in [64, 256, 1024, 150_528, 602_112] {
                let small = bytes <= 1024;
                let placement = if small { Placement::Unpinned } else { Placement::PinnedApart };
                let case = Case::ping_pong(wait, placement, bytes);
                if !peer.supports(&case) || !runner.can(placement) {
                    continue;
                }
                let (measured, _) = runner
                    .measure(peer.name(), &case, SHORT)
                    .unwrap_or_else(|error| panic!("{}, {case:?}: {error}", peer.name()));
                assert_eq!(measured.sample.trips, 40, "{}, {case:?}", peer.name());
                cases += 1;
            }
        }
        // Frames are measured between two CPUs alone.
        let has_cpus = runner.can(Placement::PinnedApart);
        assert!(cases > 0 || !has_cpus, "{} supports nothing", peer.name());
    }
}

#[test]
fn with_the_feature_no_third_party_is_left_out() {
    let ours: Vec<&str> = own_peers().iter().map(|peer| peer.name()).collect();
    let built = all_peers().into_iter().map(|peer| peer.name());
    let third: Vec<&str> = built.filter(|name| !ours.contains(name)).collect();
    assert_eq!(third, THIRD_PARTIES);
    assert_eq!((left_out(), left_out_notice()), (Vec::new(), None));
}
