//! The run tokens that nobody holds, how many runs wait for one, and whether tokens move, in one word.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

const ONE_FREE: u64 = 1;
/// Nobody who has a token has given way for longer than anybody is to wait.
const STUCK: u64 = 1 << 31;
const ONE_WAITS: u64 = 1 << 32;
const FREE: u64 = STUCK - 1;

/// While anybody waits no token is free: a token that is given back goes to one that waits. Nor is one
/// while they are stuck, as the first that is given back ends that. Every step is one read-modify-write of
/// the one word, which decides alone whether a token may be taken or given back without a look at the
/// claims.
///
/// Relaxed everywhere: a token protects no memory, and of a single word all threads see one order.
#[derive(Debug)]
pub(super) struct Tokens(CachePadded<AtomicU64>);

impl Tokens {
    pub(super) fn new(tokens: u32) -> Self {
        Tokens(CachePadded::new(AtomicU64::new(tokens.into())))
    }

    /// Whether a run with a token has to look at the claims: a run waits for one, or tokens are stuck.
    #[inline]
    pub(super) fn are_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= STUCK
    }

    /// Takes a token that is free. Where a run waits, none is.
    #[inline]
    pub(super) fn try_take(&self) -> bool {
        self.change(|word| is_free(word).then(|| word - ONE_FREE)).is_ok()
    }

    /// Gives a token back, unless a run waits for it, or is to hear that tokens move again.
    #[inline]
    pub(super) fn try_give_back(&self) -> bool {
        self.change(|word| (word < STUCK).then(|| word + ONE_FREE)).is_ok()
    }

    /// Takes a token (true), or counts one more run that waits. Called under the lock of the claims, as
    /// is everything below: only there does the number of waiting runs change.
    pub(super) fn take_or_wait(&self) -> bool {
        let step = |word| if is_free(word) { word - ONE_FREE } else { word + ONE_WAITS };
        self.change(|word| Some(step(word))).is_ok_and(is_free)
    }

    /// One more run waits, without a look at whether a token is free: none is.
    pub(super) fn one_waits_more(&self) {
        self.0.fetch_add(ONE_WAITS, Ordering::Relaxed);
    }

    /// Whether tokens move, from now on.
    pub(super) fn set_stuck(&self, is_stuck: bool) {
        match is_stuck {
            true => self.0.fetch_or(STUCK, Ordering::Relaxed),
            false => self.0.fetch_and(!STUCK, Ordering::Relaxed),
        };
    }

    /// One run waits no more: it got a token that somebody handed over, or gave up.
    pub(super) fn one_waits_no_more(&self) {
        self.0.fetch_sub(ONE_WAITS, Ordering::Relaxed);
    }

    /// Gives back a token for which no run waits.
    pub(super) fn give_back(&self) {
        self.0.fetch_add(ONE_FREE, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (u64, u64) {
        let word = self.0.load(Ordering::Relaxed);
        (word & FREE, word / ONE_WAITS)
    }

    #[inline]
    fn change(&self, step: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step)
    }
}

fn is_free(word: u64) -> bool {
    word < STUCK && word & FREE > 0
}
