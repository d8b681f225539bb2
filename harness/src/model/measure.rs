//! Models over paths, measured by the engine: how long trials are, and what is kept of them.

use std::time::Duration;

use super::subject::{Executions, Label, ModelSubject, nanos};
use crate::engine::{Length, Run, Spread, Subject, Times, Track, Wanted, to_f64};
use crate::error::HarnessError;

/// How long measuring goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Rounds in which every subject has a trial.
    pub rounds: u32,
    /// Executions that count in each trial; `None`: as many as fit into [`TRIAL`].
    pub executions: Option<u32>,
}

/// How long a trial should be, where nobody says how many executions.
pub const TRIAL: Duration = Duration::from_millis(300);
/// Executions of a trial, whatever they take.
const EXECUTIONS: std::ops::RangeInclusive<u128> = 3..=2000;
/// A subject whose executions take longer has a trial in the first round only.
const SLOW: Duration = Duration::from_secs(1);
/// Most executions before those that count.
const WARM_UP_MAX: u32 = 20;

/// What is kept of one subject's trials.
#[derive(Debug, Clone)]
pub struct Series {
    /// Which path.
    pub label: Label,
    /// Executions that count, of all rounds.
    pub times: Times,
    /// What they took beyond the driver's own time.
    pub transport: Times,
    /// Copies of the inputs.
    pub copies: Times,
    /// Outputs of a first execution.
    pub outputs: Vec<Vec<u8>>,
    /// Median in nanoseconds of each round; `None` where the subject had no trial.
    pub p50s: Vec<Option<f64>>,
    /// Preparing likewise.
    pub prepares: Vec<Option<f64>>,
    /// The first execution likewise.
    pub firsts: Vec<Option<f64>>,
    /// The most memory, over all rounds, that the process which computes ever had resident, in KiB.
    pub memory_kib: Option<u64>,
}

/// A subject after the trial that showed how long its executions take, and what they come to.
struct Calibrated<'s> {
    subject: Box<dyn ModelSubject + 's>,
    outputs: Vec<Vec<u8>>,
}

impl Subject for Calibrated<'_> {
    type Trial = Executions;

    fn context(&self) -> String {
        self.subject.context()
    }

    /// Without the outputs, which are the same in every trial and may be large.
    fn trial(&mut self, length: Length) -> Result<Executions, HarnessError> {
        Ok(Executions { outputs: Vec::new(), ..self.subject.trial(length)? })
    }
}

/// Lets every subject run once to see how long it takes, then measures all of them in rounds. `watch`
/// is told before each trial in which round it is, counted from 1, or 0 for the one that calibrates.
///
/// # Errors
/// Those of the subjects, with the path's name.
pub fn measure(
    subjects: Vec<Box<dyn ModelSubject + '_>>,
    options: &Options,
    watch: &mut dyn FnMut(u32, &Label),
) -> Result<Vec<Series>, HarnessError> {
    match measure_while(subjects, options, watch, &|| true) {
        (series, None) => Ok(series),
        (_, Some(error)) => Err(error),
    }
}

/// The same for as long as `go_on` says so. Gives what was measured by then, of some subjects nothing, and what ended
/// it before its time: the errors of [`measure`].
pub fn measure_while(
    subjects: Vec<Box<dyn ModelSubject + '_>>,
    options: &Options,
    watch: &mut dyn FnMut(u32, &Label),
    go_on: &dyn Fn() -> bool,
) -> (Vec<Series>, Option<HarnessError>) {
    let mut tracks = Vec::with_capacity(subjects.len());
    let mut failed = None;
    for mut subject in subjects {
        watch(0, subject.label());
        let once = Length { warm_up: 0, counted: 1 };
        let trial = match subject.trial(once) {
            _ if !go_on() => break,
            Ok(trial) => trial,
            Err(error) => {
                failed = Some(HarnessError::peer(format!("{}: {error}", subject.context())));
                break;
            }
        };
        let took = Duration::from_nanos(trial.times.quantile(0.0).map_or(1, whole));
        let rounds = if took > SLOW { options.rounds.min(1) } else { options.rounds };
        let length = length(took, options);
        let subject = Calibrated { subject, outputs: trial.outputs };
        tracks.push(Track::new(subject, length, None, Wanted::all_of(rounds as usize)));
    }
    let mut run = Run::new(Vec::new(), tracks);
    if failed.is_none() {
        let mut watch = |round, calibrated: &Calibrated<'_>| {
            watch(round, calibrated.subject.label());
        };
        failed = run.measure_while(&mut watch, go_on).err();
    }
    let tracks = run.into_tracks().into_iter();
    (tracks.map(|track| Series::new(track, options.rounds)).collect(), failed)
}

impl Series {
    fn new(track: Track<Calibrated<'_>>, rounds: u32) -> Series {
        let mut series = Series {
            label: track.subject.subject.label().clone(),
            times: Times::default(),
            transport: Times::default(),
            copies: Times::default(),
            outputs: track.subject.outputs,
            p50s: vec![None; rounds as usize],
            prepares: vec![None; rounds as usize],
            firsts: vec![None; rounds as usize],
            memory_kib: None,
        };
        let ns = |duration| Some(to_f64(nanos(duration)));
        for round in track.rounds {
            let trial = round.trial;
            series.times.extend(&trial.times);
            series.transport.extend(&trial.transport);
            series.copies.extend(&trial.copies);
            let at = round.number as usize - 1;
            series.prepares[at] = ns(trial.prepare);
            series.firsts[at] = ns(trial.first);
            series.p50s[at] = trial.times.p50();
            series.memory_kib = series.memory_kib.max(trial.memory_kib);
        }
        series
    }
}

fn length(took: Duration, options: &Options) -> Length {
    let fitting = TRIAL.as_nanos() / took.as_nanos().max(1);
    let fitting =
        if took > SLOW { 1 } else { fitting.clamp(*EXECUTIONS.start(), *EXECUTIONS.end()) };
    let counted = options.executions.unwrap_or(u32::try_from(fitting).unwrap_or(u32::MAX));
    let warm_up = if took > SLOW { 0 } else { (counted / 10).clamp(1, WARM_UP_MAX) };
    Length { warm_up, counted }
}

fn whole(ns: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
    let ns = ns as u64;
    ns
}

/// The p50 of one subject over that of another, round by round. `None` where they never met.
#[must_use]
pub fn ratio(series: &Series, base: &Series) -> Option<Spread> {
    ratio_by_round(&series.p50s, &base.p50s)
}

/// One figure over another, round by round. `None` where no round has both.
#[must_use]
pub fn ratio_by_round(values: &[Option<f64>], bases: &[Option<f64>]) -> Option<Spread> {
    let rounds = values.iter().zip(bases);
    Spread::of_ratios(rounds.filter_map(|(own, base)| (*own).zip(*base)))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Claims to have taken so long, and logs its trials.
    struct Fake<'l> {
        label: Label,
        took: Duration,
        log: &'l RefCell<Vec<(String, u32)>>,
    }

    impl ModelSubject for Fake<'_> {
        fn label(&self) -> &Label {
            &self.label
        }
    }

    impl Subject for Fake<'_> {
        type Trial = Executions;

        fn context(&self) -> String {
            self.label.to_string()
        }

        fn trial(&mut self, length: Length) -> Result<Executions, HarnessError> {
            self.log.borrow_mut().push((self.label.path.clone(), length.counted));
            let times = Times::new(vec![nanos(self.took); length.counted as usize]);
            Ok(Executions { first: self.took * 2, times, ..Executions::default() })
        }
    }

    fn run(options: Options, paths: &[(&str, Duration)]) -> (Vec<Series>, Vec<(String, u32)>) {
        let log = RefCell::default();
        let mut fakes: Vec<Box<dyn ModelSubject + '_>> = Vec::new();
        for (path, took) in paths {
            fakes.push(Box::new(Fake { label: Label::new(path, 1), took: *took, log: &log }));
        }
        let series = measure(fakes, &options, &mut |_, _| {}).unwrap();
        (series, log.into_inner())
    }

    const TWO: [(&str, Duration); 2] =
        [("a", Duration::from_millis(1)), ("b", Duration::from_millis(3))];

    #[test]
    fn subjects_have_trials_in_changing_order_as_long_as_fits() {
        let (series, log) = run(Options { rounds: 3, executions: None }, &TWO);
        let log: Vec<(&str, u32)> = log.iter().map(|(path, n)| (path.as_str(), *n)).collect();
        let calibration = [("a", 1), ("b", 1)];
        let rounds = [("a", 300), ("b", 100), ("b", 100), ("a", 300), ("a", 300), ("b", 100)];
        assert_eq!(log, [&calibration[..], &rounds[..]].concat());
        assert_eq!((series[0].times.len(), series[1].times.len()), (900, 300));
        let spread = ratio(&series[1], &series[0]).unwrap();
        assert_eq!(spread, Spread { median: 3.0, min: 3.0, max: 3.0 });
        assert_eq!(series[0].firsts, [Some(2e6); 3]);
    }

    #[test]
    fn executions_are_as_many_as_asked_for() {
        let (_, log) = run(Options { rounds: 1, executions: Some(7) }, &TWO);
        assert_eq!(log[2..], [("a".to_owned(), 7), ("b".to_owned(), 7)]);
    }

    #[test]
    fn a_slow_subject_has_one_trial_and_is_compared_in_that_round_alone() {
        let slow = [("quick", Duration::from_millis(1)), ("slow", Duration::from_secs(2))];
        let (series, log) = run(Options { rounds: 4, executions: None }, &slow);
        assert_eq!(
            log.iter().filter(|(path, _)| path == "slow").count(),
            2,
            "calibration and one trial"
        );
        assert_eq!(series[1].p50s, [Some(2e9), None, None, None]);
        assert_eq!(ratio(&series[1], &series[0]).map(|s| s.median), Some(2000.0));
    }

    #[test]
    fn subjects_that_never_met_have_no_ratio() {
        let (mut series, _) = run(Options { rounds: 1, executions: Some(1) }, &TWO);
        series[0].p50s = vec![None];
        assert_eq!(ratio(&series[0], &series[1]), None);
    }
}
