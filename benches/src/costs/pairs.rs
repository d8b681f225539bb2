//! Two ways to do the same, in turns.

use std::time::{Duration, Instant};

use burst_harness::HarnessError;
use burst_harness::engine::median;
use serde::{Deserialize, Serialize};

/// How long one side's turn is, at least: long beside a look at the clock, and short beside what changes on a
/// machine that others use too.
const TURN: Duration = Duration::from_micros(200);
/// Executions in one turn, at most.
const TURN_MAX: u32 = 1000;
/// Turns of one execution that each side has before the first pair.
const WARM_UP: u32 = 5;
/// Pairs that are taken in any case, however long they take.
const PAIRS_MIN: u32 = 2;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// What is looked at.
    First,
    /// What it is compared with.
    Second,
}

/// How much is measured for one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Pairs of turns, at most.
    pub(crate) pairs: u32,
    /// No further pair begins after this time.
    pub(crate) time: Duration,
}

/// A median, and between what it lies with a probability of 95 %, however the values are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Interval {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// What came of the pairs of one row.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Of pairs, the first side to the second.
    pub(crate) ratio: Interval,
    /// Of pairs, the first side less the second, in nanoseconds of one execution.
    pub(crate) difference_ns: Interval,
    /// Medians of turns, in nanoseconds of one execution.
    pub(crate) first_ns: f64,
    pub(crate) second_ns: f64,
    pub(crate) pairs: usize,
    /// Executions of each side in one pair.
    pub(crate) executions: u32,
}

impl Interval {
    /// `None` without values.
    fn of(mut values: Vec<f64>) -> Option<Interval> {
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        // How many of n values lie below the median is binomial: half of n on average, and with 95 % within
        // 1.96 standard deviations of half the root of n.
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "as small as the number of pairs"
        )]
        let spread = (0.98 * (values.len() as f64).sqrt()).ceil() as usize;
        let middle = values.len() / 2;
        let [low, high] = [middle.saturating_sub(spread), (middle + spread).min(last)];
        let (low, high) = (values[low], values[high]);
        Some(Interval { median: median(values)?, low, high })
    }

    /// In another unit.
    pub(crate) fn scaled(&self, factor: f64) -> Interval {
        let Interval { median, low, high } = self;
        Interval { median: median * factor, low: low * factor, high: high * factor }
    }

    pub(crate) fn text(&self) -> String {
        let Interval { median, low, high } = self;
        format!("{median:.3} ({low:.3} - {high:.3})")
    }
}

/// Takes turns: in each pair both sides run as many executions, and the one that goes first in one pair goes
/// second in the next. A turn begins with one execution that does not count: during the other's turn threads
/// fell asleep and caches went cold.
///
/// # Errors
/// Those of `run`, which executes once.
pub(crate) fn compare(
    effort: Effort,
    mut run: impl FnMut(Side) -> Result<(), HarnessError>,
) -> Result<Measured, HarnessError> {
    let mut turn = |side, executions: u32| -> Result<f64, HarnessError> {
        run(side)?;
        let begun = Instant::now();
        for _ in 0..executions {
            run(side)?;
        }
        Ok(begun.elapsed().as_secs_f64() * 1e9 / f64::from(executions))
    };
    // The first executions make working memory, and memories known to the service.
    let mut quickest = f64::INFINITY;
    for side in [Side::First, Side::Second] {
        for _ in 0..WARM_UP {
            quickest = quickest.min(turn(side, 1)?);
        }
    }
    let executions = executions_of_a_turn(quickest);
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    for pair in 0..effort.pairs.max(PAIRS_MIN) {
        if pair >= PAIRS_MIN && begun.elapsed() > effort.time {
            break;
        }
        // Whoever comes first finds caches colder: so each does in turn.
        let order = match pair % 2 {
            0 => [Side::First, Side::Second],
            _ => [Side::Second, Side::First],
        };
        for side in order {
            let took = turn(side, executions)?;
            match side {
                Side::First => firsts.push(took),
                Side::Second => seconds.push(took),
            }
        }
    }
    let ratios = firsts.iter().zip(&seconds).map(|(first, second)| first / second).collect();
    let differences = firsts.iter().zip(&seconds).map(|(first, second)| first - second).collect();
    let nothing = || HarnessError::peer("no pairs");
    Ok(Measured {
        ratio: Interval::of(ratios).ok_or_else(nothing)?,
        difference_ns: Interval::of(differences).ok_or_else(nothing)?,
        pairs: firsts.len(),
        first_ns: median(firsts).ok_or_else(nothing)?,
        second_ns: median(seconds).ok_or_else(nothing)?,
        executions,
    })
}

fn executions_of_a_turn(quickest_ns: f64) -> u32 {
    let turn = TURN.as_secs_f64() * 1e9;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and the most"
    )]
    let executions = (turn / quickest_ns.max(1.0)).ceil().clamp(1.0, f64::from(TURN_MAX)) as u32;
    executions
}
