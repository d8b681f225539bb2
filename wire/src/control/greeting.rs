//! The first message in each direction: who speaks, in which versions, with which additions, within
//! which limits.
//!
//! Its beginning never changes, in any version of the protocol, so that two ends that cannot
//! talk can at least say so:
//!
//! ```text
//! 0          8             12
//! "burst-nn" version u32   from version 2 on a record; later versions only lengthen it
//! ```
//! A client names the newest version that it speaks there, a service the one that it chose, or its
//! own newest where it can choose none.

use bincode::de::{Decode, Decoder};
use bincode::enc::{Encode, Encoder};
use bincode::error::{DecodeError, EncodeError};

use super::bounded::Text;
use super::limits::StatedLimits;
use super::messages::DETAIL_MAX;
use super::record::Record;
use crate::versions::Versions;
use crate::{Features, WireError};

/// What every greeting begins with.
pub const MAGIC: [u8; 8] = *b"burst-nn";
/// The first version whose greetings go on with a record behind the version.
const FIRST_WITH_RECORD: u32 = 2;

/// What a client says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientGreeting {
    /// Versions it speaks.
    pub versions: Versions,
    /// Additions it knows: [`Features`] as bits.
    pub features: u64,
    /// Additions that it cannot do without. A service that does not know one of them refuses.
    pub required: u64,
    /// Its program's name, for logs.
    pub name: Text<64>,
}

/// Whether the service takes the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Welcome {
    /// Calls may follow.
    Accepted,
    /// The client's user may not use this service.
    NotPermitted,
    /// The service has as many clients as it takes; later it may have fewer.
    TooManyClients,
    /// There is no version that both ends speak.
    NoCommonVersion,
    /// The service does not know an addition that the client requires.
    FeatureMissing,
    /// The greeting is malformed.
    Malformed,
    /// A reason of a later version; its detail says more.
    Other(u32),
}

/// What a service answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerGreeting {
    /// The version that is spoken from now on; its newest where it refuses.
    pub version: u32,
    /// Versions it speaks.
    pub versions: Versions,
    /// Whether it takes the client.
    pub welcome: Welcome,
    /// Additions it knows: [`Features`] as bits.
    pub features: u64,
    /// Of the additions that the client requires those that it does not know.
    pub missing: u64,
    /// Its process id as itself sees it.
    pub pid: u32,
    /// Its program's name.
    pub name: Text<64>,
    /// Why it refuses, for people; empty where it does not.
    pub detail: Text<DETAIL_MAX>,
    /// Limits that hold for this client; none where it refuses.
    pub limits: StatedLimits,
}

impl Welcome {
    const KNOWN: [Welcome; 6] = [
        Welcome::Accepted,
        Welcome::NotPermitted,
        Welcome::TooManyClients,
        Welcome::NoCommonVersion,
        Welcome::FeatureMissing,
        Welcome::Malformed,
    ];

    fn number(self) -> u32 {
        match self {
            Welcome::Accepted => 0,
            Welcome::NotPermitted => 1,
            Welcome::TooManyClients => 2,
            Welcome::NoCommonVersion => 3,
            Welcome::FeatureMissing => 4,
            Welcome::Malformed => 5,
            Welcome::Other(number) => number,
        }
    }

    fn from_number(number: u32) -> Self {
        let known = Self::KNOWN.into_iter().find(|welcome| welcome.number() == number);
        known.unwrap_or(Welcome::Other(number))
    }
}

impl Encode for Welcome {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.number().encode(encoder)
    }
}

impl<C> Decode<C> for Welcome {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        u32::decode(decoder).map(Self::from_number)
    }
}

impl ClientGreeting {
    /// The greeting of a program that knows these additions and requires none.
    #[must_use]
    pub fn new(features: Features, name: &str) -> Self {
        let (versions, features) = (Versions::SPOKEN, features.bits());
        ClientGreeting { versions, features, required: 0, name: Text::cut(name) }
    }

    /// The greeting as bytes.
    ///
    /// # Errors
    /// None that this version's greetings can have.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        let ClientGreeting { versions, features, required, name } = self;
        with_prefix(versions.newest, &Record((versions.oldest, features, required, name)))
    }

    /// The greeting from bytes.
    ///
    /// # Errors
    /// [`WireError::NotThisProtocol`]; [`WireError::Version`] for a greeting from before there were
    /// records, or one with a range of versions that cannot be; or a malformed record.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let (newest, record) = without_prefix(bytes)?;
        let Record((oldest, features, required, name)) = super::decode(record)?;
        let versions = Versions { oldest, newest };
        if oldest > newest {
            return Err(WireError::Version { ours: Versions::SPOKEN, peer: versions });
        }
        Ok(ClientGreeting { versions, features, required, name })
    }

    /// Additions that both ends know.
    #[must_use]
    pub fn common(&self, ours: Features) -> Features {
        ours.intersection(Features::from_bits(self.features))
    }

    /// Additions that it requires and that are not among these.
    #[must_use]
    pub fn missing(&self, ours: Features) -> Features {
        Features::from_bits(self.required).without(ours)
    }
}

impl ServerGreeting {
    /// The greeting of a service that takes its client, knows these additions and states no limits.
    #[must_use]
    pub fn accepting(features: Features, name: &str) -> Self {
        ServerGreeting {
            version: Versions::SPOKEN.newest,
            versions: Versions::SPOKEN,
            welcome: Welcome::Accepted,
            features: features.bits(),
            missing: 0,
            pid: std::process::id(),
            name: Text::cut(name),
            detail: Text::default(),
            limits: StatedLimits::default(),
        }
    }

    /// The greeting as bytes.
    ///
    /// # Errors
    /// [`WireError::Malformed`] for more limits than one greeting may state.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        let Versions { oldest, newest } = self.versions;
        let ServerGreeting { welcome, features, missing, pid, name, detail, limits, .. } = self;
        let fields = (oldest, newest, welcome, features, missing, pid, name, detail, limits);
        with_prefix(self.version, &Record(fields))
    }

    /// The greeting from bytes.
    ///
    /// # Errors
    /// [`WireError::NotThisProtocol`]; [`WireError::Version`] for a service from before there were
    /// records, or of another version whose record cannot be read; or a malformed record.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let (version, record) = without_prefix(bytes)?;
        let record = super::decode(record).map_err(|malformed| {
            let (ours, peer) = (Versions::SPOKEN, Versions::only(version));
            if ours.contain(version) { malformed } else { WireError::Version { ours, peer } }
        });
        let Record((oldest, newest, welcome, features, missing, pid, name, detail, limits)) =
            record?;
        let versions = Versions { oldest, newest };
        Ok(ServerGreeting {
            version,
            versions,
            welcome,
            features,
            missing,
            pid,
            name,
            detail,
            limits,
        })
    }

    /// Additions that both ends know.
    #[must_use]
    pub fn common(&self, ours: Features) -> Features {
        ours.intersection(Features::from_bits(self.features))
    }
}

fn with_prefix(version: u32, record: &impl Encode) -> Result<Vec<u8>, WireError> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&super::encode(record)?);
    Ok(bytes)
}

/// The version, and the record behind it.
fn without_prefix(bytes: &[u8]) -> Result<(u32, &[u8]), WireError> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(WireError::NotThisProtocol)?;
    let (version, record) = rest.split_first_chunk::<4>().ok_or(WireError::NotThisProtocol)?;
    let version = u32::from_le_bytes(*version);
    if version < FIRST_WITH_RECORD {
        let (ours, peer) = (Versions::SPOKEN, Versions::only(version));
        return Err(WireError::Version { ours, peer });
    }
    Ok((version, record))
}
