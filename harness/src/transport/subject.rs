//! One row of a run: its rounds so far, which of them count, and what they come to.

use std::collections::BTreeMap;

use crate::engine::quiet;
use crate::engine::verdict::{Spread, Verdict, judge, median};
use crate::transport::case::{Case, Placement, WaitKind};
use crate::transport::checks::{FRAME_BYTES, names};
use crate::transport::peers::Peer;
use crate::transport::plan::Options;
use crate::transport::report::{More, Row};
use crate::transport::sample::to_f64;
use crate::transport::session::{Measured, Served};

/// Rounds of a row, those that do not count among them, as a multiple of the rounds wanted: so often
/// they are repeated before a row makes do with what it has.
const TRIES_PER_ROUND: usize = 3;
/// The same where a round is quick: those on shared cores, of which a busy host has many, come on top.
/// The whole run waits no longer for quiet than [`plan`](crate::transport::plan) says.
const TRIES_PER_QUICK_ROUND: usize = 40;

/// Where both poll, each on a CPU of its own, a round takes a thirtieth of a second, and rounds differ
/// more: a median needs more of them, and they cost little.
const QUICK_ROUNDS: u32 = 3;

/// Which floor a row is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FloorKey {
    pub(crate) name: &'static str,
    pub(crate) case: Case,
}

impl FloorKey {
    /// The floor for a case: it waits in the same way, in the same place, at the same pace. A frame
    /// takes as long as its memory; a word's trip says nothing about that, a plain copy does.
    pub(crate) fn of(peer: &str, case: &Case) -> FloorKey {
        let polls = case.wait == WaitKind::Spin && !case.spins_in_vain();
        let (name, wait, request_bytes) = match (carries_a_frame(peer, case), polls) {
            (true, _) => (names::FRAME_FLOOR, WaitKind::Spin, case.request_bytes),
            (false, true) => (names::LINE_FLOOR, WaitKind::Spin, 8),
            (false, false) => (names::FUTEX_FLOOR, WaitKind::Sleep, 4),
        };
        let case = Case { wait, in_flight: 1, request_bytes, kept_awake: false, ..*case };
        FloorKey { name, case }
    }
}

/// Whether a whole frame travels; one that lies in the pool already costs a small message.
pub(crate) fn carries_a_frame(peer: &str, case: &Case) -> bool {
    FRAME_BYTES.contains(&case.request_bytes) && peer != names::FRAME_IN_POOL
}

/// One run of one peer.
pub(crate) struct Run {
    pub(crate) measured: Measured,
    pub(crate) served: Served,
}

impl Run {
    fn p50(&self) -> f64 {
        self.measured.sample.p50_ns
    }

    /// Of both ends, the one that computed slower.
    fn compute_ns(&self) -> f64 {
        self.measured.compute_ns.max(self.served.compute_ns)
    }

    /// Of both ends, the one that computed quicker.
    fn least_compute_ns(&self) -> f64 {
        self.measured.compute_ns.min(self.served.compute_ns)
    }
}

/// One round of one row.
pub(crate) struct Round {
    /// Indices into the runs of the row's floor.
    pub(crate) floors: [usize; 2],
    pub(crate) run: Run,
}

/// One peer in one case, with its rounds so far.
pub(crate) struct Lane<'p> {
    pub(crate) peer: &'p dyn Peer,
    pub(crate) case: Case,
    pub(crate) floor: FloorKey,
    pub(crate) rounds: Vec<Round>,
    /// What went wrong so far.
    pub(crate) failures: Vec<String>,
}

/// What rounds are compared with.
pub(crate) struct Floors {
    runs: BTreeMap<FloorKey, Vec<Run>>,
    /// What computing takes here at best.
    least_compute_ns: f64,
}

impl Floors {
    pub(crate) fn new() -> Floors {
        Floors { runs: BTreeMap::new(), least_compute_ns: f64::INFINITY }
    }

    fn of(&self, key: &FloorKey) -> &[Run] {
        self.runs.get(key).map_or(&[], Vec::as_slice)
    }

    /// Index of the new run.
    pub(crate) fn push(&mut self, key: FloorKey, run: Run) -> usize {
        self.least_compute_ns = self.least_compute_ns.min(run.least_compute_ns());
        let runs = self.runs.entry(key).or_default();
        runs.push(run);
        runs.len() - 1
    }
}

impl<'p> Lane<'p> {
    pub(crate) fn new(peer: &'p dyn Peer, case: Case) -> Lane<'p> {
        let floor = FloorKey::of(peer.name(), &case);
        Lane { peer, case, floor, rounds: Vec::new(), failures: Vec::new() }
    }

    /// Both ends poll, each on a CPU of its own: a round is quick, and its time is that of a few lines
    /// and a few hundred instructions.
    fn is_quick(&self) -> bool {
        let Case { wait, placement, .. } = self.case;
        wait == WaitKind::Spin
            && placement == Placement::PinnedApart
            && !carries_a_frame(self.peer.name(), &self.case)
    }

    /// Rounds that must count.
    fn wanted(&self, options: &Options) -> usize {
        let times = if self.is_quick() && !options.quick { QUICK_ROUNDS } else { 1 };
        options.rounds.saturating_mul(times) as usize
    }

    pub(crate) fn wants_more(&self, options: &Options, floors: &Floors) -> bool {
        let wanted = self.wanted(options);
        let patient = self.is_quick() && !options.quick;
        let times = if patient { TRIES_PER_QUICK_ROUND } else { TRIES_PER_ROUND };
        self.tries() < wanted.saturating_mul(times)
            && self.with(Verdict::Keep, floors).len() < wanted
    }

    /// Whether it was tried so often that it can only be the machine that is not quiet.
    pub(crate) fn waits_for_quiet(&self, options: &Options) -> bool {
        self.tries() >= self.wanted(options).saturating_mul(TRIES_PER_ROUND)
    }

    fn tries(&self) -> usize {
        self.rounds.len() + self.failures.len()
    }

    fn verdict(&self, round: &Round, floors: &Floors) -> Verdict {
        let runs = floors.of(&self.floor);
        let usual = median(runs.iter().map(Run::p50)).unwrap_or(f64::NAN);
        let core_shared =
            self.is_quick() && quiet::was_shared(round.run.compute_ns(), floors.least_compute_ns);
        judge(self.floor_p50(round, runs), usual, core_shared)
    }

    fn floor_p50(&self, round: &Round, runs: &[Run]) -> [f64; 2] {
        round.floors.map(|index| runs.get(index).map_or(f64::NAN, Run::p50))
    }

    fn with(&self, verdict: Verdict, floors: &Floors) -> Vec<&Round> {
        self.rounds.iter().filter(|round| self.verdict(round, floors) == verdict).collect()
    }

    /// The rounds that count: those with the cores to themselves, and where these are fewer than was
    /// asked for the others too.
    fn kept(&self, options: &Options, floors: &Floors) -> Vec<&Round> {
        let mut kept = self.with(Verdict::Keep, floors);
        if kept.len() < options.rounds as usize {
            kept.extend(self.with(Verdict::CoreShared, floors));
        }
        kept
    }
}

impl Lane<'_> {
    /// `None` where no round counts.
    pub(crate) fn row(
        &self,
        options: &Options,
        floors: &Floors,
        calls: Option<f64>,
    ) -> Option<Row> {
        let runs = floors.of(&self.floor);
        let kept = self.kept(options, floors);
        let floor = |round: &Round| self.floor_p50(round, runs).iter().sum::<f64>() / 2.0;
        let ratio = |round: &Round| round.run.p50() / floor(round);
        let shared = self.with(Verdict::CoreShared, floors);
        let service = to_f64(self.case.service_ns);
        let overhead =
            kept.iter().map(|round| (round.run.p50() - service) / (floor(round) - service));
        let overhead = (self.case.service_ns > 0).then(|| median(overhead)).flatten();
        let bytes = self.peer.fixed_request_bytes().unwrap_or(self.case.request_bytes);
        let spread = Spread::of(kept.iter().map(|round| ratio(round)))?;
        let measured: Vec<&Run> = kept.iter().map(|round| &round.run).collect();
        let mut row = summary(self.peer.name(), bytes, &self.case, &measured, spread)?;
        row.syscalls_per_message = calls;
        row.ratio_on_shared_cores = Spread::of(shared.iter().map(|round| ratio(round)));
        row.more.dropped = self.rounds.len() - kept.len();
        row.more.shared = shared.len();
        row.more.is_quiet = kept.iter().all(|round| self.verdict(round, floors) == Verdict::Keep);
        row.more.overhead_ratio = overhead;
        Some(row)
    }
}

/// The floors themselves, over all their runs. Their ratio is that to their own median.
pub(crate) fn floor_rows(floors: &Floors) -> Vec<Row> {
    let rows = floors.runs.iter().filter_map(|(key, runs)| {
        let runs: Vec<&Run> = runs.iter().collect();
        let usual = median(runs.iter().map(|run| run.p50()))?;
        let ratio = Spread::of(runs.iter().map(|run| run.p50() / usual))?;
        summary(key.name, key.case.request_bytes, &key.case, &runs, ratio)
    });
    rows.collect()
}

fn summary(
    name: &'static str,
    bytes: usize,
    case: &Case,
    runs: &[&Run],
    ratio: Spread,
) -> Option<Row> {
    let of = |value: fn(&Run) -> f64| median(runs.iter().map(|run| value(run)));
    let trips = |run: &Run| to_f64(run.measured.sample.trips);
    let cpu = |run: &Run| to_f64(run.measured.cpu_ns + run.served.cpu_ns) / trips(run);
    let rate = |run: &Run| trips(run) * 1e9 / to_f64(run.measured.sample.elapsed_ns.max(1));
    Some(Row {
        name: case.label(name),
        request_bytes: bytes,
        wait: case.wait,
        placement: case.placement,
        p50_ns: of(|run| run.measured.sample.p50_ns)?,
        p90_ns: of(|run| run.measured.sample.p90_ns)?,
        p99_ns: of(|run| run.measured.sample.p99_ns)?,
        p999_ns: of(|run| run.measured.sample.p999_ns)?,
        max_ns: runs.iter().map(|run| run.measured.sample.max_ns).fold(0.0, f64::max),
        ratio_to_floor: ratio,
        round_trips_per_s: median(runs.iter().map(|run| rate(run)))?,
        cpu_ns_per_round_trip: median(runs.iter().map(|run| cpu(run)))?,
        syscalls_per_message: None,
        ratio_on_shared_cores: None,
        more: More {
            kept: runs.len(),
            dropped: 0,
            shared: 0,
            is_quiet: true,
            peer: name,
            service_ns: case.service_ns,
            period_ns: case.period_ns,
            overhead_ratio: None,
            curve: curve(runs),
        },
    })
}

/// Quantile by quantile the median over all runs.
fn curve(runs: &[&Run]) -> Vec<(f64, f64)> {
    let Some(first) = runs.first() else { return Vec::new() };
    let points = first.measured.sample.curve.iter().enumerate();
    points
        .filter_map(|(index, (quantile, _))| {
            let times = runs.iter().filter_map(|run| run.measured.sample.curve.get(index));
            Some((*quantile, median(times.map(|(_, ns)| *ns))?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::transport::peers::own_peers;
    use crate::transport::sample::Times;

    /// A run of `p50_ns`, at whose slower end computing took `compute_ns`.
    fn run(p50_ns: u64, compute_ns: f64) -> Run {
        let mut times = Times::with_capacity(1);
        times.push(Duration::from_nanos(p50_ns));
        let sample = times.into_sample(Duration::from_nanos(p50_ns));
        let measured = Measured { sample, cpu_ns: 0, compute_ns };
        Run { measured, served: Served { cpu_ns: 0, compute_ns: 100.0 } }
    }

    /// A lane of `ours`, with a round between floors of 100 ns for each time.
    fn lane_of(wait: WaitKind, rounds: &[(u64, f64)]) -> (Lane<'static>, Floors) {
        let peers: &'static [&'static dyn Peer] = Box::leak(own_peers().into());
        let peer = peers.iter().find(|peer| peer.name() == names::OURS).unwrap();
        let mut lane = Lane::new(*peer, Case::ping_pong(wait, Placement::PinnedApart, 64));
        let mut floors = Floors::new();
        let floor = floors.push(lane.floor, run(100, 100.0));
        for (p50_ns, compute_ns) in rounds {
            let run = run(*p50_ns, *compute_ns);
            lane.rounds.push(Round { floors: [floor; 2], run });
        }
        (lane, floors)
    }

    fn options(rounds: u32) -> Options {
        Options { rounds, ..Options::default() }
    }

    const ROUNDS: [(u64, f64); 4] = [(120, 100.0), (200, 150.0), (130, 110.0), (210, 116.0)];

    #[test]
    fn rounds_on_shared_cores_do_not_count_where_there_are_others() {
        let (lane, floors) = lane_of(WaitKind::Spin, &ROUNDS);
        let row = lane.row(&options(2), &floors, None).unwrap();
        assert_eq!(row.ratio_to_floor, Spread { median: 1.25, min: 1.2, max: 1.3 });
        let shared = Spread { median: 2.05, min: 2.0, max: 2.1 };
        assert_eq!(row.ratio_on_shared_cores, Some(shared));
        let More { kept, dropped, shared, is_quiet, .. } = row.more;
        assert_eq!((kept, dropped, shared, is_quiet), (2, 2, 2, true));
    }

    #[test]
    fn they_count_where_there_are_too_few_others_and_the_row_says_so() {
        let (lane, floors) = lane_of(WaitKind::Spin, &ROUNDS);
        let row = lane.row(&options(3), &floors, None).unwrap();
        assert_eq!(row.ratio_to_floor, Spread { median: 1.65, min: 1.2, max: 2.1 });
        let More { kept, dropped, shared, is_quiet, .. } = row.more;
        assert_eq!((kept, dropped, shared, is_quiet), (4, 0, 2, false));
    }

    #[test]
    fn who_sleeps_is_not_asked_for_its_core() {
        let (lane, floors) = lane_of(WaitKind::Sleep, &ROUNDS);
        let row = lane.row(&options(2), &floors, None).unwrap();
        assert_eq!((row.more.kept, row.more.shared, row.more.is_quiet), (4, 0, true));
        assert_eq!(row.ratio_on_shared_cores, None);
    }

    #[test]
    fn quick_rows_want_three_times_the_rounds_and_end_when_they_have_them() {
        let quiet = [(120, 100.0); 6];
        let (lane, floors) = lane_of(WaitKind::Spin, &quiet);
        assert!(!lane.wants_more(&options(2), &floors), "six of six");
        assert!(lane.wants_more(&options(3), &floors), "six of nine");
        let (lane, floors) = lane_of(WaitKind::Sleep, &quiet);
        assert!(!lane.wants_more(&options(6), &floors), "who sleeps has as many as were asked for");
        let (lane, floors) = lane_of(WaitKind::Spin, &[(120, 150.0); 6 * TRIES_PER_QUICK_ROUND]);
        assert!(!lane.wants_more(&options(2), &floors), "a host that is never quiet");
        let (lane, floors) = lane_of(WaitKind::Spin, &[(120, 150.0); 6 * TRIES_PER_ROUND]);
        assert!(lane.wants_more(&options(2), &floors) && lane.waits_for_quiet(&options(2)));
        assert!(!lane.waits_for_quiet(&options(3)), "it might be the floors");
    }
}
