//! What a run measures: which peers, in which cases, compared with which floors.

use std::time::{Duration, Instant};

use crate::engine::{Floor, Run, Track};
use crate::error::HarnessError;
use crate::machine::{KeepAwake, Machine};
use crate::transport::case::{
    Case, FRAME_BYTES, MODEL_NS, Placement, REQUEST_MAX, REQUEST_SIZES, SERVICE_NS,
};
use crate::transport::checks::checks;
use crate::transport::names;
use crate::transport::peers::Peer;
use crate::transport::process::{Runner, find, has_strace};
use crate::transport::report::{Report, RoundTripReport};
use crate::transport::row::{floor_rows, row};
use crate::transport::subject::{FloorKey, PeerInCase};
use crate::wait::WaitKind;

/// What to measure, and for how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// Rounds per row that must count; three times as many where a round is quick.
    pub rounds: u32,
    /// Sizes of requests.
    pub sizes: Vec<usize>,
    /// Ways to wait.
    pub waits: Vec<WaitKind>,
    /// Placements.
    pub placements: Vec<Placement>,
    /// Names of peers; all where it is empty. Floors always run.
    pub peers: Vec<String>,
    /// Frames too, besides the small messages.
    pub frames: bool,
    /// The sweeps over service times, rates of requests and requests under way.
    pub sweeps: bool,
    /// Count system calls where strace is installed.
    pub count_calls: bool,
    /// Short runs: to see that everything works, not to compare.
    pub quick: bool,
    /// How long the run takes at most, whatever a peer does; what was measured by then stays.
    pub limit: Duration,
}

/// How long a run takes at most, unless somebody says otherwise.
pub const LIMIT: Duration = Duration::from_secs(600);
/// The longest trial, at most a quarter of a run: a peer that hangs for longer has failed.
const TRIAL_MAX: Duration = Duration::from_secs(60);

impl Default for Options {
    fn default() -> Self {
        Options {
            rounds: 5,
            sizes: REQUEST_SIZES.to_vec(),
            waits: WaitKind::ALL.to_vec(),
            placements: Placement::ALL.to_vec(),
            peers: Vec::new(),
            frames: true,
            sweeps: false,
            count_calls: true,
            quick: false,
            limit: LIMIT,
        }
    }
}

/// Peers that run before and after others, not by themselves.
const FLOORS: [&str; 3] = [names::TWO_LINES, names::FUTEX_FLOOR, names::FRAME_FLOOR];

/// Measures everything; `watch` is told before each trial of a peer
/// in which round it is, counted from 1.
///
/// # Errors
/// A peer whose trials fail again and again: one that cannot do the work is not a slow peer. A floor
/// that is needed and not among the peers.
pub fn run(
    runner: &Runner,
    peers: &[&dyn Peer],
    options: &Options,
    watch: &mut dyn FnMut(u32, &PeerInCase<'_>),
) -> Result<Report, HarnessError> {
    match run_while(runner, peers, options, watch, &|| true)? {
        (report, None) => Ok(report),
        (_, Some(error)) => Err(error),
    }
}

/// The same for as long as `go_on` says so: the report then has what was measured by then, and beside it is what ended
/// the run before its time: a peer whose trials fail again and again. Where nothing was measured, it has no row.
///
/// # Errors
/// A floor that is needed and not among the peers.
pub fn run_while(
    runner: &Runner,
    peers: &[&dyn Peer],
    options: &Options,
    watch: &mut dyn FnMut(u32, &PeerInCase<'_>),
    go_on: &dyn Fn() -> bool,
) -> Result<(Report, Option<HarnessError>), HarnessError> {
    let machine = Machine::detect();
    let longest = TRIAL_MAX.min(options.limit / 4);
    let runner = &runner.clone().with_trials_of(longest);
    let until = Instant::now() + options.limit.saturating_sub(longest);
    let in_time = || Instant::now() < until;
    let go_on: &dyn Fn() -> bool = &|| go_on() && in_time();
    let mut run = subjects(runner, peers, options)?;
    let measured = run.measure_while(&mut |round, subject| watch(round, subject), go_on);
    let mut rows = floor_rows(&run);
    for index in 0..run.tracks().len() {
        if !go_on() || measured.is_err() {
            rows.extend(row(&run, &run.tracks()[index], None));
            continue;
        }
        let calls = count_calls(runner, &run.tracks()[index].subject, options);
        let calls = calls.unwrap_or_else(|error| {
            let what = format!("counting system calls: {error}");
            run.tracks_mut()[index].note_failure(&what);
            None
        });
        rows.extend(row(&run, &run.tracks()[index], calls));
    }
    let checks = checks(&rows);
    let failures = run.into_tracks().into_iter().flat_map(|track| track.failures).collect();
    let found = RoundTripReport { rows, checks, ended_early: !in_time(), failures };
    Ok((Report { machine, rounds: options.rounds, found }, measured.err()))
}

/// Every subject of a run, those with the same floor together.
fn subjects<'p>(
    runner: &'p Runner,
    peers: &[&'p dyn Peer],
    options: &Options,
) -> Result<Run<PeerInCase<'p>>, HarnessError> {
    let mut cases: Vec<(FloorKey, &'p dyn Peer, Case)> = Vec::new();
    for peer in peers {
        // One line stands beside two, whoever is asked for.
        let asked = options.peers.is_empty()
            || peer.name() == names::LINE_FLOOR
            || options.peers.iter().any(|p| p == peer.name());
        if !asked || FLOORS.contains(&peer.name()) {
            continue;
        }
        for case in cases_of(*peer, options) {
            if peer.supports(&case) && runner.can(case.placement) {
                cases.push((FloorKey::of(peer.name(), &case), *peer, case));
            }
        }
    }
    cases.sort_by_key(|(floor, _, case)| (*floor, *case)); // stable: peers stay in their order
    let mut keys: Vec<FloorKey> = Vec::new();
    let (mut floors, mut tracks) = (Vec::new(), Vec::new());
    for (key, peer, case) in cases {
        if keys.last() != Some(&key) {
            let floor = PeerInCase::new(runner, find(peers, key.name)?, key.case);
            floors.push(Floor::new(floor, floor.length(options.quick)));
            keys.push(key);
        }
        let subject = PeerInCase::new(runner, peer, case);
        let wanted = subject.wanted(options.rounds, options.quick);
        let length = subject.length(options.quick);
        tracks.push(Track::new(subject, length, Some(keys.len() - 1), wanted));
    }
    Ok(Run::new(floors, tracks))
}

fn cases_of(peer: &dyn Peer, options: &Options) -> Vec<Case> {
    let sizes = match peer.fixed_request_bytes() {
        Some(bytes) => vec![bytes],
        None if options.frames => options.sizes.iter().copied().chain(FRAME_BYTES).collect(),
        None => options.sizes.clone(),
    };
    let mut cases = Vec::new();
    for wait in &options.waits {
        for placement in &options.placements {
            cases.extend(sizes.iter().map(|size| Case::ping_pong(*wait, *placement, *size)));
        }
    }
    if peer.name() == names::OURS {
        cases.extend(special_cases(options));
    }
    if options.waits.contains(&WaitKind::Spin) {
        if [names::OURS, names::BURST].contains(&peer.name()) {
            let small = sizes.iter().filter(|size| **size <= REQUEST_MAX);
            cases.extend(small.map(|size| Case {
                cold: true,
                ..Case::ping_pong(WaitKind::Spin, Placement::PinnedApart, *size)
            }));
        }
        let case = Case::ping_pong(WaitKind::Spin, Placement::PinnedApart, 64);
        cases.push(Case { in_flight: IN_FLIGHT, ..case });
        if options.sweeps && peer.name() == names::OURS {
            cases.extend(DEPTHS.map(|in_flight| Case { in_flight, ..case }));
        }
    }
    cases.retain(|case| options.placements.contains(&case.placement));
    cases
}

/// Requests under way at one time where that is more than one.
const IN_FLIGHT: u32 = 8;
/// The same of the sweep; one is the plain ping-pong.
const DEPTHS: [u32; 4] = [2, 4, 16, 32];
/// Service times of the sweep.
const SERVICES_US: [u64; 7] = [5, 10, 20, 50, 100, 200, 500];
/// Requests per second of the sweep; full speed is the plain ping-pong.
const RATES: [u64; 6] = [1, 10, 100, 1_000, 10_000, 100_000];

/// Time between requests that are rare enough for both CPUs to halt in between.
const HALTING_NS: u64 = 1_000_000;

/// What shows a policy of waiting at work: servers that need a while, and requests that are rare;
/// and what it is worth there that CPUs are kept awake.
fn special_cases(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    let both = [WaitKind::Spin, WaitKind::Adaptive];
    if both.iter().all(|wait| options.waits.contains(wait)) {
        cases.extend(both.map(|wait| Case {
            service_ns: MODEL_NS,
            ..Case::ping_pong(wait, Placement::PinnedApart, 64)
        }));
    }
    for wait in options.waits.iter().filter(|wait| **wait != WaitKind::Spin) {
        let case = Case::ping_pong(*wait, Placement::PinnedApart, 64);
        if *wait == WaitKind::Sleep {
            let halting = Case { period_ns: HALTING_NS, ..case };
            cases.extend((!options.sweeps).then_some(halting)); // the sweep over rates has it
            cases.extend(KeepAwake::is_permitted().then_some(Case { kept_awake: true, ..halting }));
        }
        if *wait == WaitKind::Adaptive && !options.sweeps {
            cases.push(Case { service_ns: SERVICE_NS, ..case });
        }
        if options.sweeps {
            cases.extend(SERVICES_US.map(|us| Case { service_ns: us * 1000, ..case }));
            cases.extend(RATES.map(|rate| Case { period_ns: 1_000_000_000 / rate, ..case }));
        }
    }
    cases
}

/// System calls per message, where they are to be counted and can be.
fn count_calls(
    runner: &Runner,
    subject: &PeerInCase<'_>,
    options: &Options,
) -> Result<Option<f64>, HarnessError> {
    let Case { period_ns, service_ns, cold, .. } = subject.case;
    let special = period_ns > 0 || service_ns > 0 || cold;
    if !options.count_calls || special || !has_strace() {
        return Ok(None);
    }
    let polls = subject.case.wait == WaitKind::Spin && !subject.case.spins_in_vain();
    let lengths = if polls { [1_000, 21_000] } else { [100, 600] };
    runner.calls_per_message(subject.peer.name(), &subject.case, lengths).map(Some)
}
