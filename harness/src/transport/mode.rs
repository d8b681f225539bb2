//! Near and far: how long a cache line takes between the two CPUs of a round.
//!
//! Which cores two virtual CPUs are is the host's choice, and it changes: for seconds or minutes a line takes
//! twice as long from one to the other, and more. A peer that computes between its lines is nearer to the
//! floor where lines are slow. So a ratio over both says what the mixture was; here each mode has its own, over
//! **all** of its rounds: those on shared cores too, which other figures leave out.

use serde::{Deserialize, Serialize};

use crate::engine::{Run, Spread, Track, median};
use crate::lines::FAR_ABOVE_NS;
use crate::transport::names;
use crate::transport::subject::PeerInCase;

/// All rounds of a row in one mode.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InMode {
    /// How many there were.
    pub rounds: usize,
    /// The median of their medians.
    pub p50_ns: f64,
    /// p50 over that of the floor of the same seconds.
    pub ratio_to_floor: Spread,
}

/// A row's rounds by mode.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Modes {
    /// Those in which both floors were quick; `None` where there were none.
    pub near: Option<InMode>,
    /// Those in which both were slow.
    pub far: Option<InMode>,
    /// Rounds with one floor of each: the machine changed meanwhile.
    pub between: usize,
}

impl Modes {
    /// Of a subject that is compared with the floor of two lines; `None` of others.
    pub(crate) fn of<'p>(
        run: &Run<PeerInCase<'p>>,
        track: &Track<PeerInCase<'p>>,
    ) -> Option<Modes> {
        let floor = &run.floors().get(track.floor?)?.subject;
        if floor.peer.name() != names::TWO_LINES {
            return None;
        }
        let rounds = track
            .rounds
            .iter()
            .map(|round| (is_far(run.floor_p50s(track, round)), run.beside_floor(track, round)));
        Some(Modes::of_pairs(rounds))
    }

    /// Of rounds: the mode of each, its own median, and that of its floor.
    fn of_pairs(rounds: impl Iterator<Item = (Option<bool>, (f64, f64))>) -> Modes {
        let (mut near, mut far, mut between) = (Vec::new(), Vec::new(), 0);
        for (mode, pair) in rounds {
            match mode {
                Some(false) => near.push(pair),
                Some(true) => far.push(pair),
                None => between += 1,
            }
        }
        Modes { near: InMode::of(near), far: InMode::of(far), between }
    }

    /// Of the floor of two lines itself, by its medians: their ratio is that to the median of their mode.
    pub(crate) fn of_floor(p50s: &[f64]) -> Modes {
        let with = |far: bool| {
            let p50s: Vec<f64> =
                p50s.iter().copied().filter(|p50| is_far([*p50; 2]) == Some(far)).collect();
            let usual = median(p50s.iter().copied())?;
            InMode::of(p50s.into_iter().map(|p50| (p50, usual)).collect())
        };
        Modes { near: with(false), far: with(true), between: 0 }
    }
}

impl InMode {
    /// Of pairs: a round's own median, and that of its floor.
    fn of(pairs: Vec<(f64, f64)>) -> Option<InMode> {
        let p50_ns = median(pairs.iter().map(|(own, _)| *own))?;
        let rounds = pairs.len();
        Some(InMode { rounds, p50_ns, ratio_to_floor: Spread::of_ratios(pairs)? })
    }
}

/// Whether a round between these floors was far; `None` where they say different things, or nothing.
fn is_far([before, after]: [f64; 2]) -> Option<bool> {
    let measured = before > 0.0 && after > 0.0;
    let far = [before, after].map(|floor| floor > FAR_ABOVE_NS);
    (measured && far[0] == far[1]).then_some(far[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_the_mode_that_both_of_its_floors_say() {
        for (floors, far) in [
            ([140.0, 150.0], Some(false)),
            ([140.0, 190.0], Some(false)),
            ([300.0, 500.0], Some(true)),
            ([140.0, 300.0], None),
            ([300.0, 140.0], None),
            ([f64::NAN, 140.0], None),
            ([0.0, 140.0], None),
        ] {
            assert_eq!(is_far(floors), far, "{floors:?}");
        }
    }

    #[test]
    fn a_floor_is_compared_with_the_median_of_its_mode() {
        let modes = Modes::of_floor(&[140.0, 150.0, 160.0, 400.0]);
        let near = modes.near.unwrap();
        assert_eq!((near.rounds, near.p50_ns), (3, 150.0));
        assert_eq!(near.ratio_to_floor.median, 1.0);
        assert!(near.ratio_to_floor.min < 0.94 && near.ratio_to_floor.max > 1.06);
        let far = modes.far.unwrap();
        assert_eq!((far.rounds, far.p50_ns, far.ratio_to_floor.max), (1, 400.0, 1.0));
        assert!(Modes::of_floor(&[140.0]).far.is_none());
    }
}
