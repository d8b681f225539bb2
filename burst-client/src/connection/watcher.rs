//! The one thread that reads a connection's socket.

use std::os::fd::{AsFd, OwnedFd};

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
    let descriptors = match socket::receive(socket, inbox) {
        Ok(()) => Ok(inbox.take_descriptors()),
        // This process had no room for them. The message is whole: it says whose they were, and everybody
        // else goes on.
        Err(lost @ WireError::DescriptorsLost) => Err(lost),
        Err(error) => return Err(error),
    };
    handle(connection, inbox, descriptors, outbox)
}

/// Waits until there is something to do at the socket.
///
/// The socket says that the service hung up; the descriptor of its process, where there is one, also that
/// it died while somebody else (a child that it forked) holds the socket open.
fn wait(connection: &Connection, wanted: PollFlags) -> Result<PollFlags, WireError> {
    let of_socket = || PollFd::new(&connection.socket, wanted);
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    look(|what| {
        let Some(process) = connection.process.as_ref().filter(|_| what == Look::WaitForEither)
        else {
            let timeout = (what == Look::SocketNow).then_some(&now);
            let mut socket = [of_socket()];
            retry_on_intr(|| poll(&mut socket, timeout))?;
            return Ok(Seen { socket: socket[0].revents(), has_died: false });
        };
        let mut both = [of_socket(), PollFd::new(process, PollFlags::IN)];
        retry_on_intr(|| poll(&mut both, None))?;
        Ok(Seen { socket: both[0].revents(), has_died: !both[1].revents().is_empty() })
    })
}

/// One look at the descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Waits for something at the socket or the death of the process.
    WaitForEither,
    /// What is there at the socket by now.
    SocketNow,
}

/// What a look found.
#[derive(Debug, Clone, Copy)]
struct Seen {
    socket: PollFlags,
    has_died: bool,
}

/// What there is to do at the socket, by as many looks as it takes.
///
/// A look at two descriptors is no look at one instant: the kernel looks at the socket first, so a process
/// that sends and dies in between has died with nothing at the socket. Only a look at the socket after the
/// death says that nothing is left to read.
fn look(mut at: impl FnMut(Look) -> Result<Seen, WireError>) -> Result<PollFlags, WireError> {
    loop {
        let seen = at(Look::WaitForEither)?;
        if !seen.socket.is_empty() {
            return Ok(seen.socket);
        }
        if seen.has_died {
            let left = at(Look::SocketNow)?.socket;
            return if left.is_empty() { Err(WireError::Closed) } else { Ok(left) };
        }
    }
}

fn handle(
    connection: &Connection,
    inbox: &Inbox,
    descriptors: Result<Vec<OwnedFd>, WireError>,
    outbox: &mut Outbox,
) -> Result<(), WireError> {
    match control::decode(inbox.message())? {
        ServerMessage::Reply(reply) => {
            match connection.calls.reply(reply.id, (reply.outcome, descriptors)) {
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
        ServerMessage::Stopping => connection.note_stopping(),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of these looks, one after the other; every one of them is needed.
    #[track_caller]
    fn verdict(script: &[(Look, Seen)]) -> Result<PollFlags, WireError> {
        let mut looks = script.iter();
        let verdict = look(|what| {
            let (expected, seen) = looks.next().expect("no further look");
            assert_eq!(what, *expected);
            Ok(*seen)
        });
        assert_eq!(looks.count(), 0, "looks that were not needed");
        verdict
    }

    fn both(socket: PollFlags, has_died: bool) -> (Look, Seen) {
        (Look::WaitForEither, Seen { socket, has_died })
    }

    fn later(socket: PollFlags) -> (Look, Seen) {
        (Look::SocketNow, Seen { socket, has_died: false })
    }

    const NOTHING: PollFlags = PollFlags::empty();

    #[test]
    fn a_message_that_comes_between_the_looks_at_socket_and_process_is_read_before_the_death_counts()
     {
        assert_eq!(verdict(&[both(NOTHING, true), later(PollFlags::IN)]), Ok(PollFlags::IN));
        // The next step finds that nothing is left.
        let dead = verdict(&[both(NOTHING, true), later(NOTHING)]);
        assert_eq!(dead, Err(WireError::Closed));
    }

    #[test]
    fn what_is_at_the_socket_comes_before_a_death_and_needs_no_second_look() {
        for flags in [PollFlags::IN, PollFlags::OUT, PollFlags::IN | PollFlags::HUP] {
            for has_died in [false, true] {
                assert_eq!(verdict(&[both(flags, has_died)]), Ok(flags));
            }
        }
        // A hang-up that comes between the looks is read like a message: the read says what it is.
        assert_eq!(verdict(&[both(NOTHING, true), later(PollFlags::HUP)]), Ok(PollFlags::HUP));
    }

    #[test]
    fn a_look_that_found_nothing_is_no_death() {
        let script = [both(NOTHING, false), both(NOTHING, false), both(PollFlags::IN, false)];
        assert_eq!(verdict(&script), Ok(PollFlags::IN));
    }

    #[test]
    fn a_look_that_fails_ends_the_waiting() {
        assert_eq!(look(|_| Err(WireError::Closed)), Err(WireError::Closed));
    }
}
