//! A run: who has a trial when, which rounds count, and the ratios.

use std::time::{Duration, Instant};

use super::quiet;
use super::spread::median;
use super::subject::{Subject, Trial};
use super::track::{Floor, Round, Track};
use super::verdict::{Verdict, judge};
use crate::error::HarnessError;

/// Once all else is measured, a run waits so long for rounds in which the cores are not shared.
const QUIET_PATIENCE: Duration = Duration::from_secs(240);

/// Subjects that are measured together, and the floors that they are compared with.
pub struct Run<S: Subject> {
    floors: Vec<Floor<S>>,
    tracks: Vec<Track<S>>,
    /// What the loop of [`quiet`] takes here at best, in nanoseconds.
    least_compute_ns: f64,
}

/// Called before each trial of a subject (not of a floor) with the number of the round, counted from 1,
/// and the subject.
pub type Watch<'w, S> = dyn FnMut(u32, &S) + 'w;

impl<S: Subject> Run<S> {
    /// A run of these subjects. Those with the same floor should stand together: between two of them
    /// one trial of the floor is enough.
    #[must_use]
    pub fn new(floors: Vec<Floor<S>>, tracks: Vec<Track<S>>) -> Run<S> {
        let mut run = Run { floors, tracks, least_compute_ns: f64::INFINITY };
        let trials = run.floors.iter().flat_map(|floor| &floor.trials);
        run.least_compute_ns = trials.filter_map(least_compute_ns).fold(f64::INFINITY, f64::min);
        run
    }

    /// Measures round by round until every subject has its rounds.
    ///
    /// # Errors
    /// A subject whose trials fail more often than it may, or a floor that fails.
    pub fn measure(&mut self, watch: &mut Watch<'_, S>) -> Result<(), HarnessError> {
        self.measure_while(watch, &|| true)
    }

    /// The same for as long as `go_on` says so: it is asked before and after each trial. What was measured by then
    /// stays; a trial that fails after it said no is none.
    ///
    /// # Errors
    /// As [`Run::measure`].
    pub fn measure_while(
        &mut self,
        watch: &mut Watch<'_, S>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), HarnessError> {
        let mut waiting_since = None;
        for round in (1..).take_while(|_| go_on()) {
            let pending: Vec<usize> =
                (0..self.tracks.len()).filter(|index| self.wants_more(*index)).collect();
            if pending.is_empty() {
                break;
            }
            if pending.iter().all(|index| self.tracks[*index].waits_for_quiet())
                && waiting_since.get_or_insert_with(Instant::now).elapsed() > QUIET_PATIENCE
            {
                break;
            }
            match self.round(round, pending, (watch, go_on)) {
                Err(_) if !go_on() => break,
                done => done?,
            }
        }
        Ok(())
    }

    /// One trial of each subject that needs one. Between two with the same floor one trial of the
    /// floor is enough: it comes after the first and before the second.
    fn round(
        &mut self,
        number: u32,
        mut pending: Vec<usize>,
        (watch, go_on): (&mut Watch<'_, S>, &dyn Fn() -> bool),
    ) -> Result<(), HarnessError> {
        if number.is_multiple_of(2) {
            pending.reverse(); // so that nobody always follows the same one
        }
        let mut last: Option<(usize, usize)> = None;
        for index in pending {
            if !go_on() {
                break;
            }
            let before = match (self.tracks[index].floor, last) {
                (None, _) => None,
                (Some(floor), Some((measured, trial))) if floor == measured => Some(trial),
                (Some(floor), _) => Some(self.floor_trial(floor)?),
            };
            let track = &mut self.tracks[index];
            watch(number, &track.subject);
            let trial = match track.subject.trial(track.length) {
                Ok(trial) => trial,
                Err(_) if !go_on() => break,
                Err(error) => {
                    track.note_failure(&error);
                    if track.failures.len() > track.wanted.failures {
                        return Err(HarnessError::peer(track.failures.pop().unwrap_or_default()));
                    }
                    last = None;
                    continue;
                }
            };
            let floor = track.floor;
            let after = floor.map(|floor| self.floor_trial(floor)).transpose()?;
            let floors = before.zip(after).map(|(before, after)| [before, after]);
            last = floor.zip(after);
            self.tracks[index].rounds.push(Round { number, floors, trial });
        }
        Ok(())
    }

    /// Index of the new trial.
    fn floor_trial(&mut self, floor: usize) -> Result<usize, HarnessError> {
        let floor = &mut self.floors[floor];
        let trial = floor.subject.trial(floor.length)?;
        let least = least_compute_ns(&trial).unwrap_or(f64::INFINITY);
        self.least_compute_ns = self.least_compute_ns.min(least);
        floor.trials.push(trial);
        Ok(floor.trials.len() - 1)
    }

    fn wants_more(&self, index: usize) -> bool {
        let track = &self.tracks[index];
        track.tries() < track.wanted.tries
            && self.with(track, Verdict::Keep).len() < track.wanted.rounds
    }

    /// The subjects with what was found.
    #[must_use]
    pub fn tracks(&self) -> &[Track<S>] {
        &self.tracks
    }

    /// The subjects, to note what failed about them outside of their trials.
    pub fn tracks_mut(&mut self) -> &mut [Track<S>] {
        &mut self.tracks
    }

    /// The floors with all of their trials.
    #[must_use]
    pub fn floors(&self) -> &[Floor<S>] {
        &self.floors
    }

    /// The subjects with what was found, for good.
    #[must_use]
    pub fn into_tracks(self) -> Vec<Track<S>> {
        self.tracks
    }

    /// What becomes of a round.
    #[must_use]
    pub fn verdict(&self, track: &Track<S>, round: &Round<S::Trial>) -> Verdict {
        let most = round.trial.compute_ns().map(|[_, most]| most);
        let core_shared = track.wanted.own_cores.is_some()
            && most.is_some_and(|most| quiet::was_shared(most, self.least_compute_ns));
        let Some(floor) = track.floor else {
            return if core_shared { Verdict::CoreShared } else { Verdict::Keep };
        };
        let usual = median(self.floors[floor].trials.iter().filter_map(Trial::p50_ns));
        judge(self.floor_p50s(track, round), usual.unwrap_or(f64::NAN), core_shared)
    }

    /// The rounds with this verdict.
    #[must_use]
    pub fn with<'t>(&self, track: &'t Track<S>, verdict: Verdict) -> Vec<&'t Round<S::Trial>> {
        track.rounds.iter().filter(|round| self.verdict(track, round) == verdict).collect()
    }

    /// The rounds that count: those with the cores to themselves, and where these are fewer than are
    /// enough the others too.
    #[must_use]
    pub fn kept<'t>(&self, track: &'t Track<S>) -> Vec<&'t Round<S::Trial>> {
        let mut kept = self.with(track, Verdict::Keep);
        if track.wanted.own_cores.is_some_and(|enough| kept.len() < enough) {
            kept.extend(self.with(track, Verdict::CoreShared));
        }
        kept
    }

    /// Of a round: the median of the subject and the mean of those of its floor right before and right
    /// after, in nanoseconds.
    #[must_use]
    pub fn beside_floor(&self, track: &Track<S>, round: &Round<S::Trial>) -> (f64, f64) {
        let [before, after] = self.floor_p50s(track, round);
        (round.trial.p50_ns().unwrap_or(f64::NAN), f64::midpoint(before, after))
    }

    /// The medians of its floor right before and right after a round; not numbers where there are none.
    #[must_use]
    pub fn floor_p50s(&self, track: &Track<S>, round: &Round<S::Trial>) -> [f64; 2] {
        let floor = track.floor.map(|floor| &self.floors[floor]);
        let p50 = |index: usize| floor?.trials.get(index)?.p50_ns();
        match round.floors {
            Some(floors) => floors.map(|index| p50(index).unwrap_or(f64::NAN)),
            None => [f64::NAN; 2],
        }
    }
}

fn least_compute_ns(trial: &impl Trial) -> Option<f64> {
    trial.compute_ns().map(|[least, _]| least)
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
