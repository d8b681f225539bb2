//! What can go wrong for a client.

use std::path::PathBuf;

use burst_hal::session::LayoutError;
use burst_hal::validate::ValidationError;
use burst_hal::{CacheFiles, ErrorStatus, Failure};
use burst_shm::ShmError;
use burst_wire::control::Versions;
use burst_wire::trace::{TRACE_BYTES_MAX, TRACE_BYTES_MIN};
use burst_wire::{Features, WireError};
use fmq::QueueError;
use rustix::io::Errno;

/// Why a connection, a call or an execution failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    // Before there is a connection.
    /// There is no socket, or no process listens at it.
    #[error("no service listens at {}", path.display())]
    NobodyListens {
        /// Where.
        path: PathBuf,
    },
    /// The socket's file may not be used.
    #[error("not permitted to connect to {}", path.display())]
    MayNotConnect {
        /// Where.
        path: PathBuf,
    },
    /// The socket cannot be connected to.
    #[error("cannot connect to {}: {errno}", path.display())]
    Connect {
        /// Where.
        path: PathBuf,
        /// The system's reason.
        errno: Errno,
    },
    /// The service does not take this user.
    #[error("the service does not permit this user")]
    NotPermitted,
    /// The service, or this user there, has as many clients as may be.
    #[error("the service has no place for another client{}; try again later", behind(detail))]
    TooManyClients {
        /// Which limit is reached, as far as the service says it.
        detail: Box<str>,
    },
    /// The service speaks another version of the protocol.
    #[error("the service speaks protocol {service}, this client speaks {client}")]
    Version {
        /// The versions here.
        client: Versions,
        /// The versions there, as far as known.
        service: Versions,
    },
    /// The service lacks additions that the program requires.
    #[error("the service lacks what this program requires: {missing}")]
    FeatureMissing {
        /// Which.
        missing: Features,
    },
    /// The service refuses for another reason.
    #[error("the service refuses the connection: {detail}")]
    GreetingRefused {
        /// Its reason.
        detail: Box<str>,
    },
    /// Whatever answers there is no such service.
    #[error("what answers there is not a burst service")]
    NotThisProtocol,
    /// The service did not answer the greeting in time.
    #[error("the service does not answer")]
    NoGreeting,

    // While there is one.
    /// The service's process is gone, or it closed the connection.
    #[error("the driver service (process {pid}) died")]
    PeerDied {
        /// Its process id, as far as known; 0 if not.
        pid: u32,
    },
    /// The service did not answer any more and was [hung up](crate::RemoteDevice::hang_up) on.
    #[error("the driver service has stopped answering")]
    StoppedAnswering,
    /// The service was told to stop, and ended the connection in order.
    #[error("the driver service (process {pid}) was told to stop")]
    PeerStopped {
        /// Its process id, as far as known; 0 if not.
        pid: u32,
    },
    /// The service gave up this burst; the connection lives.
    #[error("the service ended the burst: {detail}")]
    BurstEnded {
        /// Its reason.
        detail: Box<str>,
    },
    /// This process is a forked child of the one that connected. The connection stays the
    /// parent's; a child connects anew.
    #[error("the connection belongs to the process that forked this one; connect anew")]
    Forked,
    /// The deadline passed without an answer.
    #[error("no answer before the deadline")]
    Timeout,
    /// The caller called it off, and its answer is not waited for any more.
    #[error("it was called off")]
    Cancelled,
    /// The service refused a call.
    #[error("{status}: {detail}")]
    Refused {
        /// The status.
        status: ErrorStatus,
        /// Its reason.
        detail: Box<str>,
    },
    /// The service does not know a call: it is older than this client.
    #[error("the service is too old for {what}: {detail}")]
    UnknownCall {
        /// What the call is about.
        what: &'static str,
        /// Its reason.
        detail: Box<str>,
    },
    /// An execution ended with another status than NONE.
    #[error("the execution failed: {status}")]
    Execution {
        /// The status.
        status: ErrorStatus,
    },
    /// The service answered something else than was asked.
    #[error("the service answered something else than was asked")]
    UnexpectedAnswer,
    /// Bytes from the service are not what they should be, or its socket failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A queue failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A connector that the caller passed could not reach the service: it failed to start the
    /// service's process, say.
    #[error("{0}")]
    Connector(std::sync::Arc<dyn std::error::Error + Send + Sync>),
    /// Memory cannot be made or mapped.
    #[error(transparent)]
    Memory(#[from] ShmError),
    /// A pool of a request, or of a model, could not be read or written.
    #[error(transparent)]
    Pool(#[from] burst_hal::MemoryError),
    /// A system call failed.
    #[error("{call}: {errno}")]
    System {
        /// Which.
        call: &'static str,
        /// The system's reason.
        errno: Errno,
    },

    // Wrong use.
    /// As many requests are under way, or have results nobody took, as may be.
    #[error("{depth} requests are under way, which is all there may be; wait for one")]
    PipelineFull {
        /// How many there may be.
        depth: usize,
    },
    /// A ticket of another burst, or one that was waited for before.
    #[error("this ticket stands for no request of this burst")]
    UnknownTicket,
    /// A memory that a request under way uses.
    #[error("a request under way uses this memory")]
    MemoryInUse,
    /// The client was made from a socket that somebody else connected.
    #[error("this client does not know the address of its service")]
    NoAddress,
    /// The service has no device of this name.
    #[error("there is no device {name}; there are: {}", available.join(", "))]
    NoDevice {
        /// The name.
        name: String,
        /// Names of the devices there are.
        available: Vec<String>,
    },
    /// Inputs, outputs and states have no place in pools: an open shape, too many bytes, or pairs
    /// that are no states.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The model is not legal, and could not be sent: the service would have said so.
    #[error(transparent)]
    IllegalModel(#[from] ValidationError),
    /// The model is legal, and has more of something than a message can say.
    #[error("the model is larger than one that a service can be sent: {0}")]
    ModelTooLarge(WireError),
    /// A model or a memory is longer than a pool can be.
    #[error("a pool of {bytes} bytes is more than locations can address")]
    PoolTooLong {
        /// Bytes needed.
        bytes: u64,
    },
    /// A memory that has no descriptor, and so cannot be sent.
    #[error("the memory has no descriptor to send")]
    NoDescriptor,
    /// More files of a compilation than any device needs.
    #[error("{} model and {} data files, of which there may be {limit} each", files.model, files.data)]
    CacheFiles {
        /// How many there are.
        files: CacheFiles,
        /// How many there may be of each kind.
        limit: u32,
    },
    /// A role of a buffer is in a model that was not prepared over this connection.
    #[error("model {model} of the buffer was not prepared over this connection")]
    OtherConnection {
        /// Index among the models of the request.
        model: usize,
    },
    /// More models, roles or dimensions than a buffer can have.
    #[error("{found} {what} of a buffer, of which at most {limit} are allowed")]
    BufferTooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        found: usize,
        /// How much there may be.
        limit: usize,
    },
    /// A memory for spans of a length that no service takes.
    #[error(
        "a memory of {bytes} bytes for spans; it has {} to {} bytes",
        TRACE_BYTES_MIN,
        TRACE_BYTES_MAX
    )]
    TraceBytes {
        /// Its length.
        bytes: u64,
    },
    /// A memory for spans that is longer than this service takes.
    #[error("a memory of {bytes} bytes for spans; this service takes at most {limit}")]
    TraceTooLong {
        /// Its length.
        bytes: u64,
        /// What the service states.
        limit: u64,
    },
    /// More fences than one execution can wait for.
    #[error("{count} fences; an execution waits for at most {limit}")]
    TooManyFences {
        /// How many there were.
        count: usize,
        /// How many there may be.
        limit: u32,
    },
    /// An output of a fenced execution lies in memory that only this process can reach.
    #[error("output {output} of a fenced execution lies in memory that has no descriptor")]
    OutputNotShared {
        /// Which output.
        output: usize,
    },
}

impl ClientError {
    /// What a HAL client is told of it.
    #[must_use]
    pub fn status(&self) -> ErrorStatus {
        match self {
            ClientError::Refused { status, .. } | ClientError::Execution { status } => *status,
            ClientError::PeerDied { .. }
            | ClientError::PeerStopped { .. }
            | ClientError::StoppedAnswering => ErrorStatus::DeviceUnavailable,
            ClientError::Timeout => ErrorStatus::MissedDeadlineTransient,
            ClientError::TooManyClients { .. } | ClientError::Wire(WireError::DescriptorsLost) => {
                ErrorStatus::ResourceExhaustedTransient
            }
            ClientError::ModelTooLarge(_) => ErrorStatus::ResourceExhaustedPersistent,
            ClientError::NoDescriptor
            | ClientError::OtherConnection { .. }
            | ClientError::BufferTooLarge { .. }
            | ClientError::TooManyFences { .. }
            | ClientError::TraceBytes { .. }
            | ClientError::TraceTooLong { .. }
            | ClientError::OutputNotShared { .. }
            | ClientError::Layout(_)
            | ClientError::IllegalModel(_)
            | ClientError::PoolTooLong { .. }
            | ClientError::CacheFiles { .. }
            | ClientError::NoDevice { .. } => ErrorStatus::InvalidArgument,
            _ => ErrorStatus::GeneralFailure,
        }
    }

    /// Whether the service, or its part of a burst, is gone: what was under way is lost, and
    /// everything made from the connection (or the burst) has to be made again.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(
            self,
            ClientError::PeerDied { .. }
                | ClientError::StoppedAnswering
                | ClientError::PeerStopped { .. }
                | ClientError::BurstEnded { .. }
        )
    }

    /// Whether a service that is being started again can be the reason.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            ClientError::NobodyListens { .. }
            | ClientError::Connect { .. }
            | ClientError::Connector(_)
            | ClientError::TooManyClients { .. }
            | ClientError::NoGreeting
            // What hangs up before the greeting is, as a rule, a service that is just going.
            | ClientError::NotThisProtocol
            | ClientError::PeerDied { .. }
            | ClientError::StoppedAnswering
            | ClientError::PeerStopped { .. }
            | ClientError::BurstEnded { .. }
            | ClientError::Wire(WireError::Closed) => true,
            other => other.status() == ErrorStatus::ResourceExhaustedTransient,
        }
    }

    pub(crate) fn system(call: &'static str) -> impl Fn(Errno) -> ClientError {
        move |errno| ClientError::System { call, errno }
    }
}

/// A detail behind a sentence, where there is one.
fn behind(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(": {detail}") }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Failure::new(error.status(), error)
    }
}
