//! The first message of a client and its answer, which agree on version and features, and the answer
//! to a connection that is not let in.

use std::os::fd::AsFd;
use std::time::Duration;

use burst_wire::control::{ClientGreeting, ServerGreeting, Text, Welcome};
use burst_wire::socket::{self, Inbox};
use burst_wire::{Features, WireError};
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use super::host::Host;
use crate::ServerError;
use crate::admission::{Accepted, Admitted, Peer};
use crate::client::ClientSocket;

/// How long a new connection may take to greet.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may leave its socket unread while the service has something to say. A client
/// that does so longer is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Messages of a connection that is refused which are taken out of its socket unread.
const UNREAD_MAX: usize = 64;

/// A client that was let in.
pub(super) struct Greeted {
    pub(super) admitted: Admitted,
    /// Additions to HAL 1.2 that both ends know.
    pub(super) features: Features,
}

/// Tells a connection that is not let in why, without waiting for anything: neither for its greeting,
/// nor for room in the socket.
pub(crate) fn refuse(host: &Host, socket: impl AsFd, refusal: Welcome) {
    let told = server_greeting(host, refusal).encode().map(|bytes| {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        rustix::net::send(&socket, &bytes, flags)
    });
    tracing::debug!(?refusal, ?told, "connection refused");
    // Messages that nobody read would have the peer find an error before it finds the answer. None
    // can follow, and there are only as many as a socket holds.
    let _ = rustix::net::shutdown(&socket, Shutdown::Read);
    for _ in 0..UNREAD_MAX {
        match rustix::net::recv(&socket, &mut [0; 1], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            Ok((_, length)) if length > 0 => {}
            _ => break,
        }
    }
}

/// Waits for the greeting of client `number` and answers it.
///
/// # Errors
/// No greeting of this protocol comes in time.
pub(super) fn greet(
    host: &Host,
    client: &ClientSocket,
    number: u64,
    accepted: Accepted,
) -> Result<Greeted, ServerError> {
    socket::set_receive_timeout(client, Some(GREETING_TIMEOUT))?;
    socket::set_send_timeout(client, Some(SEND_TIMEOUT))?;
    let mut inbox = Inbox::default();
    client.receive(&mut inbox)?;
    let greeting = ClientGreeting::decode(inbox.message());
    // A client of another version is answered too: it learns ours from the answer.
    if !matches!(greeting, Err(WireError::NotThisProtocol)) {
        socket::send(client, &server_greeting(host, Welcome::Accepted).encode()?, &[])?;
    }
    let greeting = greeting?;
    let admitted = accepted.greeted();
    let features = greeting.common(host.features);
    socket::set_receive_timeout(client, None)?;
    host.metrics.client_accepted();
    let Peer { pid, uid, .. } = admitted.peer();
    let name = greeting.name.as_str();
    tracing::debug!(client = number, ?pid, uid, name, ?features, "client connected");
    Ok(Greeted { admitted, features })
}

fn server_greeting(host: &Host, welcome: Welcome) -> ServerGreeting {
    ServerGreeting {
        welcome,
        features: host.features.bits(),
        pid: std::process::id(),
        name: Text::cut(&host.name),
    }
}
