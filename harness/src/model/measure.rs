//! Who runs when, and how often: every lane once per round, in turns.

use std::time::Duration;

use super::subject::{Label, Lane, Length, Turn};
use crate::engine::times::Times;
use crate::engine::verdict::Spread;
use crate::error::HarnessError;

/// How long measuring goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Rounds in which every lane takes its turn.
    pub rounds: u32,
    /// Executions that count in each turn; `None`: as many as fit into [`TURN`].
    pub executions: Option<u32>,
}

/// How long a turn should be, where nobody says how many executions.
pub const TURN: Duration = Duration::from_millis(300);
/// Executions of a turn, whatever they take.
const EXECUTIONS: std::ops::RangeInclusive<u128> = 3..=2000;
/// A lane whose executions take longer has a turn in the first round only.
const SLOW: Duration = Duration::from_secs(1);
/// Most executions before those that count.
const WARM_UP_MAX: u32 = 20;

/// One lane over all rounds.
#[derive(Debug, Clone)]
pub struct Track {
    /// Who.
    pub label: Label,
    /// Executions that count, of all rounds.
    pub times: Times,
    /// What they took beyond the driver's own time.
    pub transport: Times,
    /// Copies of the inputs.
    pub copies: Times,
    /// Preparing, one per round.
    pub prepares: Times,
    /// First executions, one per round.
    pub firsts: Times,
    /// Outputs of a first execution.
    pub outputs: Vec<Vec<u8>>,
    /// Median in nanoseconds of each round; `None` where the lane had no turn.
    pub p50s: Vec<Option<f64>>,
}

impl Track {
    fn new(label: Label, trial: Turn) -> Track {
        Track {
            label,
            times: Times::default(),
            transport: Times::default(),
            copies: Times::default(),
            prepares: Times::default(),
            firsts: Times::default(),
            outputs: trial.outputs,
            p50s: Vec::new(),
        }
    }

    fn add(&mut self, turn: &Turn) {
        let one = |duration| Times::new(vec![super::subject::nanos(duration)]);
        self.times.extend(&turn.times);
        self.transport.extend(&turn.transport);
        self.copies.extend(&turn.copies);
        self.prepares.extend(&one(turn.prepare));
        self.firsts.extend(&one(turn.first));
        self.p50s.push(turn.times.p50());
    }
}

/// Lets every lane run once to see how long it takes, then measures all of them in turns. `watch`
/// is told who is next: in which round, counted from 1, or 0 for the trial.
///
/// # Errors
/// Those of the lanes, with the lane's name.
pub fn measure(
    lanes: &mut [Box<dyn Lane + '_>],
    options: &Options,
    watch: &mut dyn FnMut(u32, &Label),
) -> Result<Vec<Track>, HarnessError> {
    let mut tracks = Vec::with_capacity(lanes.len());
    let mut lengths = Vec::with_capacity(lanes.len());
    for lane in &mut *lanes {
        watch(0, lane.label());
        let trial = turn(&mut **lane, Length { warm_up: 0, executions: 1 })?;
        let took = Duration::from_nanos(trial.times.quantile(0.0).map_or(1, whole));
        lengths.push((took <= SLOW, length(took, options)));
        tracks.push(Track::new(lane.label().clone(), trial));
    }
    for round in 0..options.rounds {
        let mut order: Vec<usize> = (0..lanes.len()).collect();
        if round % 2 == 1 {
            order.reverse(); // so that nobody always follows the same one
        }
        for index in order {
            let (is_quick, length) = lengths[index];
            if round > 0 && !is_quick {
                tracks[index].p50s.push(None);
                continue;
            }
            watch(round + 1, lanes[index].label());
            let turn = turn(&mut *lanes[index], length)?;
            tracks[index].add(&turn);
        }
    }
    Ok(tracks)
}

fn turn(lane: &mut dyn Lane, length: Length) -> Result<Turn, HarnessError> {
    lane.turn(length).map_err(|error| HarnessError::peer(format!("{}: {error}", lane.label())))
}

fn length(took: Duration, options: &Options) -> Length {
    let fitting = TURN.as_nanos() / took.as_nanos().max(1);
    let fitting =
        if took > SLOW { 1 } else { fitting.clamp(*EXECUTIONS.start(), *EXECUTIONS.end()) };
    let executions = options.executions.unwrap_or(u32::try_from(fitting).unwrap_or(u32::MAX));
    let warm_up = if took > SLOW { 0 } else { (executions / 10).clamp(1, WARM_UP_MAX) };
    Length { warm_up, executions }
}

fn whole(ns: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
    let ns = ns as u64;
    ns
}

/// The p50 of one lane over that of another, round by round. `None` where they never met.
#[must_use]
pub fn ratio(track: &Track, base: &Track) -> Option<Spread> {
    let rounds = track.p50s.iter().zip(&base.p50s);
    Spread::of(rounds.filter_map(|(own, base)| Some((*own)? / (*base)?)))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Claims to have taken so long, and writes down when it had its turn.
    struct Fake<'l> {
        label: Label,
        took: Duration,
        log: &'l RefCell<Vec<(String, u32)>>,
    }

    impl Lane for Fake<'_> {
        fn label(&self) -> &Label {
            &self.label
        }

        fn turn(&mut self, length: Length) -> Result<Turn, HarnessError> {
            self.log.borrow_mut().push((self.label.path.clone(), length.executions));
            let took = super::super::subject::nanos(self.took);
            let times = Times::new(vec![took; length.executions as usize]);
            Ok(Turn { first: self.took * 2, times, ..Turn::default() })
        }
    }

    fn run(options: Options, lanes: &[(&str, Duration)]) -> (Vec<Track>, Vec<(String, u32)>) {
        let log = RefCell::default();
        let mut fakes: Vec<Box<dyn Lane>> = Vec::new();
        for (path, took) in lanes {
            fakes.push(Box::new(Fake { label: Label::new(path, 1), took: *took, log: &log }));
        }
        let tracks = measure(&mut fakes, &options, &mut |_, _| {}).unwrap();
        drop(fakes);
        (tracks, log.into_inner())
    }

    const TWO: [(&str, Duration); 2] =
        [("a", Duration::from_millis(1)), ("b", Duration::from_millis(3))];

    #[test]
    fn lanes_take_turns_in_changing_order_as_long_as_fits() {
        let (tracks, log) = run(Options { rounds: 3, executions: None }, &TWO);
        let log: Vec<(&str, u32)> = log.iter().map(|(path, n)| (path.as_str(), *n)).collect();
        let trial = [("a", 1), ("b", 1)];
        let rounds = [("a", 300), ("b", 100), ("b", 100), ("a", 300), ("a", 300), ("b", 100)];
        assert_eq!(log, [&trial[..], &rounds[..]].concat());
        assert_eq!((tracks[0].times.len(), tracks[1].times.len()), (900, 300));
        let spread = ratio(&tracks[1], &tracks[0]).unwrap();
        assert_eq!(spread, Spread { median: 3.0, min: 3.0, max: 3.0 });
        assert_eq!(tracks[0].firsts.p50(), Some(2e6));
    }

    #[test]
    fn executions_are_as_many_as_asked_for() {
        let (_, log) = run(Options { rounds: 1, executions: Some(7) }, &TWO);
        assert_eq!(log[2..], [("a".to_owned(), 7), ("b".to_owned(), 7)]);
    }

    #[test]
    fn a_slow_lane_has_one_turn_and_is_compared_in_that_round_alone() {
        let slow = [("quick", Duration::from_millis(1)), ("slow", Duration::from_secs(2))];
        let (tracks, log) = run(Options { rounds: 4, executions: None }, &slow);
        assert_eq!(log.iter().filter(|(path, _)| path == "slow").count(), 2, "trial and one turn");
        assert_eq!(tracks[1].p50s, [Some(2e9), None, None, None]);
        assert_eq!(ratio(&tracks[1], &tracks[0]).map(|s| s.median), Some(2000.0));
    }

    #[test]
    fn lanes_that_never_met_have_no_ratio() {
        let (mut tracks, _) = run(Options { rounds: 1, executions: Some(1) }, &TWO);
        tracks[0].p50s = vec![None];
        assert_eq!(ratio(&tracks[0], &tracks[1]), None);
    }
}
