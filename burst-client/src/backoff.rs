//! Pauses between attempts: longer and longer, never in step with others, and not for ever.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use fmq::{Deadline, clock};

use crate::ClientError;
use crate::waiting::Patience;

/// No pause is shorter than this, whatever was asked for.
const SHORTEST: Duration = Duration::from_micros(100);

/// How long to wait between attempts, and when to stop trying.
///
/// The pause doubles from `first` to `longest`; each is shortened by up to a half at random, so
/// that clients that were turned away together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Before the second attempt.
    pub first: Duration,
    /// No pause is longer.
    pub longest: Duration,
    /// No attempt begins later than this after the first one.
    pub total: Duration,
}

impl Backoff {
    /// For a service that is short of something for a moment: 1 to 50 ms, for a second.
    pub const BUSY: Backoff = Backoff {
        first: Duration::from_millis(1),
        longest: Duration::from_millis(50),
        total: Duration::from_secs(1),
    };

    /// For a service that somebody starts again: 5 to 250 ms, for 30 s.
    pub const RESTART: Backoff = Backoff {
        first: Duration::from_millis(5),
        longest: Duration::from_millis(250),
        total: Duration::from_secs(30),
    };

    /// Tries until `attempt` succeeds or fails with an error that `may_pass` says no to, or the
    /// time is over, or the deadline has passed. Gives the value and the number of attempts.
    ///
    /// # Errors
    /// The last one of `attempt`; [`ClientError::Cancelled`].
    pub(crate) fn run<'a, T>(
        &self,
        patience: impl Into<Patience<'a>>,
        mut may_pass: impl FnMut(&ClientError) -> bool,
        mut attempt: impl FnMut() -> Result<T, ClientError>,
    ) -> Result<(T, u32), ClientError> {
        let patience = patience.into();
        let mut pauses = self.pauses(clock::now_ns(), patience.until());
        for count in 1_u32.. {
            let error = match attempt() {
                Ok(value) => return Ok((value, count)),
                Err(error) => error,
            };
            match pauses.next(clock::now_ns()).filter(|_| may_pass(&error)) {
                Some(pause) => patience.pause(pause)?,
                None => return Err(error),
            }
            tracing::debug!(%error, count, "trying again");
        }
        Err(ClientError::Timeout) // 2^32 attempts: nobody gets here
    }

    /// The pauses of one series of attempts that begins now and ends with the deadline.
    pub(crate) fn pauses(&self, now_ns: u64, deadline: Deadline) -> Pauses {
        let total = u64::try_from(self.total.as_nanos()).unwrap_or(u64::MAX);
        let until = now_ns.saturating_add(total);
        Pauses {
            next: self.first.max(SHORTEST),
            longest: self.longest.max(SHORTEST),
            until_ns: deadline.as_ns().map_or(until, |at| at.min(until)),
            // Hashing nothing with a fresh key: as random as the standard library can be.
            random: RandomState::new().hash_one(()),
        }
    }
}

/// What is left of a series.
#[derive(Debug)]
pub(crate) struct Pauses {
    next: Duration,
    longest: Duration,
    until_ns: u64,
    random: u64,
}

impl Pauses {
    /// The pause before the next attempt; `None` when there is to be none.
    pub(crate) fn next(&mut self, now_ns: u64) -> Option<Duration> {
        let left = Duration::from_nanos(self.until_ns.saturating_sub(now_ns));
        if left.is_zero() {
            return None;
        }
        let full = self.next.min(self.longest);
        self.next = full.saturating_mul(2);
        // The last attempt is made just before the end, not after it.
        Some((full - full.mul_f64(0.5 * self.fraction())).min(left))
    }

    /// 0 to 1, another one each time (xorshift64*; any distribution will do).
    fn fraction(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let bits = self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        u32::try_from(bits).map_or(0.5, |bits| f64::from(bits) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn backoff() -> Backoff {
        Backoff {
            first: Duration::from_millis(10),
            longest: Duration::from_millis(40),
            total: Duration::from_millis(1000),
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_are_shortened_by_half_at_most() {
        for _ in 0..100 {
            let mut pauses = backoff().pauses(0, Deadline::never());
            for full in [10, 20, 40, 40, 40] {
                let pause = pauses.next(0).unwrap();
                let full = Duration::from_millis(full);
                assert!(pause <= full && pause >= full / 2, "{pause:?} of {full:?}");
            }
        }
    }

    #[test]
    fn two_series_are_not_in_step() {
        let series = || {
            let mut pauses = backoff().pauses(0, Deadline::never());
            [(); 8].map(|()| pauses.next(0))
        };
        assert_ne!(series(), series());
    }

    #[test]
    fn a_series_ends_with_its_time_or_the_deadline_whichever_comes_first() {
        let mut pauses = backoff().pauses(5 * MS, Deadline::never());
        assert_eq!(pauses.next(1_004 * MS), Some(Duration::from_millis(1)), "the last attempt");
        assert_eq!(pauses.next(1_005 * MS), None);
        let mut pauses = backoff().pauses(5 * MS, Deadline::at_ns(8 * MS));
        assert_eq!(pauses.next(5 * MS), Some(Duration::from_millis(3)));
        assert_eq!(pauses.next(8 * MS), None);
    }

    #[test]
    fn an_error_that_stays_is_not_tried_again() {
        let series = Backoff { total: Duration::from_secs(60), ..backoff() };
        let mut calls = 0;
        let transient = |error: &ClientError| matches!(error, ClientError::TooManyClients { .. });
        let outcome: Result<((), u32), _> = series.run(Deadline::never(), transient, || {
            calls += 1;
            Err(if calls < 3 {
                ClientError::TooManyClients { detail: "".into() }
            } else {
                ClientError::NotPermitted
            })
        });
        assert!(matches!(outcome, Err(ClientError::NotPermitted)));
        let fine = series.run(Deadline::never(), transient, || Ok(7));
        assert_eq!((calls, fine.unwrap()), (3, (7, 1)));
    }
}
