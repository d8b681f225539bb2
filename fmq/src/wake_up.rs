//! Waking and waiting by bits, with the errors of a queue.

use std::num::NonZeroU32;

use burst_shm::Errno;

use crate::error::QueueError;
use crate::event_flag::{CLOSED, wake};
use crate::sync::EventWord;

/// Bits that can be waited for: some, and not the one that says "closed".
pub(crate) fn waitable(bits: u32) -> Result<NonZeroU32, QueueError> {
    match NonZeroU32::new(bits) {
        Some(mask) if bits & CLOSED == 0 => Ok(mask),
        _ => Err(QueueError::BadBits { bits }),
    }
}

/// Wakes the other end, which sleeps on these bits if it does and if there is a word to sleep on.
#[inline]
pub(crate) fn wake_other_end(event: Option<&EventWord>, bits: u32) -> Result<(), QueueError> {
    event.map_or(Ok(()), |event| wake(event, bits).map_err(failed_wake))
}

pub(crate) fn failed_wake(errno: Errno) -> QueueError {
    QueueError::System { call: "futex", errno }
}
