//! What callers hold: numbers that stand for objects here and were never addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Objects of one kind, by the numbers that callers have for them.
pub(crate) struct Handles<T> {
    /// Added to each number, so that one of another kind is none of this.
    kind: usize,
    table: Mutex<Option<Table<T>>>,
}

struct Table<T> {
    last: usize,
    objects: HashMap<usize, Arc<T>>,
}

/// Numbers of a kind are this far apart, which leaves room for as many kinds, and they are never null.
const STEP: usize = 4;

impl<T> Handles<T> {
    /// No objects yet. `kind` is below [`STEP`], and no other kind's.
    pub(crate) const fn new(kind: usize) -> Self {
        assert!(kind < STEP);
        Handles { kind, table: Mutex::new(None) }
    }

    /// A number for an object; never one that another object had.
    pub(crate) fn add(&self, object: T) -> usize {
        let mut table = self.lock();
        let table = table.get_or_insert_with(|| Table { last: 0, objects: HashMap::new() });
        table.last += STEP;
        let number = table.last + self.kind;
        table.objects.insert(number, Arc::new(object));
        number
    }

    /// The object with this number.
    pub(crate) fn find(&self, number: usize) -> Option<Arc<T>> {
        self.lock().as_ref()?.objects.get(&number).cloned()
    }

    /// Forgets a number. The object goes when the last call with it has ended.
    pub(crate) fn remove(&self, number: usize) -> Option<Arc<T>> {
        self.lock().as_mut()?.objects.remove(&number)
    }

    /// A panic elsewhere leaves the table whole: nothing here is half done.
    fn lock(&self) -> MutexGuard<'_, Option<Table<T>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_until_it_is_removed_and_never_used_again() {
        let (ones, twos) = (Handles::new(1), Handles::new(2));
        assert!(ones.find(0).is_none());
        let (a, b) = (ones.add("a"), twos.add("b"));
        assert_eq!((ones.find(a).as_deref(), twos.find(b).as_deref()), (Some(&"a"), Some(&"b")));
        assert!(ones.find(b).is_none() && twos.find(a).is_none());
        assert!(ones.remove(a).is_some() && ones.remove(a).is_none() && ones.find(a).is_none());
        assert_ne!(ones.add("c"), a);
    }
}
