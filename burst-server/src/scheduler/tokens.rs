//! The run tokens that nobody holds, and how many runs wait for one, in one word.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

const ONE_FREE: u64 = 1;
const ONE_WAITS: u64 = 1 << 32;
const FREE: u64 = ONE_WAITS - 1;

/// While anybody waits no token is free: a token that is given back goes to one that waits. Every step
/// is one read-modify-write of the one word, which decides alone whether a token may be taken or given
/// back without a look at the claims.
///
/// Relaxed everywhere: a token protects no memory, and of a single word all threads see one order.
#[derive(Debug)]
pub(super) struct Tokens(CachePadded<AtomicU64>);

impl Tokens {
    pub(super) fn new(tokens: u32) -> Self {
        Tokens(CachePadded::new(AtomicU64::new(tokens.into())))
    }

    /// Whether a run waits for a token.
    #[inline]
    pub(super) fn anyone_waits(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ONE_WAITS
    }

    /// Takes a token that is free. Where a run waits, none is.
    #[inline]
    pub(super) fn try_take(&self) -> bool {
        self.change(|word| is_free(word).then(|| word - ONE_FREE)).is_ok()
    }

    /// Gives a token back, unless a run waits for it.
    #[inline]
    pub(super) fn try_give_back(&self) -> bool {
        self.change(|word| (word < ONE_WAITS).then(|| word + ONE_FREE)).is_ok()
    }

    /// Takes a token (true), or counts one more run that waits. Called under the lock of the claims, as
    /// is everything below: only there does the number of waiting runs change.
    pub(super) fn take_or_wait(&self) -> bool {
        let step = |word| if is_free(word) { word - ONE_FREE } else { word + ONE_WAITS };
        self.change(|word| Some(step(word))).is_ok_and(is_free)
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
    word < ONE_WAITS && word & FREE > 0
}
