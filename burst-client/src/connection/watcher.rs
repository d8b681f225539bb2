//! The one thread that reads a connection's socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use burst_hal::{ErrorStatus, Pool};
use burst_wire::WireError;
use burst_wire::control::{self, ClientMessage, List, ServerMessage};
use burst_wire::socket::{self, Inbox};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{PidfdFlags, pidfd_open};

use super::Connection;

/// Reads messages until the service is gone or breaks the protocol, then marks the connection dead
/// and wakes every caller.
pub(crate) fn watch(connection: &Connection) {
    // The socket says that the service hung up; the process descriptor also that it died while
    // somebody else (a child it forked) holds the socket open.
    let process =
        connection.peer.verified_pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let mut inbox = Inbox::default();
    let end = loop {
        if let Err(error) = wait(connection, process.as_ref())
            .and_then(|()| socket::receive(&connection.socket, &mut inbox))
            .and_then(|()| handle(connection, &mut inbox))
        {
            break error;
        }
    };
    if end != WireError::Closed {
        tracing::warn!(service = connection.peer.pid, error = %end, "connection given up");
    }
    // Also for a service that broke the protocol: none of its messages can be trusted any more.
    let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Both);
    connection.mark_dead();
}

/// Waits for a message or the end.
fn wait(connection: &Connection, process: Option<&OwnedFd>) -> Result<(), WireError> {
    let Some(process) = process else { return Ok(()) };
    let mut fds =
        [PollFd::new(&connection.socket, PollFlags::IN), PollFd::new(process, PollFlags::IN)];
    retry_on_intr(|| poll(&mut fds, None))?;
    // What it sent before it died is still read.
    match fds[0].revents().is_empty() {
        true => Err(WireError::Closed),
        false => Ok(()),
    }
}

fn handle(connection: &Connection, inbox: &mut Inbox) -> Result<(), WireError> {
    match control::decode(inbox.message())? {
        ServerMessage::Reply(reply) => {
            let outcome = (reply.outcome, inbox.take_descriptors());
            if let Some(undo) = connection.calls.reply(reply.id, outcome) {
                tracing::debug!(?undo, "a reply came too late");
                // Where this cannot be sent the service is gone or going; the next read says so.
                let _ = connection.send_oneway(undo);
            }
            Ok(())
        }
        ServerMessage::GetMemories { id, burst, slots } => {
            get_memories(connection, id, burst, &slots.0)
        }
        ServerMessage::BurstEnded { burst, detail } => {
            if let Some(watch) = connection.find_burst(burst) {
                watch.end(detail.as_str());
            }
            Ok(())
        }
    }
}

/// Answers with one memory per slot, or INVALID_ARGUMENT for any that is not in use.
fn get_memories(
    connection: &Connection,
    id: u64,
    burst: u32,
    slots: &[i32],
) -> Result<(), WireError> {
    let memories: Option<Vec<Pool>> = connection
        .find_burst(burst)
        .and_then(|watch| slots.iter().map(|slot| watch.slots.memory(*slot)).collect());
    let descriptors: Option<Vec<BorrowedFd<'_>>> =
        memories.as_ref().and_then(|memories| memories.iter().map(|memory| memory.fd()).collect());
    let (status, lengths, descriptors) = match (&memories, descriptors) {
        (Some(memories), Some(descriptors)) => {
            let lengths = memories.iter().map(|memory| memory.len()).collect();
            (ErrorStatus::None, lengths, descriptors)
        }
        _ => (ErrorStatus::InvalidArgument, List::default(), Vec::new()),
    };
    let message = ClientMessage::Memories { id, status: status.code(), lengths };
    socket::send(connection.as_fd(), &control::encode(&message)?, &descriptors)
}
