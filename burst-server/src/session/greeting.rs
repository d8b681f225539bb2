//! The first message of a client and its answer, which agree on version and features and state the
//! limits that hold.

use std::time::Duration;

use burst_shm::allow_descriptors;
use burst_wire::control::{
    ClientGreeting, FENCES_MAX, MESSAGE_MAX, ServerGreeting, StatedLimit, StatedLimits, Text,
    Versions, Welcome,
};
use burst_wire::socket::{self, DESCRIPTORS_MAX, Inbox};
use burst_wire::trace::TRACE_BYTES_MAX;
use burst_wire::{Features, PIPELINE_DEPTH_MAX, WireError};

use super::host::Host;
use crate::ServerError;
use crate::admission::{Accepted, Admitted, Limits, NotAccepted, Peer};
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
    /// What it calls itself.
    pub(super) program: String,
}

/// What both ends agreed on.
#[derive(Debug)]
struct Agreed {
    version: u32,
    features: Features,
    name: Text<64>,
}

/// Why a client is refused.
#[derive(Debug)]
struct Refused {
    welcome: Welcome,
    /// Additions that it requires and that this service does not know.
    missing: Features,
    detail: String,
}

impl Refused {
    fn new(welcome: Welcome, detail: impl Into<String>) -> Self {
        Refused { welcome, missing: Features::NONE, detail: detail.into() }
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
    let greeting = receive(client)?;
    let judged = agree(host.features, &greeting);
    // Before the answer: a client that has read it may connect again at once, and is not to find
    // its first connection counted among the silent ones.
    let admitted = accepted.greeted();
    // From now on whatever comes is received, and closed, by threads of this client's own.
    allow_descriptors(client, judged.is_ok()).map_err(WireError::from)?;
    socket::send(client, &answer(host, judged.as_ref()).encode()?, &[])?;
    let Agreed { version, features, name } = judged.map_err(|refused| {
        tracing::debug!(client = number, refused.detail, "greeting refused");
        greeting.err().unwrap_or(WireError::Closed)
    })?;
    socket::set_receive_timeout(client, None)?;
    host.metrics.client_accepted();
    let Peer { pid, uid, .. } = admitted.peer();
    let name = name.as_str();
    tracing::debug!(client = number, ?pid, uid, name, version, %features, "client connected");
    Ok(Greeted { admitted, features, program: name.to_owned() })
}

/// The answer to a connection that is not let in, whatever its greeting says. Who may not come in learns
/// nothing but that.
pub(super) fn refusing(host: &Host, refusal: &NotAccepted) -> ServerGreeting {
    answer(host, Err(&Refused::new(refusal.welcome, refusal.detail())))
}

/// The first message of a client: its greeting, or what is wrong with it.
///
/// # Errors
/// It is no greeting of this protocol, which gets no answer; or none comes in time.
fn receive(client: &ClientSocket) -> Result<Result<ClientGreeting, WireError>, WireError> {
    socket::set_receive_timeout(client, Some(GREETING_TIMEOUT))?;
    socket::set_send_timeout(client, Some(SEND_TIMEOUT))?;
    let mut inbox = Inbox::default();
    client.receive(&mut inbox)?;
    // The inbox goes here, and with it any descriptors, for which nobody pays: the answer is sent without.
    match ClientGreeting::decode(inbox.message()) {
        Err(WireError::NotThisProtocol) => Err(WireError::NotThisProtocol),
        greeting => Ok(greeting),
    }
}

/// What a client that greets so and this service, which knows these additions, agree on.
fn agree(
    features: Features,
    greeting: &Result<ClientGreeting, WireError>,
) -> Result<Agreed, Refused> {
    let ours = Versions::SPOKEN;
    let no_version = |peer: Versions| {
        let detail = format!("this service speaks protocol {ours}, the client {peer}");
        Refused::new(Welcome::NoCommonVersion, detail)
    };
    let greeting = match greeting {
        Ok(greeting) => greeting,
        Err(WireError::Version { peer, .. }) => return Err(no_version(*peer)),
        Err(error) => return Err(Refused::new(Welcome::Malformed, error.to_string())),
    };
    let version = ours.common(greeting.versions).ok_or_else(|| no_version(greeting.versions))?;
    let missing = greeting.missing(features);
    if missing != Features::NONE {
        let detail = format!("this service lacks what the client requires: {missing}");
        return Err(Refused { missing, ..Refused::new(Welcome::FeatureMissing, detail) });
    }
    Ok(Agreed { version, features: greeting.common(features), name: greeting.name.clone() })
}

fn answer(host: &Host, judged: Result<&Agreed, &Refused>) -> ServerGreeting {
    let greeting = ServerGreeting::accepting(host.features, &host.name);
    match judged {
        Ok(agreed) => {
            ServerGreeting { version: agreed.version, limits: stated(&host.limits), ..greeting }
        }
        Err(Refused { welcome, missing, detail }) => ServerGreeting {
            welcome: *welcome,
            missing: missing.bits(),
            detail: Text::cut(detail),
            ..greeting
        },
    }
}

/// The limits that an honest client keeps to by itself.
fn stated(limits: &Limits) -> StatedLimits {
    [
        (StatedLimit::MessageBytes, MESSAGE_MAX as u64),
        (StatedLimit::Descriptors, DESCRIPTORS_MAX as u64),
        (StatedLimit::SlowCalls, limits.slow_calls),
        (StatedLimit::Models, limits.models),
        (StatedLimit::Bursts, limits.bursts),
        (StatedLimit::Memories, limits.memories),
        (StatedLimit::MappedBytes, limits.mapped_bytes),
        (StatedLimit::AllocatedBytes, limits.allocated_bytes),
        (StatedLimit::ModelBytes, limits.model_bytes),
        (StatedLimit::QueueDatums, limits.queue_datums),
        (StatedLimit::PipelineDepth, PIPELINE_DEPTH_MAX.into()),
        (StatedLimit::SetupRate, limits.setup_rate),
        (StatedLimit::SetupBurst, limits.setup_burst),
        (StatedLimit::PendingExecutions, limits.pending_executions),
        (StatedLimit::FenceWaitMs, limits.fence_wait_ms),
        (StatedLimit::Fences, FENCES_MAX.into()),
        (StatedLimit::Buffers, limits.buffers),
        (StatedLimit::TraceBytes, TRACE_BYTES_MAX),
    ]
    .into_iter()
    .collect()
}
