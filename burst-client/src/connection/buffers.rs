//! Buffers of the driver that the service made for this connection, by token.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, Weak};

use burst_wire::control::Call;

use super::{Connection, Link};
use crate::ClientError;
use crate::waiting::lock;

/// A token of this connection. The service lets go of the buffer when the last reference is dropped:
/// that of the program, and those of requests that are under way on a burst.
#[derive(Debug)]
pub(crate) struct RemoteToken {
    link: Arc<Link>,
    token: u32,
}

/// Tokens whose buffers the program has.
#[derive(Debug, Default)]
pub(super) struct BufferRegistry(Mutex<HashMap<u32, Weak<RemoteToken>>>);

impl RemoteToken {
    /// A token that the service has just given.
    ///
    /// # Errors
    /// [`WireError::Malformed`](burst_wire::WireError::Malformed) where another buffer has it, which ends the
    /// connection.
    pub(crate) fn new(link: &Arc<Link>, token: u32) -> Result<Arc<Self>, ClientError> {
        let mut tokens = lock(&link.buffers.0);
        let Entry::Vacant(place) = tokens.entry(token) else {
            drop(tokens);
            return Err(link.given_twice("a buffer has the token of another one"));
        };
        let new = Arc::new(RemoteToken { link: Arc::clone(link), token });
        place.insert(Arc::downgrade(&new));
        Ok(new)
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(crate) fn token(&self) -> u32 {
        self.token
    }
}

impl Drop for RemoteToken {
    fn drop(&mut self) {
        if self.link.is_forked() {
            return; // the buffer is the parent's, and so may be the lock
        }
        lock(&self.link.buffers.0).remove(&self.token);
        let call = Call::ReleaseBuffer { token: self.token };
        self.link.release_remote(call, "a buffer", self.token);
    }
}

impl Connection {
    /// The buffer with this token, where the program still has it.
    pub(crate) fn find_buffer(&self, token: u32) -> Option<Arc<RemoteToken>> {
        lock(&self.buffers.0).get(&token)?.upgrade()
    }
}
