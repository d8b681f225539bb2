//! What the watcher has to say to the service, and for which the socket may have no room just now.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use burst_hal::Pool;
use burst_wire::WireError;
use burst_wire::control::{self, ClientMessage};
use burst_wire::socket;

/// Messages that may wait for room. A service that makes this client say more without reading any of
/// it is given up.
const WAITING_MAX: usize = 1024;

/// Messages in the order in which they are sent. Nothing here waits: while the service reads nothing,
/// the watcher goes on reading, and so replies reach their callers.
#[derive(Debug, Default)]
pub(super) struct Outbox(VecDeque<Message>);

#[derive(Debug)]
struct Message {
    bytes: Vec<u8>,
    /// The memories whose descriptors go with it.
    memories: Vec<Pool>,
}

impl Outbox {
    /// Sends a message, with the descriptors of these memories, as soon as there is room.
    ///
    /// # Errors
    /// [`WireError::Limit`] where too many wait already; the socket fails.
    pub(super) fn push(
        &mut self,
        socket: impl AsFd,
        message: &ClientMessage,
        memories: Vec<Pool>,
    ) -> Result<(), WireError> {
        if self.0.len() == WAITING_MAX {
            let (count, limit) = (WAITING_MAX as u64 + 1, WAITING_MAX as u64);
            return Err(WireError::Limit { count, limit });
        }
        self.0.push_back(Message { bytes: control::encode(message)?, memories });
        self.flush(socket)
    }

    /// Sends what there is room for.
    ///
    /// # Errors
    /// The socket fails. Where the service has closed it nobody will read this, and that is no error:
    /// the next read says so, after whatever the service has said before.
    pub(super) fn flush(&mut self, socket: impl AsFd) -> Result<(), WireError> {
        while let Some(Message { bytes, memories }) = self.0.front() {
            let descriptors: Vec<BorrowedFd<'_>> =
                memories.iter().filter_map(|memory| memory.fd()).collect();
            match socket::send_now(socket.as_fd(), bytes, &descriptors) {
                Ok(()) => drop(self.0.pop_front()),
                Err(error) if socket::timed_out(&error) => break,
                Err(WireError::Closed) => self.0.clear(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use burst_wire::control::List;
    use burst_wire::socket::Inbox;

    use super::*;

    fn memories(id: u64) -> ClientMessage {
        ClientMessage::Memories { id, status: 4, lengths: List::default() }
    }

    #[test]
    fn what_there_is_no_room_for_waits_its_turn_up_to_a_limit() {
        let (ours, theirs) = socket::pair().unwrap();
        let mut outbox = Outbox::default();
        let mut sent = 0;
        while outbox.is_empty() {
            outbox.push(&ours, &memories(sent), Vec::new()).unwrap();
            sent += 1;
        }
        for _ in 1..WAITING_MAX {
            outbox.push(&ours, &memories(sent), Vec::new()).unwrap();
            sent += 1;
        }
        let over = outbox.push(&ours, &memories(sent), Vec::new());
        assert_eq!(over, Err(WireError::Limit { count: 1025, limit: 1024 }));
        let mut inbox = Inbox::default();
        for id in 0..sent {
            socket::receive(&theirs, &mut inbox).unwrap();
            assert_eq!(control::decode(inbox.message()), Ok(memories(id)));
            outbox.flush(&ours).unwrap();
        }
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_service_that_is_gone_gets_nothing_and_that_is_no_error() {
        let (ours, theirs) = socket::pair().unwrap();
        drop(theirs);
        let mut outbox = Outbox::default();
        outbox.push(&ours, &memories(1), Vec::new()).unwrap();
        assert!(outbox.is_empty());
    }
}
