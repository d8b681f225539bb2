//! Messages on the control socket: greeting, calls, replies and the one callback.
//!
//! A message is bincode with fixed-width little-endian integers, at most [`MESSAGE_MAX`] bytes,
//! sent as one packet of a `SOCK_SEQPACKET` socket together with the descriptors it refers to.
//! Models and operand values do not travel in messages: they lie in memory whose descriptor
//! does. Every list and text has its limit. Messages, calls, answers and options are records, which
//! a later version may lengthen ([`Record`]); bytes after the end of a message are refused.

mod bounded;
mod greeting;
mod limits;
mod messages;
mod model;
mod numbers;
mod record;
mod requests;
mod values;

pub use crate::versions::Versions;
pub use bounded::{List, Text};
pub use greeting::{ClientGreeting, MAGIC, ServerGreeting, Welcome};
pub use limits::{StatedLimit, StatedLimits};
pub use messages::{
    Answer, Call, ClientMessage, DETAIL_MAX, MEMORIES_MAX, QueueDescriptor, QueueGrantor, Refusal,
    RefusalCause, Reply, ServerMessage, WaitStyle,
};
pub use model::{ModelBody, VALUES_ALIGNMENT, decode_model, encode_model};
pub use record::Record;
pub use requests::{
    CachePlace, FENCES_MAX, FencedRequest, POOLS_MAX, PoolSource, SynchronousRequest,
    WireBufferRequest, WireRole,
};
pub use values::{
    DeviceInfo, Executed, PreparedHow, WireArgument, WireExecutionInfo, WirePrepareOptions,
    WireShape,
};

use bincode::error::DecodeError;
use bincode::{Decode, Encode};

use crate::WireError;

/// Longest control message. Whatever can be longer travels in a memory of its own.
pub const MESSAGE_MAX: usize = 64 << 10;

/// Calls that may take long (queries about a model, preparing it, executions) which one client
/// may have in progress at once on its socket, where the service states no other limit; a further
/// one is refused.
pub const SLOW_CALLS_MAX: usize = 4;

/// Fixed-width little-endian integers; `LIMIT` bounds what a decoder may read in all.
const fn config<const LIMIT: usize>() -> bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Fixint,
    bincode::config::Limit<LIMIT>,
> {
    bincode::config::standard().with_little_endian().with_fixed_int_encoding().with_limit::<LIMIT>()
}

/// A message as bytes.
///
/// # Errors
/// [`WireError::MessageTooLong`] over [`MESSAGE_MAX`]; [`WireError::Limit`] for a list or text
/// over its own limit.
pub fn encode<M: Encode>(message: &M) -> Result<Vec<u8>, WireError> {
    encode_within::<M, MESSAGE_MAX>(message)
}

fn encode_within<M: Encode, const LIMIT: usize>(message: &M) -> Result<Vec<u8>, WireError> {
    let bytes = bincode::encode_to_vec(message, config::<LIMIT>())
        .map_err(|_| WireError::Malformed { reason: "a list or text is over its limit" })?;
    if bytes.len() > LIMIT {
        return Err(WireError::MessageTooLong { bytes: bytes.len(), limit: LIMIT });
    }
    Ok(bytes)
}

/// The number of the call in a message that is longer than it may be, and so not decoded: with it
/// the call can be refused. `None` where its beginning is not a call's.
#[must_use]
pub fn call_number(beginning: &[u8]) -> Option<u64> {
    type Header = (u32, u32, u64); // kind, length, number
    let header = bincode::decode_from_slice::<Header, _>(beginning, config::<MESSAGE_MAX>());
    let ((kind, _, number), _) = header.ok()?;
    (kind == numbers::CALL).then_some(number)
}

/// A message from bytes, all of which it must use.
///
/// # Errors
/// [`WireError::Malformed`], [`WireError::Limit`] or [`WireError::TrailingBytes`].
pub fn decode<M: Decode<()>>(bytes: &[u8]) -> Result<M, WireError> {
    decode_within::<M, MESSAGE_MAX>(bytes)
}

fn decode_within<M: Decode<()>, const LIMIT: usize>(bytes: &[u8]) -> Result<M, WireError> {
    if bytes.len() > LIMIT {
        return Err(WireError::MessageTooLong { bytes: bytes.len(), limit: LIMIT });
    }
    let (message, used) =
        bincode::decode_from_slice(bytes, config::<LIMIT>()).map_err(|error| malformed(&error))?;
    if used != bytes.len() {
        return Err(WireError::TrailingBytes { bytes: bytes.len() - used });
    }
    Ok(message)
}

/// What the decoder found, without the types of the one crate that decodes.
fn malformed(error: &DecodeError) -> WireError {
    let reason = match error {
        DecodeError::UnexpectedEnd { .. } => "it ends too early",
        DecodeError::LimitExceeded => "it is longer than any such message",
        DecodeError::UnexpectedVariant { .. } => "it has an unknown kind of part",
        DecodeError::Utf8 { .. } => "a text is not UTF-8",
        DecodeError::InvalidBooleanValue(_) => "a yes or no is neither",
        DecodeError::ArrayLengthMismatch { required, found } => {
            return WireError::Limit { count: *found as u64, limit: *required as u64 };
        }
        DecodeError::Other(reason) => reason,
        _ => "it cannot be decoded",
    };
    WireError::Malformed { reason }
}

#[cfg(test)]
#[path = "control/tests.rs"]
mod tests;

#[cfg(test)]
#[path = "control/golden_tests.rs"]
mod golden_tests;
