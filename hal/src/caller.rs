//! For whom a device works: who can call the work off, who pays for its memory, whose turn it is, whose
//! user it is, and who wants to see what takes how long.

use std::fmt;
use std::sync::Arc;

use crate::trace::{SpanSink, Tracer};
use crate::{CancelWord, Failure};

/// What a caller lends to a device for a piece of work. The default is a caller that never cancels, in a
/// process of its own: it pays for everything, and nobody else waits for the processor.
///
/// Copies share the cancel word, the account, the turn and the tracer.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    cancel: CancelWord,
    account: Option<Arc<dyn MemoryAccount>>,
    turn: Option<Arc<dyn Turn>>,
    user: Option<u32>,
    tracer: Option<Tracer>,
}

/// Pays for memory that a device holds for a caller: packed weights, constants that it computed,
/// working memory.
pub trait MemoryAccount: fmt::Debug + Send + Sync {
    /// Takes these bytes from the account, before the device allocates them.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED_TRANSIENT where they would fit once other memory is given back,
    /// RESOURCE_EXHAUSTED_PERSISTENT where they never will. The cause names the limit.
    fn charge(&self, bytes: u64) -> Result<(), Failure>;

    /// Takes bytes back that were charged.
    fn give_back(&self, bytes: u64);

    /// The account that pays in the end, where this one only keeps apart what a part of the work takes
    /// from there; `None` where it pays itself.
    fn payer(&self) -> Option<Arc<dyn MemoryAccount>> {
        None
    }
}

/// The right of one execution, or of one preparation, to compute: callers take turns.
pub trait Turn: fmt::Debug + Send + Sync {
    /// Lets others go first where it is their turn, and returns once it is this caller's again.
    ///
    /// A device calls it between steps, and within long ones every few milliseconds, while it holds no
    /// lock; from any thread, but only on the one that it was called on to execute does this wait. Where
    /// nobody waits it costs a load. A caller that was cancelled gets it back at once.
    fn give_way(&self);

    /// Does what may wait for somebody else, such as for a file on a file system that answers when its
    /// owner likes: others compute meanwhile. Whoever brings a turn that others wait for implements it.
    fn step_aside(&self, may_wait: &mut dyn FnMut()) {
        may_wait();
    }
}

/// Bytes that were charged to an account; they are given back when this is dropped.
#[derive(Debug, Default)]
#[must_use]
pub struct MemoryCharge {
    account: Option<Arc<dyn MemoryAccount>>,
    bytes: u64,
}

impl Caller {
    /// A caller that calls its work off by this word.
    #[must_use]
    pub fn new(cancel: &CancelWord) -> Self {
        Caller { cancel: cancel.clone(), ..Caller::default() }
    }

    /// This account pays for what the device holds.
    #[must_use]
    pub fn with_account(mut self, account: Arc<dyn MemoryAccount>) -> Self {
        self.account = Some(account);
        self
    }

    /// The work takes turns with others.
    #[must_use]
    pub fn with_turn(mut self, turn: Arc<dyn Turn>) -> Self {
        self.turn = Some(turn);
        self
    }

    /// The work is for this user: what a device keeps for one of them in files, it takes back for no other.
    #[must_use]
    pub fn with_user(mut self, user: u32) -> Self {
        self.user = Some(user);
        self
    }

    /// Spans of the work go there while that is [on](SpanSink::is_on).
    #[must_use]
    pub fn with_tracer(mut self, tracer: Tracer) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// The same caller for work of which no spans are wanted.
    #[must_use]
    pub fn untraced(&self) -> Self {
        Caller { tracer: None, ..self.clone() }
    }

    /// Where the spans of a piece of work that begins now go; `None` where nobody wants them.
    #[must_use]
    pub fn tracing(&self) -> Option<&dyn SpanSink> {
        self.tracer.as_deref().filter(|tracer| tracer.is_on())
    }

    /// The user whom the work is for; `None` for that of the device's own process.
    #[must_use]
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// The word by which the work is called off.
    #[must_use]
    pub fn cancel_word(&self) -> &CancelWord {
        &self.cancel
    }

    /// Whether nobody wants the result any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// As [`Turn::give_way`]; nothing where the caller takes no turns.
    pub fn give_way(&self) {
        if let Some(turn) = &self.turn {
            turn.give_way();
        }
    }

    /// As [`Turn::step_aside`]; where the caller takes no turns, it is just done.
    pub fn step_aside(&self, may_wait: &mut dyn FnMut()) {
        match &self.turn {
            Some(turn) => turn.step_aside(may_wait),
            None => may_wait(),
        }
    }

    /// An empty charge to the caller's account, where it has one.
    pub fn empty_charge(&self) -> MemoryCharge {
        MemoryCharge { account: self.account.clone(), bytes: 0 }
    }

    /// Charges memory to the caller's account, where it has one.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED_*, as [`MemoryAccount::charge`].
    pub fn charge(&self, bytes: u64) -> Result<MemoryCharge, Failure> {
        let mut charge = self.empty_charge();
        charge.grow(bytes)?;
        Ok(charge)
    }
}

impl MemoryCharge {
    /// Charges more to the same account.
    ///
    /// # Errors
    /// As [`Caller::charge`]; what was charged before stays so.
    pub fn grow(&mut self, bytes: u64) -> Result<(), Failure> {
        if let Some(account) = self.account.as_ref().filter(|_| bytes > 0) {
            account.charge(bytes)?;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }

    /// Gives part of it back early: at most what was charged.
    pub fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        if let Some(account) = self.account.as_ref().filter(|_| bytes > 0) {
            account.give_back(bytes);
        }
    }

    /// Makes it so much: charges what is missing, or gives back the rest.
    ///
    /// # Errors
    /// As [`MemoryCharge::grow`].
    pub fn settle(&mut self, bytes: u64) -> Result<(), Failure> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.bytes - bytes);
                Ok(())
            }
        }
    }

    /// An empty charge to the same account.
    pub fn same_account(&self) -> MemoryCharge {
        MemoryCharge { account: self.account.clone(), bytes: 0 }
    }

    /// Moves all that is charged to a new charge and leaves this one empty.
    pub fn take(&mut self) -> MemoryCharge {
        MemoryCharge { account: self.account.clone(), bytes: std::mem::take(&mut self.bytes) }
    }

    /// Whether both are paid for by the same account, in the end. Two that nobody pays for are.
    #[must_use]
    pub fn shares_account(&self, other: &MemoryCharge) -> bool {
        let address = |charge: &MemoryCharge| {
            let account = charge.account.as_ref()?;
            let payer = account.payer().unwrap_or_else(|| Arc::clone(account));
            // Both charges keep theirs: no two of them lie at one address.
            Some(Arc::as_ptr(&payer).cast::<()>())
        };
        address(self) == address(other)
    }

    /// How much is charged.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::ErrorStatus;

    const LIMIT: u64 = 100;

    #[derive(Debug, Default)]
    struct Purse(AtomicU64);

    impl MemoryAccount for Purse {
        fn charge(&self, bytes: u64) -> Result<(), Failure> {
            if self.0.load(Ordering::Relaxed) + bytes > LIMIT {
                return Err(Failure::new(
                    ErrorStatus::ResourceExhaustedTransient,
                    "the purse is empty",
                ));
            }
            self.0.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }

        fn give_back(&self, bytes: u64) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_charge_is_given_back_whole_when_dropped_also_after_it_grew_in_vain() {
        let purse = Arc::new(Purse::default());
        let caller = Caller::default().with_account(Arc::clone(&purse) as _);
        let mut charge = caller.charge(60).unwrap();
        let refused = charge.grow(50).unwrap_err();
        assert_eq!(refused.status, ErrorStatus::ResourceExhaustedTransient);
        assert!(caller.charge(50).is_err());
        charge.grow(30).unwrap();
        charge.shrink(20);
        assert_eq!((charge.bytes(), purse.0.load(Ordering::Relaxed)), (70, 70));
        for (wanted, is_paid, held) in [(100, true, 100), (101, false, 100), (5, true, 5)] {
            assert_eq!(charge.settle(wanted).is_ok(), is_paid);
            assert_eq!((charge.bytes(), purse.0.load(Ordering::Relaxed)), (held, held));
        }
        drop(charge);
        assert_eq!(purse.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn charges_to_one_account_are_given_back_one_by_one() {
        let purse = Arc::new(Purse::default());
        let mut first = Caller::default().with_account(Arc::clone(&purse) as _).charge(40).unwrap();
        let mut second = first.same_account();
        assert_eq!(second.bytes(), 0);
        second.grow(30).unwrap();
        let moved = first.take();
        assert_eq!((first.bytes(), moved.bytes(), second.bytes()), (0, 40, 30));
        assert!(moved.shares_account(&second) && !moved.shares_account(&MemoryCharge::default()));
        let other = Caller::default().with_account(Arc::new(Purse::default())).empty_charge();
        assert!(!moved.shares_account(&other));
        drop(first);
        assert_eq!(purse.0.load(Ordering::Relaxed), 70);
        drop(moved);
        assert_eq!(purse.0.load(Ordering::Relaxed), 30);
        drop(second);
        assert_eq!(purse.0.load(Ordering::Relaxed), 0);
    }

    /// Keeps nothing apart, and pays with another account.
    #[derive(Debug)]
    struct Part(Arc<Purse>);

    impl MemoryAccount for Part {
        fn charge(&self, bytes: u64) -> Result<(), Failure> {
            self.0.charge(bytes)
        }

        fn give_back(&self, bytes: u64) {
            self.0.give_back(bytes);
        }

        fn payer(&self) -> Option<Arc<dyn MemoryAccount>> {
            Some(Arc::clone(&self.0) as _)
        }
    }

    #[test]
    fn accounts_that_one_account_pays_for_are_the_same() {
        let purses = [(); 2].map(|()| Arc::new(Purse::default()));
        let charge = |account: Arc<dyn MemoryAccount>| {
            Caller::default().with_account(account).empty_charge()
        };
        let part = |purse: usize| charge(Arc::new(Part(Arc::clone(&purses[purse]))));
        assert!(part(0).shares_account(&part(0)));
        assert!(part(0).shares_account(&charge(Arc::clone(&purses[0]) as _)));
        assert!(!part(0).shares_account(&part(1)));
        assert!(!part(0).shares_account(&MemoryCharge::default()));
    }

    #[test]
    fn who_has_no_account_is_charged_nothing() {
        assert_eq!(Caller::default().charge(u64::MAX).unwrap().bytes(), u64::MAX);
    }

    #[test]
    fn copies_are_cancelled_together() {
        let word = CancelWord::default();
        let (one, other) = (Caller::new(&word), Caller::new(&word).clone());
        assert!(!one.is_cancelled() && !other.is_cancelled());
        one.cancel_word().cancel();
        assert!(other.is_cancelled());
    }
}
