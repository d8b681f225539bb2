//! What a delegate is for us, behind the pointer that the runtime keeps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::layout::Delegate;
use crate::compiled::Compiled;
use crate::error::DelegateError;
use crate::explain::Explain;
use crate::target::Target;

/// What a delegate knows.
pub(super) struct State {
    target: Arc<Target>,
    explain: Explain,
    /// Partitions between their preparation and the `init` of their kernels: both within one call of the
    /// runtime.
    pending: Mutex<HashMap<Vec<i32>, Compiled>>,
}

impl State {
    pub(super) fn new(target: Arc<Target>, explain: Explain) -> Self {
        State { target, explain, pending: Mutex::default() }
    }

    pub(super) fn target(&self) -> &Arc<Target> {
        &self.target
    }

    pub(super) fn explain(&self) -> &Explain {
        &self.explain
    }

    /// Partitions for the kernels that the runtime is going to initialise, in place of those before.
    pub(super) fn hand_over(&self, partitions: HashMap<Vec<i32>, Compiled>) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *pending, partitions);
        drop(pending);
        drop(before);
    }

    /// The partition of these nodes.
    ///
    /// # Errors
    /// It was not prepared.
    pub(super) fn take(&self, nodes: &[i32]) -> Result<Compiled, DelegateError> {
        let found = self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(nodes);
        found.ok_or_else(|| DelegateError::UnknownPartition { nodes: nodes.to_vec() })
    }
}

/// What a delegate is for us.
///
/// # Safety
/// `delegate` is null, or one that `tflite_plugin_create_delegate` made, and is not ended during `'d`.
pub(super) unsafe fn state_of<'d>(delegate: *const Delegate) -> Result<&'d State, DelegateError> {
    if delegate.is_null() {
        return Err(DelegateError::Absent { what: "delegate" });
    }
    // SAFETY: not null, so a delegate of ours.
    let delegate = unsafe { delegate.read() };
    // SAFETY: a state of ours, which lives as long as its delegate.
    let state = unsafe { delegate.data.cast::<State>().as_ref() };
    state.ok_or(DelegateError::Absent { what: "delegate's data" })
}
