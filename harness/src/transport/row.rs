//! One row of the report: a peer in one case, with its rounds that count; or a floor.

use serde::{Deserialize, Serialize};

use crate::engine::{Round, Run, Spread, Track, Verdict, median, to_f64};
use crate::transport::case::{Case, Placement};
use crate::transport::mode::Modes;
use crate::transport::names;
use crate::transport::subject::{PeerInCase, RoundTrips};
use crate::wait::WaitKind;

/// One peer in one case. Times are medians over the rounds that count, `max_ns` is the longest of
/// all.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The peer, and what sets the case apart from a plain ping-pong.
    pub name: String,
    /// Bytes of a request.
    pub request_bytes: usize,
    /// How both ends wait.
    pub wait: WaitKind,
    /// Where they run.
    pub placement: Placement,
    /// Median round trip.
    pub p50_ns: f64,
    /// 90 %.
    pub p90_ns: f64,
    /// 99 %.
    pub p99_ns: f64,
    /// 99.9 %.
    pub p999_ns: f64,
    /// The longest.
    pub max_ns: f64,
    /// p50 over that of the floor of the same seconds.
    pub ratio_to_floor: Spread,
    /// Round trips per second.
    pub round_trips_per_s: f64,
    /// CPU time of both processes.
    pub cpu_ns_per_round_trip: f64,
    /// System calls of both processes over messages (two per round trip); `None` where they were
    /// not counted.
    pub syscalls_per_message: Option<f64>,
    /// As `ratio_to_floor`, over the rounds in which an end had to share its core with a thread of
    /// somebody else; `None` where there were none, or where that is not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_on_shared_cores: Option<Spread>,
    /// The p50 of each round that counts over that of its floors, in order; of a floor, over its own median.
    #[serde(default)]
    pub rounds_ratio_to_floor: Vec<f64>,
    /// Rounds that count.
    #[serde(default)]
    pub rounds_kept: usize,
    /// Rounds that were thrown away.
    #[serde(default)]
    pub rounds_dropped: usize,
    /// All rounds, those that were thrown away too, by how far apart their CPUs were; `None` where that is not told:
    /// of what sleeps, and of frames.
    #[serde(default)]
    pub modes: Option<Modes>,
    /// The most memory, over the rounds that count, that the client's process ever had resident, in KiB; `None` where
    /// that cannot be read.
    #[serde(default)]
    pub client_memory_kib: Option<u64>,
    /// The same of the server's process.
    #[serde(default)]
    pub server_memory_kib: Option<u64>,
    /// What only the text and the drawings use.
    #[serde(skip)]
    pub more: More,
}

/// What a row has besides the fields of its JSON.
#[derive(Debug, Clone, Default)]
pub struct More {
    /// Rounds in which an end had to share its core.
    pub shared: usize,
    /// Whether these do not count; they do where there were too few others.
    pub is_quiet: bool,
    /// The peer's name alone.
    pub peer: &'static str,
    /// How long the server worked on each request.
    pub service_ns: u64,
    /// Time between two requests.
    pub period_ns: u64,
    /// Requests under way at one time.
    pub in_flight: u32,
    /// p50 less the service time, over the same of the floor.
    pub overhead_ratio: Option<f64>,
    /// CPU time of the client's process alone for a round trip, in nanoseconds.
    pub client_cpu_ns: f64,
    /// Quantiles and times, for drawing.
    pub curve: Vec<(f64, f64)>,
}

/// The row of one subject; `None` where no round counts.
pub(crate) fn row<'p>(
    run: &Run<PeerInCase<'p>>,
    track: &Track<PeerInCase<'p>>,
    calls: Option<f64>,
) -> Option<Row> {
    let PeerInCase { peer, case, .. } = &track.subject;
    let kept = run.kept(track);
    let shared = run.with(track, Verdict::CoreShared);
    let pair = |round: &&Round<RoundTrips>| run.beside_floor(track, round);
    let service = to_f64(case.service_ns);
    let overhead = kept.iter().map(pair).map(|(own, floor)| (own - service, floor - service));
    let overhead = Spread::of_ratios(overhead).filter(|_| case.service_ns > 0);
    let bytes = peer.fixed_request_bytes().unwrap_or(case.request_bytes);
    let trials: Vec<&RoundTrips> = kept.iter().map(|round| &round.trial).collect();
    let ratios = kept.iter().map(pair).map(|(own, floor)| own / floor).collect();
    let mut row = summary(peer.name(), bytes, case, &trials, ratios)?;
    row.syscalls_per_message = calls;
    row.ratio_on_shared_cores = Spread::of_ratios(shared.iter().map(pair));
    row.rounds_dropped = track.rounds.len() - kept.len();
    row.modes = Modes::of(run, track);
    row.more.shared = shared.len();
    row.more.is_quiet = kept.iter().all(|round| run.verdict(track, round) == Verdict::Keep);
    row.more.overhead_ratio = overhead.map(|ratio| ratio.median);
    Some(row)
}

/// The floors themselves, over all their trials. Their ratio is that to their own median.
pub(crate) fn floor_rows(run: &Run<PeerInCase<'_>>) -> Vec<Row> {
    let rows = run.floors().iter().filter_map(|floor| {
        let PeerInCase { peer, case, .. } = &floor.subject;
        let trials: Vec<&RoundTrips> = floor.trials.iter().collect();
        let p50s = || trials.iter().map(|trial| trial.measured.sample.p50_ns);
        let usual = median(p50s())?;
        let ratios = p50s().map(|p50| p50 / usual).collect();
        let mut row = summary(peer.name(), case.request_bytes, case, &trials, ratios)?;
        let of_floor = || Modes::of_floor(&p50s().collect::<Vec<f64>>());
        row.modes = (peer.name() == names::TWO_LINES).then(of_floor);
        Some(row)
    });
    rows.collect()
}

fn summary(
    name: &'static str,
    bytes: usize,
    case: &Case,
    trials: &[&RoundTrips],
    ratios: Vec<f64>,
) -> Option<Row> {
    let of = |value: fn(&RoundTrips) -> f64| median(trials.iter().map(|trial| value(trial)));
    let trips = |trial: &RoundTrips| to_f64(trial.measured.sample.trips);
    let cpu =
        |trial: &RoundTrips| to_f64(trial.measured.cpu_ns + trial.served.cpu_ns) / trips(trial);
    let client_cpu = |trial: &RoundTrips| to_f64(trial.measured.cpu_ns) / trips(trial);
    let rate =
        |trial: &RoundTrips| trips(trial) * 1e9 / to_f64(trial.measured.sample.elapsed_ns.max(1));
    Some(Row {
        name: case.label(name),
        request_bytes: bytes,
        wait: case.wait,
        placement: case.placement,
        p50_ns: of(|trial| trial.measured.sample.p50_ns)?,
        p90_ns: of(|trial| trial.measured.sample.p90_ns)?,
        p99_ns: of(|trial| trial.measured.sample.p99_ns)?,
        p999_ns: of(|trial| trial.measured.sample.p999_ns)?,
        max_ns: trials.iter().map(|trial| trial.measured.sample.max_ns).fold(0.0, f64::max),
        ratio_to_floor: Spread::of(ratios.iter().copied())?,
        round_trips_per_s: median(trials.iter().map(|trial| rate(trial)))?,
        cpu_ns_per_round_trip: median(trials.iter().map(|trial| cpu(trial)))?,
        syscalls_per_message: None,
        ratio_on_shared_cores: None,
        rounds_ratio_to_floor: ratios,
        rounds_kept: trials.len(),
        rounds_dropped: 0,
        modes: None,
        client_memory_kib: trials.iter().filter_map(|trial| trial.measured.memory_kib).max(),
        server_memory_kib: trials.iter().filter_map(|trial| trial.served.memory_kib).max(),
        more: More {
            shared: 0,
            is_quiet: true,
            peer: name,
            service_ns: case.service_ns,
            period_ns: case.period_ns,
            in_flight: case.in_flight,
            overhead_ratio: None,
            client_cpu_ns: median(trials.iter().map(|trial| client_cpu(trial)))?,
            curve: curve(trials),
        },
    })
}

/// Quantile by quantile the median over all trials.
fn curve(trials: &[&RoundTrips]) -> Vec<(f64, f64)> {
    let Some(first) = trials.first() else { return Vec::new() };
    let points = first.measured.sample.curve.iter().enumerate();
    points
        .filter_map(|(index, (quantile, _))| {
            let times = trials.iter().filter_map(|trial| trial.measured.sample.curve.get(index));
            Some((*quantile, median(times.map(|(_, ns)| *ns))?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::{Floor, Length};
    use crate::transport::peers::own_peers;
    use crate::transport::process::Runner;
    use crate::transport::sample::Recorder;
    use crate::transport::session::{Measured, Served};
    use crate::transport::subject::FloorKey;

    /// Round trips of `p50_ns`, at whose slower end computing took `compute_ns`.
    fn trial(p50_ns: u64, compute_ns: f64) -> RoundTrips {
        let mut times = Recorder::with_capacity(1);
        times.push(Duration::from_nanos(p50_ns));
        let sample = times.into_sample(Duration::from_nanos(p50_ns));
        // The server of a longer trip has more, of the client nothing is known.
        let memory_kib = Some(p50_ns);
        let measured = Measured { sample, cpu_ns: 0, compute_ns, memory_kib: None };
        RoundTrips { measured, served: Served { cpu_ns: 0, compute_ns: 100.0, memory_kib } }
    }

    /// The row of `ours`, with a round between floors of 100 ns for each time.
    fn row_of(wait: WaitKind, asked: u32, rounds: &[(u64, f64)]) -> Row {
        let runner = Runner::new("/bin/true").unwrap();
        let peers = own_peers();
        let peer = peers.iter().find(|peer| peer.name() == names::OURS).unwrap();
        let case = Case::ping_pong(wait, Placement::PinnedApart, 64);
        let subject = PeerInCase::new(&runner, *peer, case);
        let length = Length { warm_up: 0, counted: 1 };
        let key = FloorKey::of(names::OURS, &case);
        let own = peers.iter().find(|peer| peer.name() == key.name).unwrap();
        let mut floor = Floor::new(PeerInCase::new(&runner, *own, key.case), length);
        floor.trials.push(trial(100, 100.0));
        let wanted = subject.wanted(asked, false);
        let mut track = Track::new(subject, length, Some(0), wanted);
        for (number, (p50_ns, compute_ns)) in (1..).zip(rounds) {
            let trial = trial(*p50_ns, *compute_ns);
            track.rounds.push(Round { number, floors: Some([0; 2]), trial });
        }
        let run = Run::new(vec![floor], vec![track]);
        row(&run, &run.tracks()[0], None).unwrap()
    }

    const ROUNDS: [(u64, f64); 4] = [(120, 100.0), (200, 150.0), (130, 110.0), (210, 116.0)];

    #[test]
    fn rounds_on_shared_cores_do_not_count_where_there_are_others() {
        let row = row_of(WaitKind::Spin, 2, &ROUNDS);
        assert_eq!(row.ratio_to_floor, Spread { median: 1.25, min: 1.2, max: 1.3 });
        let shared = Spread { median: 2.05, min: 2.0, max: 2.1 };
        assert_eq!(row.ratio_on_shared_cores, Some(shared));
        assert_eq!(row.rounds_ratio_to_floor, [1.2, 1.3], "as they came");
        assert_eq!((row.client_memory_kib, row.server_memory_kib), (None, Some(130)), "the most");
        let More { shared, is_quiet, .. } = row.more;
        assert_eq!((row.rounds_kept, row.rounds_dropped, shared, is_quiet), (2, 2, 2, true));
    }

    #[test]
    fn rounds_that_do_not_count_are_in_their_mode_all_the_same() {
        // The floor's own trials take 100 ns: near, whoever shared a core.
        let row = row_of(WaitKind::Spin, 2, &ROUNDS);
        let modes = row.modes.unwrap();
        let near = modes.near.unwrap();
        assert_eq!((near.rounds, near.p50_ns, modes.between), (4, 165.0, 0));
        assert_eq!(near.ratio_to_floor, Spread { median: 1.65, min: 1.2, max: 2.1 });
        assert!(modes.far.is_none());
        assert!(row_of(WaitKind::Sleep, 2, &ROUNDS).modes.is_none(), "who sleeps has none");
    }

    #[test]
    fn they_count_where_there_are_too_few_others_and_the_row_says_so() {
        let row = row_of(WaitKind::Spin, 3, &ROUNDS);
        assert_eq!(row.ratio_to_floor, Spread { median: 1.65, min: 1.2, max: 2.1 });
        let More { shared, is_quiet, .. } = row.more;
        assert_eq!((row.rounds_kept, row.rounds_dropped, shared, is_quiet), (4, 0, 2, false));
    }

    #[test]
    fn who_sleeps_is_not_asked_for_its_core() {
        let row = row_of(WaitKind::Sleep, 2, &ROUNDS);
        assert_eq!((row.rounds_kept, row.more.shared, row.more.is_quiet), (4, 0, true));
        assert_eq!(row.ratio_on_shared_cores, None);
    }
}
