//! The first message in each direction: who speaks, in which version, with which additions.
//!
//! Its beginning never changes, in any version of the protocol, so that two ends that cannot
//! talk can at least say so:
//!
//! ```text
//! 0          8             12
//! "burst-nn" version u32   the rest, as this version has it
//! ```

use bincode::{Decode, Encode};

use super::bounded::Text;
use crate::{Features, WireError};

/// What every greeting begins with.
pub const MAGIC: [u8; 8] = *b"burst-nn";
/// The version this code speaks.
pub const PROTOCOL_VERSION: u32 = 1;

const VERSION_AT: usize = MAGIC.len();
const REST_AT: usize = VERSION_AT + 4;

/// What a client says first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ClientGreeting {
    /// Additions it knows: [`Features`] as bits.
    pub features: u64,
    /// Its program's name, for logs.
    pub name: Text<64>,
}

/// Whether the service takes the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Welcome {
    /// Calls may follow.
    Accepted,
    /// The client's user may not use this service.
    NotPermitted,
    /// The service has as many clients as it takes; later it may have fewer.
    TooManyClients,
}

/// What a service answers.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServerGreeting {
    /// Whether it takes the client.
    pub welcome: Welcome,
    /// Additions it knows: [`Features`] as bits.
    pub features: u64,
    /// Its process id as itself sees it.
    pub pid: u32,
    /// Its program's name.
    pub name: Text<64>,
}

impl ClientGreeting {
    /// The greeting as bytes.
    ///
    /// # Errors
    /// None that this version's greetings can have.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        with_prefix(&super::encode(self)?)
    }

    /// The greeting from bytes.
    ///
    /// # Errors
    /// [`WireError::NotThisProtocol`], [`WireError::Version`], or a malformed rest.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        super::decode(without_prefix(bytes)?)
    }

    /// Additions that both ends know.
    #[must_use]
    pub fn common(&self, ours: Features) -> Features {
        ours.intersection(Features::from_bits(self.features))
    }
}

impl ServerGreeting {
    /// The greeting as bytes.
    ///
    /// # Errors
    /// None that this version's greetings can have.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        with_prefix(&super::encode(self)?)
    }

    /// The greeting from bytes.
    ///
    /// # Errors
    /// [`WireError::NotThisProtocol`], [`WireError::Version`], or a malformed rest.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        super::decode(without_prefix(bytes)?)
    }

    /// Additions that both ends know.
    #[must_use]
    pub fn common(&self, ours: Features) -> Features {
        ours.intersection(Features::from_bits(self.features))
    }
}

fn with_prefix(rest: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::with_capacity(REST_AT + rest.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&PROTOCOL_VERSION.to_le_bytes());
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

fn without_prefix(bytes: &[u8]) -> Result<&[u8], WireError> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(WireError::NotThisProtocol)?;
    let (version, rest) = rest.split_first_chunk::<4>().ok_or(WireError::NotThisProtocol)?;
    let peer = u32::from_le_bytes(*version);
    if peer != PROTOCOL_VERSION {
        return Err(WireError::Version { ours: PROTOCOL_VERSION, peer });
    }
    Ok(rest)
}
