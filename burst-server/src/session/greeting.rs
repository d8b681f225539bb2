//! The first message of a client and its answer: checks who the client is, and agrees on version and
//! features.

use std::time::Duration;

use burst_wire::control::{ClientGreeting, ServerGreeting, Text, Welcome};
use burst_wire::socket::{self, Inbox};
use burst_wire::{Features, WireError};

use super::host::Host;
use crate::ServerError;
use crate::admission::{Accepted, Admitted};
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
/// No greeting of this protocol comes in time, or the client is not let in.
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
    let credentials = rustix::net::sockopt::socket_peercred(client)
        .map_err(|errno| ServerError::System { call: "getsockopt", errno })?;
    let (uid, gid) = (credentials.uid.as_raw(), credentials.gid.as_raw());
    let admitted = host.admission.admit(uid, gid, accepted);
    // A client of another version is answered too: it learns ours from the answer.
    if !matches!(greeting, Err(WireError::NotThisProtocol)) {
        answer(host, client, admitted.as_ref().err().copied())?;
    }
    let greeting = greeting?;
    let admitted = admitted.map_err(|refusal| {
        tracing::warn!(uid, gid, ?refusal, "client refused");
        WireError::Closed
    })?;
    let features = greeting.common(host.features);
    socket::set_receive_timeout(client, None)?;
    host.metrics.client_accepted();
    let pid = credentials.pid.as_raw_nonzero().get();
    let name = greeting.name.as_str();
    tracing::debug!(client = number, pid, uid, name, ?features, "client connected");
    Ok(Greeted { admitted, features })
}

fn answer(host: &Host, client: &ClientSocket, refusal: Option<Welcome>) -> Result<(), WireError> {
    let greeting = ServerGreeting {
        welcome: refusal.unwrap_or(Welcome::Accepted),
        features: host.features.bits(),
        pid: std::process::id(),
        name: Text::cut(&host.name),
    };
    socket::send(client, &greeting.encode()?, &[])
}
