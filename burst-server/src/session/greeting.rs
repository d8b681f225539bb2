//! The first message of a client and its answer, which agree on version and features.

use std::time::Duration;

use burst_wire::control::{ClientGreeting, ServerGreeting, Text, Welcome};
use burst_wire::socket::{self, Inbox};
use burst_wire::{Features, WireError};

use super::host::Host;
use crate::ServerError;
use crate::admission::{Accepted, Admitted, Peer};
use crate::client::ClientSocket;

/// How long a new connection may take to greet.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may leave its socket unread while the service has something to say. A client
/// that does so longer is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// A client that was let in.
pub(super) struct Greeted {
    pub(super) admitted: Admitted,
    /// Additions to HAL 1.2 that both ends know.
    pub(super) features: Features,
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

pub(super) fn server_greeting(host: &Host, welcome: Welcome) -> ServerGreeting {
    ServerGreeting {
        welcome,
        features: host.features.bits(),
        pid: std::process::id(),
        name: Text::cut(&host.name),
    }
}
