//! A run: which peers in which cases, taking turns.

use std::time::{Duration, Instant};

use crate::error::HarnessError;
use crate::machine::{KeepAwake, Machine};
use crate::transport::case::{Case, Placement, REQUEST_SIZES, WaitKind};
use crate::transport::checks::{FRAME_BYTES, SERVICE_NS, checks, names};
use crate::transport::peers::Peer;
use crate::transport::process::{Length, Runner, has_strace};
use crate::transport::report::Report;
use crate::transport::subject::{FloorKey, Floors, Lane, Round, Run, carries_a_frame, floor_rows};

/// Once all else is measured, a run waits so long for rounds in which the cores are not shared.
const QUIET_PATIENCE: Duration = Duration::from_secs(240);

/// Runs of one row that may fail before the whole run does: a peer may get stuck once in an hour, and
/// that should not cost the rest. What failed is repeated like a round that does not count.
const FAILURES_MAX: usize = 2;

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
    /// The sweeps over service times and rates of requests.
    pub sweeps: bool,
    /// Count system calls where strace is installed.
    pub count_calls: bool,
    /// Short runs: to see that everything works, not to compare.
    pub quick: bool,
}

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
        }
    }
}

/// Told what happens, for a line of progress.
pub trait Watch {
    /// Pass `pass` is about to measure `peer`.
    fn about_to(&mut self, pass: u32, peer: &str, case: &Case);
}

impl<F: FnMut(u32, &str, &Case)> Watch for F {
    fn about_to(&mut self, pass: u32, peer: &str, case: &Case) {
        self(pass, peer, case);
    }
}

/// Peers that run before and after others, not by themselves.
const FLOORS: [&str; 3] = [names::LINE_FLOOR, names::FUTEX_FLOOR, names::FRAME_FLOOR];

/// Measures everything.
///
/// # Errors
/// A peer whose runs fail again and again: one that cannot do the work is not a slow peer.
pub fn run(
    runner: &Runner,
    peers: &[&dyn Peer],
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Report, HarnessError> {
    let machine = Machine::look();
    let mut lanes = lanes(runner, peers, options);
    let mut floors = Floors::new();
    let mut waiting_since = None;
    for pass in 0.. {
        let pending: Vec<usize> =
            (0..lanes.len()).filter(|index| lanes[*index].wants_more(options, &floors)).collect();
        if pending.is_empty() {
            break;
        }
        if pending.iter().all(|index| lanes[*index].waits_for_quiet(options))
            && waiting_since.get_or_insert_with(Instant::now).elapsed() > QUIET_PATIENCE
        {
            break;
        }
        take_turns(runner, options, &mut lanes, &mut floors, (pass, pending), watch)?;
    }
    let mut rows = floor_rows(&floors);
    for lane in &mut lanes {
        let calls = count_calls(runner, lane, options).unwrap_or_else(|error| {
            lane.failures.push(lane.case.failure(&format!("counting system calls: {error}")));
            None
        });
        rows.extend(lane.row(options, &floors, calls));
    }
    let checks = checks(&rows);
    let failures = lanes.iter().flat_map(|lane| lane.failures.clone()).collect();
    Ok(Report { rounds: options.rounds, machine, rows, checks, failures })
}

/// Every row of a run, those with the same floor together.
fn lanes<'p>(runner: &Runner, peers: &[&'p dyn Peer], options: &Options) -> Vec<Lane<'p>> {
    let mut cases: Vec<(&'p dyn Peer, Case)> = Vec::new();
    for peer in peers {
        let asked = options.peers.is_empty() || options.peers.iter().any(|p| p == peer.name());
        if !asked || FLOORS.contains(&peer.name()) {
            continue;
        }
        for case in cases_of(*peer, options) {
            if peer.supports(&case) && runner.can(case.placement) {
                cases.push((*peer, case));
            }
        }
    }
    let mut lanes: Vec<Lane<'p>> =
        cases.into_iter().map(|(peer, case)| Lane::new(peer, case)).collect();
    lanes.sort_by_key(|lane| (lane.floor, lane.case)); // stable: peers stay in their order
    lanes
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
        let case = Case::ping_pong(WaitKind::Spin, Placement::PinnedApart, 64);
        cases.push(Case { in_flight: IN_FLIGHT, ..case });
    }
    cases.retain(|case| options.placements.contains(&case.placement));
    cases
}

/// Requests under way at one time where that is more than one.
const IN_FLIGHT: u32 = 8;
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

/// One round of each lane that needs one. Between two lanes with the same floor one floor run is
/// enough: it comes after the first and before the second.
fn take_turns(
    runner: &Runner,
    options: &Options,
    lanes: &mut [Lane<'_>],
    floors: &mut Floors,
    (pass, mut pending): (u32, Vec<usize>),
    watch: &mut dyn Watch,
) -> Result<(), HarnessError> {
    if pass % 2 == 1 {
        pending.reverse(); // so that nobody always follows the same one
    }
    let mut last: Option<(FloorKey, usize)> = None;
    for index in pending {
        let lane = &mut lanes[index];
        let key = lane.floor;
        let before = match last {
            Some((measured, index)) if measured == key => index,
            _ => run_floor(runner, key, floors, options)?,
        };
        watch.about_to(pass, lane.peer.name(), &lane.case);
        let length = length(lane.peer.name(), &lane.case, options.quick);
        let awake = lane.case.kept_awake.then(KeepAwake::take).transpose()?;
        let run = runner.measure(lane.peer.name(), &lane.case, length);
        drop(awake);
        let (measured, served) = match run {
            Ok(run) => run,
            Err(error) if lane.failures.len() < FAILURES_MAX => {
                lane.failures.push(lane.case.failure(&error));
                last = None;
                continue;
            }
            Err(error) => return Err(error),
        };
        let after = run_floor(runner, key, floors, options)?;
        lane.rounds.push(Round { floors: [before, after], run: Run { measured, served } });
        last = Some((key, after));
    }
    Ok(())
}

/// Index of the new run.
fn run_floor(
    runner: &Runner,
    key: FloorKey,
    floors: &mut Floors,
    options: &Options,
) -> Result<usize, HarnessError> {
    let (measured, served) =
        runner.measure(key.name, &key.case, length(key.name, &key.case, options.quick))?;
    Ok(floors.push(key, Run { measured, served }))
}

/// How many round trips: enough for a p99.9 where they are quick, a fraction of a second where they
/// are slow. Not more: a neighbour of a core is seldom quiet for longer than some milliseconds.
fn length(peer: &str, case: &Case, quick: bool) -> Length {
    /// Longest run in which the pace is set by the case.
    const PACED_NS: u64 = 1_000_000_000;
    let usual = match case.wait {
        WaitKind::Spin if !case.spins_in_vain() => 20_000,
        WaitKind::Adaptive if case.placement == Placement::PinnedApart => 50_000,
        _ => 5_000,
    };
    // A frame of some hundred kilobytes takes as long as a hundred small messages.
    let carried = if carries_a_frame(peer, case) { case.request_bytes } else { 0 };
    let usual = usual / (1 + u32::try_from(carried / 4096).unwrap_or(u32::MAX - 1));
    let pace = case.service_ns.max(case.period_ns).max(1);
    let paced = u32::try_from(PACED_NS / pace).unwrap_or(u32::MAX).max(3);
    let trips = if quick { usual / 10 } else { usual }.min(paced);
    Length { warm_up: trips / 10 + 10, trips }
}

/// System calls per message, where they are to be counted and can be.
fn count_calls(
    runner: &Runner,
    lane: &Lane<'_>,
    options: &Options,
) -> Result<Option<f64>, HarnessError> {
    let special = lane.case.period_ns > 0 || lane.case.service_ns > 0;
    if !options.count_calls || special || !has_strace() {
        return Ok(None);
    }
    let polls = lane.case.wait == WaitKind::Spin && !lane.case.spins_in_vain();
    let lengths = if polls { [1_000, 21_000] } else { [100, 600] };
    runner.calls_per_message(lane.peer.name(), &lane.case, lengths).map(Some)
}
