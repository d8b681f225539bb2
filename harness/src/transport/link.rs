//! The socket between the two ends: what a peer needs before its own channel exists.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use burst_wire::socket::{self, Inbox};
use fmq::{Descriptor, Grantor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::HarnessError;

/// A SEQPACKET socket that carries values and descriptors.
#[derive(Debug)]
pub struct Link {
    socket: OwnedFd,
    inbox: Inbox,
}

impl Link {
    /// Over a connected socket.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Link {
        Link { socket, inbox: Inbox::default() }
    }

    /// Sends a value, with descriptors.
    ///
    /// # Errors
    /// [`HarnessError::Wire`], [`HarnessError::Json`].
    pub fn send(&self, value: &impl Serialize, fds: &[BorrowedFd<'_>]) -> Result<(), HarnessError> {
        Ok(socket::send(&self.socket, &serde_json::to_vec(value)?, fds)?)
    }

    /// Waits for a value and the descriptors that come with it.
    ///
    /// # Errors
    /// [`HarnessError::Wire`], [`HarnessError::Json`].
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<(T, Vec<OwnedFd>), HarnessError> {
        socket::receive(&self.socket, &mut self.inbox)?;
        let value = serde_json::from_slice(self.inbox.message())?;
        Ok((value, self.inbox.take_descriptors()))
    }

    /// Waits for a message with exactly so many descriptors.
    ///
    /// # Errors
    /// As [`Link::receive`]; [`HarnessError::Handshake`].
    pub fn receive_fds<const N: usize>(&mut self) -> Result<[OwnedFd; N], HarnessError> {
        let ((), fds) = self.receive()?;
        fds.try_into().map_err(|_| HarnessError::Handshake { expected: "its descriptors" })
    }

    /// Both ends call this: neither returns before the other has called it too.
    ///
    /// # Errors
    /// As [`Link::receive`].
    pub fn meet(&mut self) -> Result<(), HarnessError> {
        self.send(&(), &[])?;
        let ((), _) = self.receive()?;
        Ok(())
    }

    /// Sends what the other end needs to attach to a queue.
    ///
    /// # Errors
    /// As [`Link::send`].
    pub fn send_queue(&self, queue: &Descriptor) -> Result<(), HarnessError> {
        let numbers = QueueNumbers {
            grantors: queue.grantors.iter().map(|g| (g.fd_index, g.offset, g.extent)).collect(),
            quantum: queue.quantum,
            flags: queue.flags,
        };
        let fds: Vec<BorrowedFd<'_>> = queue.fds.iter().map(AsFd::as_fd).collect();
        self.send(&numbers, &fds)
    }

    /// Waits for what [`Link::send_queue`] sends.
    ///
    /// # Errors
    /// As [`Link::receive`].
    pub fn receive_queue(&mut self) -> Result<Descriptor, HarnessError> {
        let (QueueNumbers { grantors, quantum, flags }, fds) = self.receive()?;
        let grantors = grantors
            .into_iter()
            .map(|(fd_index, offset, extent)| Grantor { flags: 0, fd_index, offset, extent })
            .collect();
        Ok(Descriptor { grantors, fds, quantum, flags })
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A queue's description without its descriptors.
#[derive(Serialize, Deserialize)]
struct QueueNumbers {
    grantors: Vec<(u32, u32, u64)>,
    quantum: u32,
    flags: u32,
}
