//! A client's buffer of a driver, as requests and slots need it.

use std::sync::Arc;

use burst_hal::Buffer;

use crate::ServerError;
use crate::admission::Charge;
use crate::prepared::PreparedEntry;

/// A buffer of a client. Its session has it by the client's token; a request that names it keeps it until
/// the request has been executed, so that the device gives its token to no other buffer meanwhile. Slots
/// refer to it without keeping it: a client that releases a buffer gets its room back at once.
pub(crate) struct BufferEntry {
    pub(crate) buffer: Arc<dyn Buffer>,
    /// The name of the device that made it.
    device: String,
    _charge: Charge,
}

impl BufferEntry {
    pub(crate) fn new(buffer: Arc<dyn Buffer>, device: &str, charge: Charge) -> Self {
        BufferEntry { buffer, device: device.to_owned(), _charge: charge }
    }

    /// The number by which its device knows it.
    pub(crate) fn token(&self) -> u32 {
        self.buffer.token()
    }

    /// The name of the device that made it.
    pub(crate) fn device(&self) -> &str {
        &self.device
    }

    /// # Errors
    /// [`ServerError::OtherDevice`] where the model belongs to another device, to which the token may mean
    /// something else.
    pub(crate) fn check_device(&self, model: &PreparedEntry) -> Result<(), ServerError> {
        same_device("the buffer is one", model.device(), &self.device)
    }
}

impl std::fmt::Debug for BufferEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BufferEntry").field("device", &self.device).finish_non_exhaustive()
    }
}

/// # Errors
/// [`ServerError::OtherDevice`].
pub(crate) fn same_device(
    what: &'static str,
    device: &str,
    other: &str,
) -> Result<(), ServerError> {
    if device == other {
        return Ok(());
    }
    Err(ServerError::OtherDevice { what, device: device.to_owned(), other: other.to_owned() })
}
