//! Tokens and claims together: every step that a run takes, none of which blocks.
//!
//! Where a token is free and nobody waits, a step is one read-modify-write. Otherwise it is taken under
//! the lock of the claims.

use std::sync::{Mutex, MutexGuard};

use super::claims::{Claimant, Claims};
use super::tokens::Tokens;
use crate::panics::lock;

/// So long after the last run waited it is forgotten who had computed how much. Short pauses between
/// requests change nobody's share; an old debt or credit is nobody's.
const FORGET_AFTER_NS: u64 = 100_000_000;

/// Since when a run computes with its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// When it got its token, on the clock of the caller; `None` where nobody waited then.
    pub(super) since: Option<u64>,
    /// Until when its time is charged already.
    pub(super) charged: u64,
}

/// What a run with a token is told between two steps.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict<T> {
    /// It goes on.
    GoOn(Slice),
    /// Its token was handed to this run, and it waits itself now.
    HandedTo(T),
}

/// The state of a scheduler. Times are nanoseconds of one clock, which the caller reads.
#[derive(Debug)]
pub(super) struct Turns<T> {
    tokens: Tokens,
    queue: Mutex<Queue<T>>,
}

#[derive(Debug)]
struct Queue<T> {
    claims: Claims<T>,
    /// Since when somebody waits, where somebody does.
    contended_since: u64,
    /// When somebody waited last.
    quiet_since: u64,
}

impl<T: PartialEq> Turns<T> {
    pub(super) fn new(tokens: u32) -> Self {
        let queue = Queue { claims: Claims::new(), contended_since: 0, quiet_since: 0 };
        Turns { tokens: Tokens::new(tokens), queue: Mutex::new(queue) }
    }

    #[inline]
    pub(super) fn anyone_waits(&self) -> bool {
        self.tokens.anyone_waits()
    }

    /// Takes a token if one is free and nobody waits.
    #[inline]
    pub(super) fn try_take(&self) -> bool {
        self.tokens.try_take()
    }

    /// Gives a token back if nobody waits.
    #[inline]
    pub(super) fn try_give_back(&self) -> bool {
        self.tokens.try_give_back()
    }

    /// Takes a token (true), or begins to wait for one.
    pub(super) fn take_or_wait(&self, of: Claimant, run: T, now: u64) -> bool {
        let mut queue = self.queue();
        if self.tokens.take_or_wait() {
            return true;
        }
        if queue.claims.waiting() == 0 {
            if now.saturating_sub(queue.quiet_since) > FORGET_AFTER_NS {
                queue.claims.forget();
            }
            queue.contended_since = now;
        }
        queue.claims.join(of, run);
        false
    }

    /// Gives a token back although somebody waits, or did just now; gives the run that has it now.
    pub(super) fn give_back(&self, of: Claimant, slice: Slice, now: u64) -> Option<T> {
        let mut queue = self.queue();
        queue.charge(of, slice, now);
        let next = queue.next(now);
        match next {
            Some(_) => self.tokens.one_waits_no_more(),
            None => self.tokens.give_back(),
        }
        next
    }

    /// Hands a token over where it is somebody else's turn; `run` then waits for one.
    pub(super) fn give_way(&self, of: Claimant, run: T, slice: Slice, now: u64) -> Verdict<T> {
        let mut queue = self.queue();
        let slice = queue.charge(of, slice, now);
        let since = slice.since.unwrap_or(queue.contended_since);
        if !queue.claims.is_due(of, now.saturating_sub(since)) {
            return Verdict::GoOn(slice);
        }
        // One more waits and one fewer: the word of the tokens stays as it is.
        queue.claims.join(of, run);
        match queue.next(now) {
            Some(next) => Verdict::HandedTo(next),
            None => Verdict::GoOn(slice), // cannot be: `run` waits
        }
    }

    /// Ends the waiting of a run without a token; false where it has been given one already.
    pub(super) fn leave(&self, of: Claimant, run: &T, now: u64) -> bool {
        let mut queue = self.queue();
        let left = queue.claims.leave(of, run);
        if left {
            self.tokens.one_waits_no_more();
            queue.note_quiet(now);
        }
        left
    }

    /// Calls `see` with every run that waits, under the lock.
    pub(super) fn for_each_waiting(&self, see: impl FnMut(&T)) {
        self.queue().claims.iter().for_each(see);
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (u64, u64) {
        let queue = self.queue();
        let (free, waiting) = self.tokens.counts();
        assert_eq!(waiting, queue.claims.waiting() as u64, "who waits is counted");
        assert_eq!(queue.claims.iter().count(), queue.claims.waiting());
        (free, waiting)
    }

    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        lock(&self.queue)
    }
}

impl<T: PartialEq> Queue<T> {
    /// Charges the time of a slice in which somebody waited and that was not charged yet.
    fn charge(&mut self, of: Claimant, slice: Slice, now: u64) -> Slice {
        if self.claims.waiting() > 0 {
            let from = slice.charged.max(self.contended_since);
            self.claims.charge(of, now.saturating_sub(from));
        }
        Slice { charged: now, ..slice }
    }

    fn next(&mut self, now: u64) -> Option<T> {
        let next = self.claims.next();
        self.note_quiet(now);
        next
    }

    fn note_quiet(&mut self, now: u64) {
        if self.claims.waiting() == 0 {
            self.quiet_since = now;
        }
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
