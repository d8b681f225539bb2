//! Where packed weights lie: one behind the other on huge pages, where a model has enough of them.
//!
//! A new page of 4 KiB takes the kernel as long as packing it takes us, so that half of a preparation was making
//! pages. On huge pages a model of 16 MiB is prepared in half of the time.

use std::cell::RefCell;

use allocator_api2::vec::Vec as RoomVec;
use burst_hal::{MemoryCharge, Model, OperandLifeTime, OperandType};
use burst_shm::{HUGE_PAGE, PageRoom};

use crate::OpError;

/// A list that lies in such a room.
pub(crate) type Packed<T> = RoomVec<T, PageRoom>;

/// Of the weights of a model at most one part of so many is what its last huge page has too much.
const LEAST_SPARE: usize = 8;

/// Huge pages that are left to others: where there are no more, the kernel would have to move memory together soon.
const LEFT_FREE: usize = 64;

/// Most weights for which there is a room: a model may name the same bytes as often as it likes.
const MAX_WEIGHTS: usize = 4 << 30;

/// The room of one preparation.
#[derive(Debug, Default)]
pub(crate) struct WeightRoom {
    pages: PageRoom,
    /// What the pages take beyond what lies in them, which is charged here. The preparation's account pays.
    spare: RefCell<MemoryCharge>,
}

impl WeightRoom {
    /// Room for the weights of this model, which this account pays for as they come, if an earlier model has left as many huge
    /// pages or as many are `ready`.
    /// Weights of 8 bits are packed with `byte_weight` bytes each.
    pub(crate) fn for_model(
        model: &Model,
        byte_weight: usize,
        spare: MemoryCharge,
        ready: impl FnOnce() -> usize,
    ) -> Self {
        let weights = weight_bytes(model, byte_weight).min(MAX_WEIGHTS);
        let huge = huge_bytes(weights);
        // What packing adds; addresses alone take no memory.
        let len = weights.saturating_add(weights / 4);
        let pages = if huge == 0 {
            PageRoom::default()
        } else if let Some(freed) = PageRoom::reserve_freed(len, huge) {
            freed
        } else if ready() >= huge / HUGE_PAGE + LEFT_FREE {
            PageRoom::reserve(len, huge)
        } else {
            PageRoom::default()
        };
        WeightRoom { pages, spare: RefCell::new(spare) }
    }

    /// Gives back what is charged for the place of so many bytes, which are about to be charged by themselves.
    pub(crate) fn make_way(&self, bytes: usize) {
        let spare = self.pages.spare_after(bytes).map(|spare| spare as u64);
        let mut charge = self.spare.borrow_mut();
        let now = charge.bytes();
        charge.shrink(now.saturating_sub(spare.unwrap_or(now)));
    }

    /// A list with room for so many values. Whoever asks has had them charged, but not the pages they are on: those are charged
    /// here, and where the account does not suffice, the list is one of the heap.
    ///
    /// # Errors
    /// `too_large` where the system has no such memory.
    pub(crate) fn list<T>(&self, len: usize, too_large: OpError) -> Result<Packed<T>, OpError> {
        // As it may begin at the next multiple of its alignment.
        let bytes = len.saturating_mul(size_of::<T>()).saturating_add(align_of::<T>());
        let spare = self.pages.spare_after(bytes);
        let is_paid = spare.is_some_and(|spare| self.charge_spare(spare));
        let heap = PageRoom::default();
        (if is_paid { &self.pages } else { &heap }).list(len).map_err(|_| too_large)
    }

    /// Makes this the charge for pages beyond what lies in them; says whether the account suffices.
    fn charge_spare(&self, bytes: usize) -> bool {
        self.spare.borrow_mut().settle(bytes as u64).is_ok()
    }

    /// Ends the preparation: the pages as they stay for as long as something lies there.
    pub(crate) fn finish(&self) -> WeightPages {
        // Never more than is charged already: a list was charged with the page that it ends on.
        self.charge_spare(self.pages.spare_after(0).unwrap_or(0));
        WeightPages { pages: self.pages.clone(), _spare: self.spare.borrow_mut().take() }
    }
}

/// The pages on which the packed weights of a prepared model lie, if they lie on pages of their own.
#[derive(Debug)]
pub(crate) struct WeightPages {
    pages: PageRoom,
    /// Held, and given back when this is dropped.
    _spare: MemoryCharge,
}

impl WeightPages {
    /// Bytes of these pages, none of which the heap has.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.made_bytes()
    }
}

/// Bytes of the constants of a model as they are packed: floats where they are halves, and so many for one of 8 bits.
fn weight_bytes(model: &Model, byte_weight: usize) -> usize {
    let operands = std::iter::once(&model.main).chain(&model.referenced).flat_map(|g| &g.operands);
    let constants = operands.filter(|operand| {
        matches!(
            operand.lifetime,
            OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference
        )
    });
    let bytes = constants.map(|operand| {
        use OperandType::{
            TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorQuant8SymmPerChannel,
        };
        let factor = match operand.ty {
            TensorFloat16 => 2,
            TensorQuant8Asymm | TensorQuant8AsymmSigned | TensorQuant8SymmPerChannel => byte_weight,
            _ => 1,
        };
        (operand.location.length as usize).saturating_mul(factor)
    });
    bytes.fold(0, usize::saturating_add)
}

/// How much of that is to be on huge pages: all whole ones, and one more where that one is filled well enough.
fn huge_bytes(weights: usize) -> usize {
    let whole = weights / HUGE_PAGE * HUGE_PAGE;
    let more = whole + HUGE_PAGE;
    if weights > whole && more - weights <= weights / LEAST_SPARE { more } else { whole }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use burst_hal::{
        Caller, DataLocation, ErrorStatus, ExtraParams, Failure, MemoryAccount, Operand, Subgraph,
    };

    use super::*;

    const TOO_LARGE: OpError = OpError::Range { what: "a list" };

    #[derive(Debug)]
    struct Purse {
        limit: u64,
        taken: AtomicU64,
    }

    impl MemoryAccount for Purse {
        fn charge(&self, bytes: u64) -> Result<(), Failure> {
            let taken = self.taken.load(Ordering::Relaxed) + bytes;
            if taken > self.limit {
                return Err(Failure::from(ErrorStatus::GeneralFailure));
            }
            self.taken.store(taken, Ordering::Relaxed);
            Ok(())
        }

        fn give_back(&self, bytes: u64) {
            self.taken.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn purse(limit: u64) -> (Arc<Purse>, MemoryCharge) {
        let purse = Arc::new(Purse { limit, taken: AtomicU64::new(0) });
        let charge = purse_charge(&purse);
        (purse, charge)
    }

    fn purse_charge(purse: &Arc<Purse>) -> MemoryCharge {
        Caller::default().with_account(Arc::clone(purse) as _).empty_charge()
    }

    /// One with a constant of so many floats; which ones, nobody asks.
    fn model(floats: u32) -> Model {
        let operand = Operand {
            ty: OperandType::TensorFloat32,
            dimensions: [floats].as_slice().into(),
            number_of_consumers: 0,
            scale: 0.0,
            zero_point: 0,
            lifetime: OperandLifeTime::ConstantCopy,
            location: DataLocation { length: floats * 4, ..DataLocation::default() },
            extra_params: ExtraParams::None,
        };
        let main = Subgraph { operands: vec![operand], ..Subgraph::default() };
        Model { main, ..Model::default() }
    }

    #[test]
    fn a_huge_page_more_is_taken_where_little_of_it_is_left_over() {
        assert_eq!(huge_bytes(0), 0);
        assert_eq!(huge_bytes(HUGE_PAGE / 2), 0);
        assert_eq!(huge_bytes(HUGE_PAGE / 9 * 8 - 9), 0);
        assert_eq!(huge_bytes(HUGE_PAGE / 9 * 8 + 9), HUGE_PAGE);
        assert_eq!(huge_bytes(HUGE_PAGE), HUGE_PAGE);
        assert_eq!(huge_bytes(2 * HUGE_PAGE + HUGE_PAGE / 2), 2 * HUGE_PAGE);
        assert_eq!(huge_bytes(2 * HUGE_PAGE - 1), 2 * HUGE_PAGE);
        assert_eq!(huge_bytes(9 * HUGE_PAGE + 9), 10 * HUGE_PAGE);
        assert_eq!(huge_bytes(MAX_WEIGHTS), MAX_WEIGHTS);
    }

    #[test]
    fn the_account_pays_for_whole_pages_as_long_as_something_lies_there() {
        let (purse, charge) = purse(u64::MAX);
        let taken = || usize::try_from(purse.taken.load(Ordering::Relaxed)).unwrap();
        let room = WeightRoom::for_model(&model(1 << 19), 1, charge, || 1 + LEFT_FREE);
        let mut list = room.list::<[u8; 64]>(1000, TOO_LARGE).unwrap();
        list.resize(1000, [7; 64]);
        assert_eq!(list.as_ptr().addr() % HUGE_PAGE, 0);
        // 64,000 bytes were to be charged before.
        assert!((HUGE_PAGE - 64_064..=HUGE_PAGE - 64_000).contains(&taken()));
        let pages = room.finish();
        drop(room);
        assert_eq!(pages.bytes(), HUGE_PAGE);
        assert_eq!(taken(), HUGE_PAGE - 64_000);
        assert!(list.iter().all(|line| *line == [7; 64]));
        drop(pages);
        assert_eq!(taken(), 0);
    }

    #[test]
    fn pages_that_an_earlier_model_left_are_taken_and_paid_for_whatever_others_are_free() {
        let (purse, charge) = purse(u64::MAX);
        let taken = || usize::try_from(purse.taken.load(Ordering::Relaxed)).unwrap();
        let pages = 5 * HUGE_PAGE;
        let model = model((pages / 4).try_into().unwrap());
        let room = WeightRoom::for_model(&model, 1, charge, || 5 + LEFT_FREE);
        let mut list = room.list::<[u8; 64]>(pages / 64, TOO_LARGE).unwrap();
        list.resize(pages / 64, [7; 64]);
        let place = list.as_ptr();
        drop((list, room));
        let again = WeightRoom::for_model(&model, 1, purse_charge(&purse), || 0);
        let list = again.list::<[u8; 64]>(1, TOO_LARGE).unwrap();
        assert_eq!(list.as_ptr(), place);
        assert!(!list.allocator().is_new());
        assert!((HUGE_PAGE - 128..HUGE_PAGE).contains(&taken()));
        let (poor, charge) = self::purse(0);
        let room = WeightRoom::for_model(&model, 1, charge, || 5 + LEFT_FREE);
        drop(room.list::<[u8; 64]>(1, TOO_LARGE).unwrap());
        assert_eq!(room.pages.made_bytes(), 0, "it is one of the heap");
        assert_eq!(poor.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn small_models_and_small_accounts_and_full_machines_take_all_from_the_heap() {
        let half_a_page = HUGE_PAGE as u64 / 2;
        // As many pages as no other model here has, which might leave them.
        for (floats, limit, ready) in [
            (1000, u64::MAX, usize::MAX),
            (7 << 19, half_a_page, usize::MAX),
            (7 << 19, u64::MAX, 6 + LEFT_FREE),
        ] {
            let (purse, charge) = purse(limit);
            let room = WeightRoom::for_model(&model(floats), 1, charge, || ready);
            let list = room.list::<u32>(1000, TOO_LARGE).unwrap();
            assert_eq!(list.capacity(), 1000);
            assert_eq!(purse.taken.load(Ordering::Relaxed), 0);
            assert_eq!(room.pages.made_bytes(), 0);
        }
    }
}
