//! What of a plan is kept with a compilation, so that it is not computed again: values that were folded.
//!
//! While a model is planned to be kept, what is worth it is copied here, operation by operation. While it
//! is planned from files the same operations take theirs from here: one model, planned by one build, is planned in
//! one order.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use burst_hal::Dimensions;
use burst_hal::validate::GraphId;

use crate::OpError;
use crate::aligned::AlignedBytes;

/// Which operation something was kept of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // Both makers have checked the range, and nobody can change the memory.
        self.memory.as_slice().get(self.range.clone()).unwrap_or_default()
    }
}

/// The results of an operation.
#[derive(Debug, Clone)]
pub(crate) struct KeptResults {
    pub(crate) place: Place,
    pub(crate) values: Vec<KeptValue>,
}

/// What is kept, while a model is planned.
#[derive(Debug, Default)]
pub(crate) struct Kept(RefCell<State>);

#[derive(Debug, Default)]
enum State {
    /// Nothing is kept, and nothing is there.
    #[default]
    Off,
    /// In the order in which operations were planned.
    Recording(Vec<KeptResults>),
    /// In the same order, the next one last.
    Restoring(Vec<KeptResults>),
}

impl Kept {
    /// Nothing yet; it is going to be recorded.
    pub(crate) fn recording() -> Self {
        Kept(RefCell::new(State::Recording(Vec::new())))
    }

    /// What was recorded once.
    pub(crate) fn restoring(mut results: Vec<KeptResults>) -> Self {
        results.reverse();
        Kept(RefCell::new(State::Restoring(results)))
    }

    /// Whether what there is to keep is there: nothing else may be computed in its place.
    pub(crate) fn is_restoring(&self) -> bool {
        matches!(&*self.0.borrow(), State::Restoring(_))
    }

    /// Records the results of an operation, where it is to be recorded; `copy` copies one.
    ///
    /// # Errors
    /// Those of `copy`.
    pub(crate) fn record<'v>(
        &self,
        place: Place,
        values: impl Iterator<Item = (Dimensions, &'v AlignedBytes)>,
        copy: impl Fn(&AlignedBytes) -> Result<AlignedBytes, OpError>,
    ) -> Result<(), OpError> {
        let State::Recording(results) = &mut *self.0.borrow_mut() else { return Ok(()) };
        let values = values.map(|(dims, bytes)| {
            let memory = Arc::new(copy(bytes)?);
            let range = 0..memory.as_slice().len();
            Ok(KeptValue { dims, memory, range })
        });
        results.push(KeptResults { place, values: values.collect::<Result<_, OpError>>()? });
        Ok(())
    }

    /// The results of an operation, where they were kept.
    pub(crate) fn take(&self, place: Place) -> Option<Vec<KeptValue>> {
        let State::Restoring(results) = &mut *self.0.borrow_mut() else { return None };
        results.pop_if(|next| next.place == place).map(|next| next.values)
    }

    /// What was recorded; what was not asked for while it was restored.
    pub(crate) fn into_rest(self) -> Vec<KeptResults> {
        match self.0.into_inner() {
            State::Off => Vec::new(),
            State::Recording(results) | State::Restoring(results) => results,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Place = Place { graph: 0, operation: 3 };
    const SECOND: Place = Place { graph: 2, operation: 0 };

    fn record(kept: &Kept, place: Place, bytes: &[u8]) {
        let value = AlignedBytes::copy_of(bytes);
        let dims = Dimensions::from_slice(&[1]);
        kept.record(place, [(dims, &value)].into_iter(), |value| Ok(value.clone())).unwrap();
    }

    #[test]
    fn what_was_recorded_is_given_back_once_in_the_same_order() {
        let kept = Kept::recording();
        record(&kept, FIRST, &[1, 2]);
        record(&kept, SECOND, &[3]);
        assert!(kept.take(FIRST).is_none(), "what is recorded is not there yet");
        let kept = Kept::restoring(kept.into_rest());
        assert!(kept.is_restoring() && kept.take(SECOND).is_none());
        assert_eq!(kept.take(FIRST).unwrap()[0].bytes(), [1, 2]);
        assert!(kept.take(FIRST).is_none());
        record(&kept, FIRST, &[9]);
        let rest = kept.into_rest();
        assert_eq!(rest.len(), 1, "nothing is recorded while it is restored");
        assert_eq!((rest[0].place, rest[0].values[0].bytes()), (SECOND, &[3_u8][..]));
    }

    #[test]
    fn a_plan_that_keeps_nothing_records_nothing() {
        let kept = Kept::default();
        record(&kept, FIRST, &[1]);
        assert!(!kept.is_restoring() && kept.take(FIRST).is_none() && kept.into_rest().is_empty());
    }
}
