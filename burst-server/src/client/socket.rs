//! The connection to one client.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use burst_wire::WireError;
use burst_wire::control::{self, ServerMessage};
use burst_wire::socket::{self, Inbox};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A client's socket, which several threads read and any may write.
#[derive(Debug)]
pub(crate) struct ClientSocket {
    fd: OwnedFd,
    is_stopped: AtomicBool,
}

impl ClientSocket {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        ClientSocket { fd, is_stopped: AtomicBool::new(false) }
    }

    /// Sends a message, from any thread.
    pub(crate) fn send(
        &self,
        message: &ServerMessage,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), WireError> {
        socket::send(&self.fd, &control::encode(message)?, descriptors)
    }

    /// Sends a message where there is room for it just now; false where there is none.
    pub(crate) fn send_now(&self, message: &ServerMessage) -> Result<bool, WireError> {
        match socket::send_now(&self.fd, &control::encode(message)?, &[]) {
            Err(error) if socket::timed_out(&error) => Ok(false),
            sent => sent.map(|()| true),
        }
    }

    /// Waits until there may be room for a message, or the connection has ended; so long at most.
    pub(crate) fn wait_for_room(&self, patience: Duration) {
        let mut room = [PollFd::new(&self.fd, PollFlags::OUT)];
        // A time that is too long for the system, or a signal, is a look that comes early.
        let _ = poll(&mut room, Timespec::try_from(patience).ok().as_ref());
    }

    /// Waits for a message. Where several threads wait, the kernel gives each message to one.
    pub(crate) fn receive(&self, inbox: &mut Inbox) -> Result<(), WireError> {
        socket::receive(&self.fd, inbox)
    }

    /// Ends the connection: every thread that reads it finds its end.
    pub(crate) fn hang_up(&self) {
        // The only error is that it is not connected any more.
        let _ = rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Both);
    }

    /// Ends the connection because the service is about to stop: in this case executions for the
    /// client are not given up. It is told so, where its socket has room just now.
    pub(crate) fn stop(&self) {
        if let Err(error) = self.send_now(&ServerMessage::Stopping) {
            tracing::debug!(%error, "client already disconnected");
        }
        // Set before the shutdown, so that a reader that sees the connection's end sees this too.
        self.is_stopped.store(true, Ordering::SeqCst);
        self.hang_up();
    }

    /// Whether the service ended the connection in order to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
