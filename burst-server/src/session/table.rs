//! What a client has, by the numbers that its calls name.

use std::collections::HashMap;
use std::sync::Arc;

use burst_hal::Pool;

use crate::ServerError;
use crate::buffers::BufferEntry;
use crate::burst::BurstHandle;
use crate::prepared::PreparedEntry;

/// Everything a client made with its calls. Callers drop what they remove after they release the
/// lock: unmapping a memory, or dropping a model, can take long.
#[derive(Default)]
pub(super) struct Table {
    /// The connection has ended: nothing is added any more.
    pub(super) is_closed: bool,
    pub(super) models: HashMap<u32, Arc<PreparedEntry>>,
    pub(super) memories: HashMap<u32, Pool>,
    pub(super) bursts: HashMap<u32, BurstHandle>,
    /// By the client's own tokens, which say nothing to anybody else.
    pub(super) buffers: HashMap<u32, Arc<BufferEntry>>,
    last_number: u32,
    last_token: u32,
}

impl Table {
    /// A number that no model and no burst has.
    pub(super) fn next_number(&mut self) -> u32 {
        self.last_number = self.last_number.wrapping_add(1);
        while self.models.contains_key(&self.last_number)
            || self.bursts.contains_key(&self.last_number)
        {
            self.last_number = self.last_number.wrapping_add(1);
        }
        self.last_number
    }

    /// # Errors
    /// [`ServerError::Unknown`].
    pub(super) fn model(&self, number: u32) -> Result<Arc<PreparedEntry>, ServerError> {
        self.models.get(&number).cloned().ok_or(unknown("prepared model", number))
    }

    /// # Errors
    /// [`ServerError::Unknown`].
    pub(super) fn memory(&self, number: u32) -> Result<Pool, ServerError> {
        self.memories.get(&number).cloned().ok_or(unknown("memory", number))
    }

    /// Gives a buffer a token. Tokens only grow, so that none stands for two buffers one after the other.
    pub(super) fn add_buffer(&mut self, buffer: Arc<BufferEntry>) -> u32 {
        loop {
            self.last_token = self.last_token.wrapping_add(1);
            if self.last_token != 0 && !self.buffers.contains_key(&self.last_token) {
                self.buffers.insert(self.last_token, buffer);
                return self.last_token;
            }
        }
    }

    /// # Errors
    /// [`ServerError::Unknown`].
    pub(super) fn buffer(&self, token: u32) -> Result<Arc<BufferEntry>, ServerError> {
        self.buffers.get(&token).cloned().ok_or(unknown("buffer", token))
    }

    /// # Errors
    /// [`ServerError::Unknown`].
    pub(super) fn burst(&self, number: u32) -> Result<&BurstHandle, ServerError> {
        self.bursts.get(&number).ok_or(unknown("burst", number))
    }
}

/// Nothing of this kind has this number.
pub(super) fn unknown(what: &'static str, number: u32) -> ServerError {
    ServerError::Unknown { what, number }
}
