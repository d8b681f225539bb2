//! What of a plan is kept with a compilation, so that it is not computed again: values that were folded, and
//! weights in the order in which kernels of our own read them.
//!
//! While a model is planned to be kept, what is worth it is copied here, operation by operation. While it
//! is planned from files the same operations take theirs from here: one model, planned by one build, is planned in
//! one order.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use burst_hal::Dimensions;
use burst_hal::validate::GraphId;

use crate::OpError;
use crate::aligned::AlignedBytes;

/// Which operation something was kept of, or which graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Place {
    /// 0 for the main graph, else one more than the index of the referenced one.
    pub(crate) graph: u32,
    /// Position in the graph.
    pub(crate) operation: u32,
}

impl Place {
    pub(crate) fn new(graph: GraphId, operation: usize) -> Self {
        let graph = match graph {
            GraphId::Main => 0,
            GraphId::Referenced(index) => index.saturating_add(1),
        };
        Place { graph, operation: u32::try_from(operation).unwrap_or(u32::MAX) }
    }

    /// For what is kept of a whole graph: behind all its operations.
    pub(crate) fn behind(graph: GraphId) -> Self {
        Place::new(graph, usize::MAX)
    }
}

/// A value: bytes in memory that it shares with others.
#[derive(Debug, Clone)]
pub(crate) struct KeptValue {
    pub(crate) dims: Dimensions,
    memory: Arc<AlignedBytes>,
    range: Range<usize>,
}

impl KeptValue {
    /// A part of some memory; `None` where it has no such part.
    pub(crate) fn part(
        dims: Dimensions,
        memory: &Arc<AlignedBytes>,
        range: Range<usize>,
    ) -> Option<Self> {
        memory.as_slice().get(range.clone())?;
        Some(KeptValue { dims, memory: Arc::clone(memory), range })
    }

    /// The same as far as its dimensions go, for who never looks at the bytes.
    pub(crate) fn without_bytes(&self) -> Self {
        KeptValue { range: 0..0, ..self.clone() }
    }

    /// The part of the same memory that these bytes are; `None` where they lie elsewhere.
    fn holding(&self, bytes: &[u8]) -> Option<Self> {
        let memory = self.memory.as_slice();
        let start = bytes.as_ptr().addr().checked_sub(memory.as_ptr().addr())?;
        let range = start..start.checked_add(bytes.len())?;
        KeptValue::part(Dimensions::new(), &self.memory, range)
    }

    /// Which memory it lies in, and how many bytes that has.
    pub(crate) fn memory(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.memory).addr(), self.memory.held_bytes())
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // Both makers have checked the range, and nobody can change the memory.
        self.memory.as_slice().get(self.range.clone()).unwrap_or_default()
    }
}

/// What was kept of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Its results: it was folded, and reads nothing any more.
    Results,
    /// What its kernel has packed of its constants.
    Packed,
    /// Of a graph: where its values lie in working memory. Finding room takes time quadratic in their number.
    Ranges,
}

/// Something of an operation.
#[derive(Debug, Clone)]
pub(crate) struct KeptPart {
    pub(crate) place: Place,
    pub(crate) what: What,
    pub(crate) values: Vec<KeptValue>,
    /// Inputs of the operation that it does not read where it has packed constants. Only who records them
    /// knows; nobody asks when they are restored.
    pub(crate) unread: Vec<usize>,
}

/// What is kept, while a model is planned.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    state: RefCell<State>,
    /// The operation that is being planned.
    at: Cell<Place>,
}

#[derive(Debug, Default)]
enum State {
    /// Nothing is kept, and nothing is there.
    #[default]
    Off,
    /// In the order in which operations were planned.
    Recording(Vec<KeptPart>),
    /// In the same order, the next one last; and the constants of the model.
    Restoring(Vec<KeptPart>, Option<KeptValue>),
}

impl Kept {
    /// Nothing yet; it is going to be recorded.
    pub(crate) fn recording() -> Self {
        Kept { state: RefCell::new(State::Recording(Vec::new())), at: Cell::default() }
    }

    /// What was recorded once, and where the constants of its model lie.
    pub(crate) fn restoring(mut parts: Vec<KeptPart>, constants: Option<KeptValue>) -> Self {
        parts.reverse();
        Kept { state: RefCell::new(State::Restoring(parts, constants)), at: Cell::default() }
    }

    /// This operation is planned next.
    pub(crate) fn begin(&self, place: Place) {
        self.at.set(place);
    }

    /// Whether what is worth it is to be recorded.
    pub(crate) fn is_recording(&self) -> bool {
        matches!(&*self.state.borrow(), State::Recording(_))
    }

    /// Whether what there is to keep is there: nothing else may be computed in its place.
    pub(crate) fn is_restoring(&self) -> bool {
        matches!(&*self.state.borrow(), State::Restoring(..))
    }

    /// A constant of the model as memory that outlives it; `None` for one that does not lie in a file.
    pub(crate) fn constant(&self, bytes: &[u8]) -> Option<KeptValue> {
        match &*self.state.borrow() {
            State::Restoring(_, Some(constants)) => constants.holding(bytes),
            _ => None,
        }
    }

    /// Records something of the operation that is being planned, where that is to be recorded; each copy is
    /// made only then. `unread` are inputs that its kernel does not read any more.
    ///
    /// # Errors
    /// Those of the copies.
    pub(crate) fn record(
        &self,
        what: What,
        unread: &[usize],
        copies: impl Iterator<Item = Result<(Dimensions, AlignedBytes), OpError>>,
    ) -> Result<(), OpError> {
        let State::Recording(parts) = &mut *self.state.borrow_mut() else { return Ok(()) };
        let values = copies.map(|copy| {
            let (dims, bytes) = copy?;
            let range = 0..bytes.as_slice().len();
            Ok(KeptValue { dims, memory: Arc::new(bytes), range })
        });
        let values = values.collect::<Result<_, OpError>>()?;
        parts.push(KeptPart { place: self.at.get(), what, values, unread: unread.to_vec() });
        Ok(())
    }

    /// What was kept of the operation that is being planned.
    pub(crate) fn take(&self, what: What) -> Option<Vec<KeptValue>> {
        let State::Restoring(parts, _) = &mut *self.state.borrow_mut() else { return None };
        let place = self.at.get();
        parts.pop_if(|next| next.place == place && next.what == what).map(|next| next.values)
    }

    /// What was recorded; what was not asked for while it was restored.
    pub(crate) fn into_rest(self) -> Vec<KeptPart> {
        match self.state.into_inner() {
            State::Off => Vec::new(),
            State::Recording(parts) | State::Restoring(parts, _) => parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Place = Place { graph: 0, operation: 3 };
    const SECOND: Place = Place { graph: 2, operation: 0 };

    fn record(kept: &Kept, place: Place, what: What, bytes: &[u8]) {
        kept.begin(place);
        let copy = || Ok((Dimensions::from_slice(&[1]), AlignedBytes::copy_of(bytes)));
        kept.record(what, &[], std::iter::once_with(copy)).unwrap();
    }

    fn take(kept: &Kept, place: Place, what: What) -> Option<Vec<u8>> {
        kept.begin(place);
        kept.take(what).map(|values| values[0].bytes().to_vec())
    }

    #[test]
    fn what_was_recorded_is_given_back_once_in_the_same_order() {
        let kept = Kept::recording();
        record(&kept, FIRST, What::Results, &[1, 2]);
        record(&kept, SECOND, What::Packed, &[3]);
        assert!(take(&kept, FIRST, What::Results).is_none(), "what is recorded is not there yet");
        let kept = Kept::restoring(kept.into_rest(), None);
        assert!(kept.is_restoring() && !kept.is_recording());
        assert_eq!(take(&kept, SECOND, What::Packed), None, "not before the first one");
        assert_eq!(take(&kept, FIRST, What::Packed), None);
        assert_eq!(take(&kept, FIRST, What::Results), Some(vec![1, 2]));
        assert_eq!(take(&kept, FIRST, What::Results), None);
        record(&kept, FIRST, What::Results, &[9]);
        let rest = kept.into_rest();
        assert_eq!(rest.len(), 1, "nothing is recorded while it is restored");
        assert_eq!((rest[0].place, rest[0].values[0].bytes()), (SECOND, &[3_u8][..]));
    }

    #[test]
    fn constants_are_found_in_the_memory_of_their_file() {
        let file = Arc::new(AlignedBytes::copy_of(&[1, 2, 3, 4, 5, 6]));
        let constants = KeptValue::part(Dimensions::new(), &file, 2..6).unwrap();
        let kept = Kept::restoring(Vec::new(), Some(constants.clone()));
        let found = kept.constant(&constants.bytes()[1..3]).unwrap();
        assert_eq!((found.bytes(), found.memory()), (&[4, 5][..], constants.memory()));
        assert!(kept.constant(&[4, 5]).is_none(), "the same bytes elsewhere");
        assert!(Kept::default().constant(constants.bytes()).is_none());
    }

    #[test]
    fn a_plan_that_keeps_nothing_records_nothing() {
        let kept = Kept::default();
        record(&kept, FIRST, What::Results, &[1]);
        assert!(!kept.is_restoring() && take(&kept, FIRST, What::Results).is_none());
        assert!(kept.into_rest().is_empty());
    }
}
