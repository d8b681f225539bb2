//! Executions of one compilation that keep their resources in between.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::compilation::Compilation;
use crate::error::{Error, Result};
use crate::frame::Frame;

/// Resources for executions of one compilation, one at a time: a burst for each step, and pools that the devices
/// know.
pub struct Burst {
    compilation: Arc<Compilation>,
    frame: Mutex<Frame>,
}

impl Burst {
    /// Resources for executions of a compilation.
    ///
    /// # Errors
    /// BAD_STATE for one that is not finished, or failed.
    pub fn new(compilation: &Arc<Compilation>) -> Result<Arc<Self>> {
        compilation.compiled()?;
        let (compilation, frame) = (Arc::clone(compilation), Mutex::default());
        Ok(Arc::new(Burst { compilation, frame }))
    }

    /// The resources, for one execution of this compilation.
    ///
    /// # Errors
    /// BAD_DATA for another compilation; BAD_STATE where another execution has them.
    pub(crate) fn take(&self, compilation: &Arc<Compilation>) -> Result<MutexGuard<'_, Frame>> {
        if !Arc::ptr_eq(&self.compilation, compilation) {
            return Err(Error::bad_data("a burst of another compilation"));
        }
        match self.frame.try_lock() {
            Ok(frame) => Ok(frame),
            Err(TryLockError::Poisoned(poisoned)) => Ok(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => {
                Err(Error::bad_state("another execution uses the burst"))
            }
        }
    }
}

impl fmt::Debug for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Burst").field("compilation", &self.compilation).finish_non_exhaustive()
    }
}
