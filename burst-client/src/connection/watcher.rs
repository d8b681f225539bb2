//! The one thread that reads a connection's socket.

use std::os::fd::AsFd;

use burst_hal::{ErrorStatus, Pool};
use burst_wire::WireError;
use burst_wire::control::{self, ClientMessage, List, ServerMessage};
use burst_wire::socket::{self, Inbox};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use super::Connection;
use super::outbox::Outbox;
use super::pending_calls::Late;

/// Reads messages until the service is gone or breaks the protocol, then marks the connection dead
/// and wakes every caller.
pub(crate) fn watch(connection: &Connection) {
    let mut inbox = Inbox::default();
    let mut outbox = Outbox::default();
    let end = loop {
        if let Err(error) = step(connection, &mut inbox, &mut outbox) {
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

/// Waits for a message and handles it; sends what waits for room as soon as there is some.
fn step(connection: &Connection, inbox: &mut Inbox, outbox: &mut Outbox) -> Result<(), WireError> {
    let socket = &connection.socket;
    let wanted = match outbox.is_empty() {
        true => PollFlags::IN,
        false => PollFlags::IN | PollFlags::OUT,
    };
    let ready = wait(connection, wanted)?;
    outbox.flush(socket)?;
    if ready == PollFlags::OUT {
        return Ok(());
    }
    socket::receive(socket, inbox)?;
    handle(connection, inbox, outbox)
}

/// Waits until there is something to do at the socket.
///
/// The socket says that the service hung up; the descriptor of its process, where there is one, also that
/// it died while somebody else (a child that it forked) holds the socket open.
fn wait(connection: &Connection, wanted: PollFlags) -> Result<PollFlags, WireError> {
    let of_socket = || PollFd::new(&connection.socket, wanted);
    let Some(process) = &connection.process else {
        let mut socket = [of_socket()];
        retry_on_intr(|| poll(&mut socket, None))?;
        return Ok(socket[0].revents());
    };
    let mut both = [of_socket(), PollFd::new(process, PollFlags::IN)];
    retry_on_intr(|| poll(&mut both, None))?;
    if !both[0].revents().is_empty() {
        return Ok(both[0].revents());
    }
    // It has died. The kernel looked at the socket first: what came in between is still to be read.
    let mut socket = [of_socket()];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    retry_on_intr(|| poll(&mut socket, Some(&now)))?;
    match socket[0].revents() {
        nothing if nothing.is_empty() => Err(WireError::Closed),
        something => Ok(something),
    }
}

fn handle(
    connection: &Connection,
    inbox: &mut Inbox,
    outbox: &mut Outbox,
) -> Result<(), WireError> {
    match control::decode(inbox.message())? {
        ServerMessage::Reply(reply) => {
            let outcome = (reply.outcome, inbox.take_descriptors());
            match connection.calls.reply(reply.id, outcome) {
                Late::Nothing => {}
                Late::NeverStarted(execution) => connection.executions.forget(execution),
                Late::Undo(calls) => {
                    tracing::debug!(?calls, "a reply came too late");
                    for call in calls {
                        let id = connection.calls.next_oneway_id();
                        let message = ClientMessage::Call { id, call };
                        outbox.push(connection.as_fd(), &message, Vec::new())?;
                    }
                }
            }
        }
        ServerMessage::GetMemories { id, burst, slots } => {
            let (message, memories) = memories_in(connection, id, burst, &slots.0);
            outbox.push(connection.as_fd(), &message, memories)?;
        }
        ServerMessage::BurstEnded { burst, detail } => {
            if let Some(watch) = connection.find_burst(burst) {
                watch.end(detail.as_str());
            }
        }
        ServerMessage::Executed { execution, executed } => {
            if !connection.executions.end(execution, executed) {
                tracing::debug!(execution, "nobody waits for the result of this execution");
            }
        }
        ServerMessage::Unknown { kind } => {
            tracing::info!(kind, "a message of an unknown kind is ignored: the service is newer");
        }
    }
    Ok(())
}

/// One memory per slot, or INVALID_ARGUMENT for any that is not in use.
fn memories_in(
    connection: &Connection,
    id: u64,
    burst: u32,
    slots: &[i32],
) -> (ClientMessage, Vec<Pool>) {
    let memories: Option<Vec<Pool>> = connection
        .find_burst(burst)
        .and_then(|watch| slots.iter().map(|slot| watch.slots.memory(*slot)).collect());
    let memories = memories.filter(|memories| memories.iter().all(|memory| memory.fd().is_some()));
    let status = match memories {
        Some(_) => ErrorStatus::None,
        None => ErrorStatus::InvalidArgument,
    };
    let memories = memories.unwrap_or_default();
    let lengths: List<_, { control::MEMORIES_MAX }> =
        memories.iter().map(|memory| memory.len()).collect();
    (ClientMessage::Memories { id, status: status.code(), lengths }, memories)
}
