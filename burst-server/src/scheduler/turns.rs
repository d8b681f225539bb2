//! Tokens and claims together: every step that a run takes, none of which blocks.
//!
//! Where a token is free and nobody waits, a step is one read-modify-write. Otherwise it is taken under
//! the lock of the claims.

use std::sync::{Arc, Mutex, MutexGuard};

use super::beside::Beside;
use super::claims::{Claimant, Claims};
use super::meter::TurnMeter;
use super::tokens::Tokens;
use crate::panics::lock;

/// So long after the last run waited it is forgotten who had computed how much. Short pauses between
/// requests change nobody's share; an old debt or credit is nobody's.
const FORGET_AFTER_NS: u64 = 100_000_000;

/// Since when a run computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// When it got its token, on the clock of the caller; `None` where nobody waited then.
    pub(super) since: Option<u64>,
    /// Until when its time is charged already.
    pub(super) charged: u64,
    /// It has no token, but computes beside those that do not give way.
    pub(super) is_beside: bool,
}

/// A run that waited and may compute.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Granted<T> {
    pub(super) run: T,
    /// As [`Slice::is_beside`].
    pub(super) is_beside: bool,
}

/// What comes of asking for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It has one.
    Token,
    /// It has none and may compute: tokens are stuck.
    Beside,
    /// It waits. Where there is a time nobody looks after those that wait so far: the caller has
    /// [`Turns::watch`] called then.
    Waits { watch_at: Option<u64> },
}

/// What a run that computes is told between two steps.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict<T> {
    /// It goes on.
    GoOn(Slice),
    /// It waits itself now; this run, where there is one, may compute in its place.
    Waits(Option<Granted<T>>),
}

/// What came of a look at those that wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Watched<T> {
    /// These compute beside those that do not give way.
    pub(super) granted: Vec<T>,
    /// When to look again; `None` where nobody has waited since the last look: whoever waits next says it.
    pub(super) again_at: Option<u64>,
}

/// The state of a scheduler. Times are nanoseconds of one clock, which the caller reads.
#[derive(Debug)]
pub(super) struct Turns<T> {
    tokens: Tokens,
    /// How long whoever's turn it is waits for a token that does not move; `u64::MAX` for as long as that
    /// takes.
    patience_ns: u64,
    queue: Mutex<Queue<T>>,
}

#[derive(Debug)]
struct Queue<T> {
    claims: Claims<T>,
    /// Since when somebody waits, where somebody does.
    contended_since: u64,
    /// When somebody waited last.
    quiet_since: u64,
    /// When a token moved last: since somebody waits, whoever has one gave it back, or asked whether it is
    /// its turn.
    moved: u64,
    /// No token has moved for as long as the patience of those that wait.
    is_stuck: bool,
    /// Those that compute without one.
    beside: Beside,
    meter: Arc<TurnMeter>,
    /// Somebody looks after those that wait ([`Turns::watch`]).
    is_watched: bool,
    /// Somebody has waited since the last look.
    has_waited: bool,
}

impl<T: PartialEq> Turns<T> {
    /// `patience_ns`: how long whoever's turn it is waits for a token that does not move; `None` for as
    /// long as that takes.
    pub(super) fn new(tokens: u32, patience_ns: Option<u64>, meter: Arc<TurnMeter>) -> Self {
        let queue = Queue {
            claims: Claims::new(),
            contended_since: 0,
            quiet_since: 0,
            moved: 0,
            is_stuck: false,
            beside: Beside::new(Arc::clone(&meter)),
            meter,
            is_watched: false,
            has_waited: false,
        };
        let patience_ns = patience_ns.unwrap_or(u64::MAX);
        Turns { tokens: Tokens::new(tokens), patience_ns, queue: Mutex::new(queue) }
    }

    /// Whether a run that computes has to [give way](Turns::give_way) or go on.
    #[inline]
    pub(super) fn are_wanted(&self) -> bool {
        self.tokens.are_wanted()
    }

    /// Takes a token if one is free and nobody waits.
    #[inline]
    pub(super) fn try_take(&self) -> bool {
        self.tokens.try_take()
    }

    /// Gives a token back if nobody waits. Not for a run that has none.
    #[inline]
    pub(super) fn try_give_back(&self) -> bool {
        self.tokens.try_give_back()
    }

    /// Takes a token, or begins to wait for one.
    pub(super) fn take_or_wait(&self, of: Claimant, run: T, now: u64) -> Asked {
        let mut queue = self.queue();
        // Of those that wait already none may: they would have been the first to.
        if queue.is_stuck && queue.beside.may(of.user) {
            queue.beside.begin(of.user);
            return Asked::Beside;
        }
        if self.tokens.take_or_wait() {
            return Asked::Token;
        }
        if queue.claims.waiting() == 0 {
            if now.saturating_sub(queue.quiet_since) > FORGET_AFTER_NS {
                queue.claims.forget();
            }
            (queue.contended_since, queue.moved) = (now, now);
        }
        queue.join(of, run);
        let is_first = self.patience_ns != u64::MAX && !queue.is_watched;
        queue.is_watched |= is_first;
        Asked::Waits { watch_at: is_first.then(|| now.saturating_add(self.patience_ns)) }
    }

    /// Ends a run although somebody waits, or did just now; gives the run that computes in its place.
    pub(super) fn give_back(&self, of: Claimant, slice: Slice, now: u64) -> Option<Granted<T>> {
        let mut queue = self.queue();
        queue.charge(of, slice, now);
        if slice.is_beside {
            queue.beside.end(of.user);
            return self.next_beside(&mut queue, now);
        }
        self.note_moved(&mut queue, now);
        let next = queue.next(now);
        match next {
            Some(_) => self.tokens.one_waits_no_more(),
            None => self.tokens.give_back(),
        }
        next.map(|run| Granted { run, is_beside: false })
    }

    /// Lets another run compute where it is somebody else's turn; `run` then waits for a token.
    pub(super) fn give_way(&self, of: Claimant, run: T, slice: Slice, now: u64) -> Verdict<T> {
        let mut queue = self.queue();
        let slice = queue.charge(of, slice, now);
        if !slice.is_beside {
            self.note_moved(&mut queue, now);
        }
        let since = slice.since.unwrap_or(queue.contended_since);
        if !queue.claims.is_due(of, now.saturating_sub(since)) {
            return Verdict::GoOn(slice);
        }
        queue.join(of, run);
        if slice.is_beside {
            self.tokens.one_waits_more();
            queue.beside.end(of.user);
            return Verdict::Waits(self.next_beside(&mut queue, now));
        }
        // One more waits and one fewer: the word of the tokens stays as it is.
        match queue.next(now) {
            Some(run) => Verdict::Waits(Some(Granted { run, is_beside: false })),
            None => Verdict::GoOn(slice), // cannot be: `run` waits
        }
    }

    /// Looks whether a token has moved lately. Where none has those whose turn it is compute without one, as
    /// many as may; and so does whoever comes, until one moves again.
    pub(super) fn watch(&self, now: u64) -> Watched<T> {
        let mut queue = self.queue();
        let mut granted = Vec::new();
        let patience_ends = queue.moved.saturating_add(self.patience_ns);
        if queue.claims.waiting() > 0 && !queue.is_stuck && now >= patience_ends {
            queue.is_stuck = true;
            self.tokens.set_stuck(true);
            while let Some(next) = self.next_beside(&mut queue, now) {
                granted.push(next.run);
            }
        }
        let waits = queue.claims.waiting() > 0;
        queue.is_watched = waits || queue.has_waited;
        queue.has_waited = false;
        let again_at = match waits && !queue.is_stuck {
            true => patience_ends,
            false => now.saturating_add(self.patience_ns),
        };
        Watched { granted, again_at: queue.is_watched.then_some(again_at) }
    }

    /// Nobody can look after those that wait: whoever waits next tries again.
    pub(super) fn note_unwatched(&self) {
        self.queue().is_watched = false;
    }

    /// Ends the waiting of a run; false where it has been granted what it waits for already.
    pub(super) fn leave(&self, of: Claimant, run: &T, now: u64) -> bool {
        let mut queue = self.queue();
        let left = queue.claims.leave(of, run);
        if left {
            self.tokens.one_waits_no_more();
            queue.note_fewer(now);
        }
        left
    }

    /// Calls `see` with every run that waits, under the lock.
    pub(super) fn for_each_waiting(&self, see: impl FnMut(&T)) {
        self.queue().claims.iter().for_each(see);
    }

    /// Whoever has a token comes by: tokens are not stuck.
    fn note_moved(&self, queue: &mut Queue<T>, now: u64) {
        queue.moved = now;
        if queue.is_stuck {
            queue.is_stuck = false;
            self.tokens.set_stuck(false);
        }
    }

    /// The run that may compute without a token next, where tokens are stuck.
    fn next_beside(&self, queue: &mut Queue<T>, now: u64) -> Option<Granted<T>> {
        let Queue { claims, beside, is_stuck, .. } = queue;
        let (user, run) = claims.next_of(|user| *is_stuck && beside.may(user))?;
        beside.begin(user);
        self.tokens.one_waits_no_more();
        queue.note_fewer(now);
        Some(Granted { run, is_beside: true })
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (u64, u64) {
        let queue = self.queue();
        let (free, waiting) = self.tokens.counts();
        assert_eq!(waiting, queue.claims.waiting() as u64, "who waits is counted");
        assert_eq!(waiting, queue.meter.waiting());
        assert_eq!(queue.claims.iter().count(), queue.claims.waiting());
        (free, waiting)
    }

    #[cfg(test)]
    pub(super) fn beside(&self) -> usize {
        self.queue().beside.count()
    }

    /// Whether somebody waits who may compute beside those that have a token.
    #[cfg(test)]
    pub(super) fn keeps_a_place_beside(&self) -> bool {
        let Queue { claims, beside, is_stuck, .. } = &*self.queue();
        *is_stuck && claims.waits_any_of(|user| beside.may(user))
    }

    /// Since when somebody waits for tokens none of which has moved, where they are not called stuck.
    #[cfg(test)]
    pub(super) fn waits_without_a_move_since(&self) -> Option<u64> {
        let queue = self.queue();
        (queue.claims.waiting() > 0 && !queue.is_stuck).then_some(queue.moved)
    }

    /// How long was computed for a user while somebody waited, by what it was charged.
    #[cfg(test)]
    pub(super) fn computed(&self, user: u32) -> u64 {
        self.queue().claims.computed(user)
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

    fn join(&mut self, of: Claimant, run: T) {
        self.claims.join(of, run);
        self.meter.note_waiting(self.claims.waiting());
        self.has_waited = true;
    }

    fn next(&mut self, now: u64) -> Option<T> {
        let next = self.claims.next();
        self.note_fewer(now);
        next
    }

    /// One fewer waits.
    fn note_fewer(&mut self, now: u64) {
        self.meter.note_waiting(self.claims.waiting());
        if self.claims.waiting() == 0 {
            self.quiet_since = now;
        }
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
