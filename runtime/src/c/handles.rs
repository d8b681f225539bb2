//! The table of live handles.
//!
//! A handle is a number that looks like a pointer to C: it is looked up in the table and never followed.
//! Numbers are never given twice, so that a handle that was freed, one of another kind, and one that was
//! never ours are all told apart from a live one, whatever was made since.

#![allow(unsafe_code, reason = "says that a handle is a plain number")]

use std::any::{Any, type_name};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use burst_hal::ResultCode;

use super::arguments::Plain;
use crate::{Error, Result};

/// The first handle. With 64 bits no process has an address like it, so that a caller who follows one is
/// told by a fault at once.
#[cfg(target_pointer_width = "64")]
const FIRST: usize = 0x4E4E_0000_0000_0010;
#[cfg(not(target_pointer_width = "64"))]
const FIRST: usize = 0x10;

/// How far apart handles are: callers may take the alignment of a real object for granted.
const STEP: usize = 16;

static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
static LIVE: RwLock<BTreeMap<usize, Object>> = RwLock::new(BTreeMap::new());

/// What a live handle stands for.
type Object = Arc<dyn Any + Send + Sync>;

/// A handle as C holds it: a live one of this kind, null, or anything else. C passes a pointer as it passes
/// an integer of the same size.
#[repr(transparent)]
pub(super) struct Handle<T>(usize, PhantomData<fn() -> T>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> Handle<T> {
    /// No object.
    pub(super) const NULL: Self = Handle(0, PhantomData);
}

// SAFETY: a number that is looked up and never followed.
unsafe impl<T> Plain for Handle<T> {}

impl<T: Any + Send + Sync> Handle<T> {
    /// A new handle for an object.
    ///
    /// # Errors
    /// OUT_OF_MEMORY once every number was given.
    pub(super) fn new(object: Arc<T>) -> Result<Self> {
        // Relaxed: the number alone matters; the lock orders what it stands for.
        let number = NEXT
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| at.checked_add(STEP))
            .map_err(|_| Error::new(ResultCode::OutOfMemory, "no handle is left"))?;
        let mut live = LIVE.write().unwrap_or_else(PoisonError::into_inner);
        live.insert(number, object);
        Ok(Handle(number, PhantomData))
    }

    /// The object.
    ///
    /// # Errors
    /// UNEXPECTED_NULL for null; BAD_DATA for what is not a live handle, or one of another kind.
    pub(super) fn get(self) -> Result<Arc<T>> {
        let of_kind = |code, what| Error::new(code, format!("{what}: {}", type_name::<T>()));
        if self.0 == 0 {
            return Err(of_kind(ResultCode::UnexpectedNull, "a null handle"));
        }
        let found = LIVE.read().unwrap_or_else(PoisonError::into_inner).get(&self.0).cloned();
        let found = found.and_then(|object| object.downcast::<T>().ok());
        found.ok_or_else(|| of_kind(ResultCode::BadData, "no live handle of this kind"))
    }

    /// Frees the handle and gives what it stood for: `None` for null, and for what is not a live handle of
    /// this kind, of which nothing changes.
    pub(super) fn free(self) -> Option<Arc<T>> {
        let mut live = LIVE.write().unwrap_or_else(PoisonError::into_inner);
        live.get(&self.0)?.downcast_ref::<T>()?;
        let object = live.remove(&self.0)?;
        // What ends with the object may take its time: nobody waits for that with the table in hand.
        drop(live);
        object.downcast().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memory, Model};

    fn code<T>(result: Result<T>) -> ResultCode {
        result.err().map_or(ResultCode::NoError, |error| error.code)
    }

    #[test]
    fn handles_that_are_not_live_ones_of_their_kind_are_told_apart() {
        let handle: Handle<Model> = Handle::new(Model::new()).unwrap();
        assert_eq!(code(handle.get()), ResultCode::NoError);
        let as_memory: Handle<Memory> = Handle(handle.0, PhantomData);
        assert_eq!(code(as_memory.get()), ResultCode::BadData, "another kind");
        assert!(as_memory.free().is_none(), "a free of another kind does nothing");
        assert_eq!(code(handle.get()), ResultCode::NoError);
        assert!(handle.free().is_some());
        assert_eq!(code(handle.get()), ResultCode::BadData, "freed");
        assert!(handle.free().is_none(), "freed twice");
        let again: Handle<Model> = Handle::new(Model::new()).unwrap();
        assert_ne!(again.0, handle.0, "a number is given once");
        again.free();
        assert_eq!(code(Handle::<Model>::NULL.get()), ResultCode::UnexpectedNull);
        assert!(Handle::<Model>::NULL.free().is_none());
        let on_stack = 7_u8;
        let foreign: Handle<Model> = Handle(std::ptr::from_ref(&on_stack).addr(), PhantomData);
        assert_eq!(code(foreign.get()), ResultCode::BadData, "never ours");
    }
}
