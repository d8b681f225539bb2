//! What a preparation may take: time until its caller no longer wants it, memory that the caller
//! pays for, and what an earlier preparation has kept.

use std::cell::RefCell;

use burst_hal::{Caller, MemoryCharge, Model, TimePoint};
use burst_shm::FreeHugePages;

use crate::OpError;
use crate::aligned::AlignedBytes;
use crate::kept::Kept;
use crate::stop::Stop;
use crate::weight_room::{Packed, WeightPages, WeightRoom};

/// The budget of one preparation, or of one survey.
///
/// Whoever makes something that the plan keeps charges it here before allocating it, working memory
/// included. The planner takes what was charged for each step, and keeps as much of
/// it as the step holds in the end.
#[derive(Debug, Default)]
pub struct Budget<'a> {
    stop: Stop<'a>,
    charge: RefCell<MemoryCharge>,
    kept: Kept,
    room: RefCell<WeightRoom>,
}

impl<'a> Budget<'a> {
    /// Work for this caller, until the deadline.
    #[must_use]
    pub fn new(caller: &'a Caller, deadline: Option<TimePoint>) -> Self {
        let stop = Stop { caller: Some(caller), deadline, loop_deadline: None };
        Budget { stop, charge: RefCell::new(caller.empty_charge()), ..Budget::default() }
    }

    /// What an execution packs for itself, and lets go when it ends.
    pub(crate) fn of_execution(stop: Stop<'a>, charge: MemoryCharge) -> Self {
        Budget { stop, charge: RefCell::new(charge), ..Budget::default() }
    }

    /// From here on lists of packed weights lie in room for those of this model, which is legal. Those of 8 bits have
    /// `byte_weight` bytes each.
    pub(crate) fn make_room_for(&self, model: &Model, byte_weight: usize, free: &FreeHugePages) {
        let room = WeightRoom::for_model(model, byte_weight, self.same_account(), || free.ready());
        *self.room.borrow_mut() = room;
    }

    /// With what an earlier preparation has kept, or with where to keep it.
    pub(crate) fn with_kept(self, kept: Kept) -> Self {
        Budget { kept, ..self }
    }

    /// What an earlier preparation has kept.
    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// What is left of that, or has been recorded.
    pub(crate) fn into_kept(self) -> Kept {
        self.kept
    }

    /// When to give up.
    #[must_use]
    pub fn stop(&self) -> Stop<'a> {
        self.stop
    }

    /// Charges memory that is about to be allocated.
    ///
    /// # Errors
    /// [`OpError::Refused`] with what the account said.
    pub fn charge(&self, bytes: usize) -> Result<(), OpError> {
        self.charge.borrow_mut().grow(bytes as u64).map_err(OpError::refused)
    }

    /// A list for so many packed weights, which are charged.
    ///
    /// # Errors
    /// [`OpError::Refused`] with what the account said; `too_large` where the system has no such memory.
    pub(crate) fn list<T>(&self, len: usize, too_large: OpError) -> Result<Packed<T>, OpError> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(too_large.clone())?;
        let room = self.room.borrow();
        room.make_way(bytes);
        self.charge(bytes)?;
        room.list(len, too_large)
    }

    /// The pages on which lists lie: to be kept for as long as they do.
    pub(crate) fn finish_room(&self) -> WeightPages {
        self.room.borrow().finish()
    }

    /// A copy of these bytes, which its account pays for.
    ///
    /// # Errors
    /// [`OpError::Refused`] with what the account said; that the work is no longer wanted.
    pub(crate) fn copy_of(&self, bytes: &[u8]) -> Result<AlignedBytes, OpError> {
        AlignedBytes::copied(bytes.len(), self.same_account(), self.stop, |at, part| {
            part.copy_from_slice(&bytes[at..][..part.len()]);
            Ok(())
        })
    }

    /// What was charged since this was last called.
    pub(crate) fn take_charge(&self) -> MemoryCharge {
        self.charge.borrow_mut().take()
    }

    /// An empty charge to the same account, for memory that is charged by its owner.
    pub(crate) fn same_account(&self) -> MemoryCharge {
        self.charge.borrow().same_account()
    }
}

/// Makes a charge that was estimated the one that is held.
///
/// # Errors
/// [`OpError::Refused`] where more is held than was charged, and the account does not suffice.
pub(crate) fn settle(charge: &mut MemoryCharge, held: usize) -> Result<(), OpError> {
    charge.settle(held as u64).map_err(OpError::refused)
}
