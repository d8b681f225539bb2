//! What can be wrong with bytes from another process.

use burst_hal::ErrorStatus;
use rustix::io::Errno;

use crate::versions::Versions;

/// Bytes that do not mean what they should, or a socket that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    // Packets of a burst.
    /// Not a whole number of datums, or none at all.
    #[error("a packet of {bytes} bytes is not a whole number of datums")]
    Ragged {
        /// Length received.
        bytes: usize,
    },
    /// The packet does not begin by saying what it is.
    #[error("the packet does not begin with its packet information")]
    NoPacketInformation,
    /// The packet says another length than it has.
    #[error("the packet says it has {said} datums, {received} were received")]
    PacketSize {
        /// From the packet information.
        said: u32,
        /// Counted.
        received: usize,
    },
    /// The counts in the packet cannot all be true.
    #[error("the packet's counts need {needed} datums or more, it has {received}")]
    Counts {
        /// Smallest packet with these counts.
        needed: u64,
        /// Counted.
        received: usize,
    },
    /// A datum is missing at the end.
    #[error("the packet ends at datum {at}, where {wanted} should follow")]
    Short {
        /// Index of the missing datum.
        at: usize,
        /// What should have been there.
        wanted: &'static str,
    },
    /// A datum of another kind than the order of the packet demands.
    #[error("datum {at} has discriminator {found}, where {wanted} should be")]
    Discriminator {
        /// Index of the datum.
        at: usize,
        /// Its discriminator.
        found: u8,
        /// What should have been there.
        wanted: &'static str,
    },
    /// A byte or number that none of the enumerated values has.
    #[error("{what} is {value}")]
    Value {
        /// Which field.
        what: &'static str,
        /// What it held.
        value: i64,
    },
    /// Datums follow after the packet's last record.
    #[error("the packet's records end at datum {end} of {received}")]
    Trailing {
        /// Datums used.
        end: usize,
        /// Datums received.
        received: usize,
    },
    /// A packet that comes as differences, where there is no packet before that could differ.
    #[error("the packet says where it differs from the one before, and there is none")]
    NothingBefore,
    /// A difference at a place that the packet before does not have, or that has had its turn.
    #[error("a difference at datum {place} of the packet before, after one at {after}")]
    Place {
        /// The place it says.
        place: usize,
        /// The place of the difference in front of it; 0 for the first one.
        after: usize,
    },
    /// A result contradicts itself or the request.
    #[error("a result with {status} and {shapes} output shapes cannot be")]
    Contradiction {
        /// Its status.
        status: ErrorStatus,
        /// How many shapes came with it.
        shapes: usize,
    },
    /// An argument refers to a pool that the packet does not list.
    #[error("an argument lies in pool {pool} of {pools}")]
    PoolIndex {
        /// The index.
        pool: u32,
        /// How many pools the packet lists.
        pools: usize,
    },
    /// A slot that no client can have given out.
    #[error("slot {slot} is negative")]
    Slot {
        /// The slot.
        slot: i32,
    },
    /// An argument without a value that has a location or dimensions all the same.
    #[error("an omitted argument has a location or dimensions")]
    OmittedWithValue,
    /// More than a packet can say.
    #[error("the packet would have {datums} datums")]
    TooLong {
        /// How many.
        datums: u64,
    },

    // The control socket.
    /// What came is not the greeting of this protocol.
    #[error("the peer does not speak this protocol")]
    NotThisProtocol,
    /// The peer speaks another version of the protocol.
    #[error("the peer speaks protocol {peer}, this end speaks {ours}")]
    Version {
        /// The versions here.
        ours: Versions,
        /// The versions there, as far as known.
        peer: Versions,
    },
    /// A control message that cannot be decoded.
    #[error("malformed control message: {reason}")]
    Malformed {
        /// What is wrong, for people.
        reason: &'static str,
    },
    /// A control message is longer than it says.
    #[error("{bytes} bytes follow after the end of a control message")]
    TrailingBytes {
        /// How many.
        bytes: usize,
    },
    /// A list or text that is longer than its limit.
    #[error("{count} elements where at most {limit} may be")]
    Limit {
        /// How many.
        count: u64,
        /// How many may be.
        limit: u64,
    },
    /// A message does not fit the control socket. One that was received is cut off behind the
    /// limit.
    #[error("a control message of {bytes} bytes is over the limit of {limit}")]
    MessageTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A message had more descriptors than are ever sent; it was thrown away.
    #[error("a control message was cut off: it had more descriptors than are ever sent")]
    Truncated,
    /// The message came whole, but this process had no room in its table for its descriptors.
    #[error("a control message came without its descriptors: there is no room for more here")]
    DescriptorsLost,
    /// A message with another number of descriptors than it needs.
    #[error("a control message needs {wanted} descriptors and came with {got}")]
    Descriptors {
        /// How many it needs.
        wanted: usize,
        /// How many came.
        got: usize,
    },
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// A system call failed.
    #[error("the control socket failed: {0}")]
    Socket(#[from] Errno),
}

impl WireError {
    /// What a HAL client is told of it.
    ///
    /// A packet that is well formed but says something illegal is refused as the synchronous
    /// call would refuse it; everything else is a general failure.
    #[must_use]
    pub fn status(&self) -> ErrorStatus {
        match self {
            WireError::PoolIndex { .. } | WireError::Slot { .. } | WireError::OmittedWithValue => {
                ErrorStatus::InvalidArgument
            }
            _ => ErrorStatus::GeneralFailure,
        }
    }
}
