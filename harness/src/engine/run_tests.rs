use std::cell::RefCell;
use std::rc::Rc;

use super::super::subject::Length;
use super::super::track::Wanted;
use super::*;

/// A trial of this median; the loop of the slower process took that long.
#[derive(Debug, Clone, Copy)]
struct Timed {
    p50_ns: f64,
    most_ns: f64,
}

impl Trial for Timed {
    fn p50_ns(&self) -> Option<f64> {
        Some(self.p50_ns)
    }

    fn compute_ns(&self) -> Option<[f64; 2]> {
        Some([100.0, self.most_ns])
    }
}

type Log = Rc<RefCell<Vec<(&'static str, u32)>>>;

/// Has the trials that were written down for it, the last one again and again, and logs them.
#[derive(Debug)]
struct Scripted {
    name: &'static str,
    trials: Vec<Option<Timed>>,
    log: Log,
}

impl Subject for Scripted {
    type Trial = Timed;

    fn context(&self) -> String {
        self.name.to_owned()
    }

    fn trial(&mut self, length: Length) -> Result<Timed, HarnessError> {
        self.log.borrow_mut().push((self.name, length.counted));
        let next = if self.trials.len() > 1 { self.trials.remove(0) } else { self.trials[0] };
        next.ok_or_else(|| HarnessError::peer("stuck"))
    }
}

const LENGTH: Length = Length { warm_up: 1, counted: 7 };

fn timed(p50_ns: f64, most_ns: f64) -> Option<Timed> {
    Some(Timed { p50_ns, most_ns })
}

fn subject(name: &'static str, log: &Log, trials: &[Option<Timed>]) -> Scripted {
    Scripted { name, trials: trials.to_vec(), log: Rc::clone(log) }
}

fn quiet(rounds: usize) -> Wanted {
    Wanted { rounds, tries: 8, tries_before_quiet: 8, failures: 1, own_cores: Some(2) }
}

/// One subject with its floor of 100 ns.
fn beside_a_floor(trials: &[Option<Timed>], wanted: Wanted) -> Run<Scripted> {
    let log = Log::default();
    let floor = Floor::new(subject("floor", &log, &[timed(100.0, 100.0)]), LENGTH);
    let track = Track::new(subject("a", &log, trials), LENGTH, Some(0), wanted);
    Run::new(vec![floor], vec![track])
}

fn p50s(rounds: &[&Round<Timed>]) -> Vec<f64> {
    rounds.iter().map(|round| round.trial.p50_ns).collect()
}

#[test]
fn subjects_have_their_trials_in_changing_order_with_their_floors_around_them() {
    let log = Log::default();
    let [quick, other] = ["quick", "other"]
        .map(|name| Floor::new(subject(name, &log, &[timed(100.0, 100.0)]), LENGTH));
    let track = |name, floor| {
        let subject = subject(name, &log, &[timed(200.0, 100.0)]);
        Track::new(subject, LENGTH, floor, Wanted::all_of(2))
    };
    let tracks =
        vec![track("a", Some(0)), track("b", Some(0)), track("c", Some(1)), track("d", None)];
    let mut run = Run::new(vec![quick, other], tracks);
    let mut seen = Vec::new();
    run.measure(&mut |round, subject| seen.push((round, subject.name))).unwrap();
    let names: Vec<&str> = log.borrow().iter().map(|(name, _)| *name).collect();
    let first = ["quick", "a", "quick", "b", "quick", "other", "c", "other", "d"];
    let second = ["d", "other", "c", "other", "quick", "b", "quick", "a", "quick"];
    assert_eq!(names, [first, second].concat());
    let first = [(1, "a"), (1, "b"), (1, "c"), (1, "d")];
    let second = [(2, "d"), (2, "c"), (2, "b"), (2, "a")];
    assert_eq!(seen, [first, second].concat(), "floors are not announced");
    let ratios = run.tracks()[1].rounds.iter().map(|r| run.beside_floor(&run.tracks()[1], r));
    assert_eq!(ratios.collect::<Vec<_>>(), [(200.0, 100.0); 2]);
}

#[test]
fn a_trial_that_fails_is_repeated_and_noted_and_one_too_many_ends_the_run() {
    let good = timed(200.0, 100.0);
    let mut run = beside_a_floor(&[None, good], quiet(1));
    run.measure(&mut |_, _| {}).unwrap();
    assert_eq!(run.tracks()[0].failures, ["a: stuck"]);
    assert_eq!(run.tracks()[0].rounds.len(), 1);
    let mut run = beside_a_floor(&[None, None, good], quiet(1));
    let error = run.measure(&mut |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), "a: stuck");
}

#[test]
fn rounds_on_shared_cores_are_repeated_and_do_not_count_where_there_are_others() {
    let trials =
        [timed(120.0, 100.0), timed(200.0, 150.0), timed(130.0, 110.0), timed(210.0, 116.0)];
    let mut run = beside_a_floor(&trials, quiet(2));
    run.measure(&mut |_, _| {}).unwrap();
    let track = &run.tracks()[0];
    assert_eq!(track.rounds.len(), 3, "as many as it takes for two that count");
    assert_eq!(p50s(&run.kept(track)), [120.0, 130.0]);
    assert_eq!(p50s(&run.with(track, Verdict::CoreShared)), [200.0]);
}

#[test]
fn rounds_on_shared_cores_count_where_there_are_too_few_others() {
    let trials = [timed(120.0, 100.0), timed(200.0, 150.0)];
    let mut run = beside_a_floor(&trials, quiet(2));
    run.measure(&mut |_, _| {}).unwrap();
    let track = &run.tracks()[0];
    assert_eq!(track.rounds.len(), 8, "tried as often as it may be");
    assert!(track.waits_for_quiet());
    assert_eq!(run.kept(track).len(), 8, "one on cores of its own is too few");
}

#[test]
fn a_subject_that_does_not_ask_for_its_cores_has_every_round_counted() {
    let wanted = Wanted { own_cores: None, ..quiet(2) };
    let mut run = beside_a_floor(&[timed(200.0, 150.0)], wanted);
    run.measure(&mut |_, _| {}).unwrap();
    assert_eq!(run.kept(&run.tracks()[0]).len(), 2);
}

#[test]
fn a_round_between_floors_that_differ_is_repeated() {
    let log = Log::default();
    let floors = [timed(100.0, 100.0), timed(130.0, 100.0), timed(100.0, 100.0)];
    let floor = Floor::new(subject("floor", &log, &floors), LENGTH);
    let track = Track::new(subject("a", &log, &[timed(200.0, 100.0)]), LENGTH, Some(0), quiet(1));
    let mut run = Run::new(vec![floor], vec![track]);
    run.measure(&mut |_, _| {}).unwrap();
    let track = &run.tracks()[0];
    let verdicts: Vec<Verdict> = track.rounds.iter().map(|r| run.verdict(track, r)).collect();
    assert_eq!(verdicts, [Verdict::FloorsDisagree, Verdict::Keep]);
}
