//! The header of a file: how long the rest is, and proof that this device has written it.
//!
//! ```text
//! 0       magic       8
//! 8       form      u32   of these files
//! 12      kind      u32   1 model, 2 data
//! 16      preference i32, priority i32
//! 24      list      u64   bytes of the list that follows the header
//! 32      values    u64   bytes of the values that follow the list, both from a multiple of 64 on
//! 40      digest     32   of list, zeros and values, with the user's key
//! 72      mac        32   of the bytes before it and of all that the files are bound to
//! 104     zeros      24
//! 128
//! ```
//! Numbers are little-endian.

use burst_hal::{
    CACHE_TOKEN_BYTES, Caller, ExecutionPreference, PrepareOptions, Priority, TimePoint,
};

use super::key::{CacheKey, UserKey};
use crate::cache_error::{CacheError, Kind};

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 128;
/// Where lists and values begin: a multiple of this, so that values are aligned for any kernel.
pub(super) const ALIGNMENT: u64 = 64;
const MAGIC: [u8; 8] = *b"burst-cc";
const FORM: u32 = 1;
const MAC_AT: usize = 72;
const MAC_END: usize = MAC_AT + blake3::OUT_LEN;

/// What of a device its files are bound to, besides its key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound<'a> {
    /// The device's name.
    pub(crate) device: &'a str,
    /// Its version.
    pub(crate) version: &'a str,
    /// How it works: what its options change in what it keeps.
    pub(crate) options: &'a str,
    /// Which build of the driver it is: another one may plan and compute otherwise.
    pub(crate) build: &'a str,
}

/// Sources, compiler and target of this driver and of what it is made of, in short.
pub(crate) const BUILD: &str = env!("BURST_DRIVER_BUILD");

/// Makes and checks the headers of one compilation.
pub(crate) struct Seal {
    key: UserKey,
    /// The MAC of a header up to what is the header's own.
    bound: blake3::Hasher,
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) options: PrepareOptions,
    pub(super) list_bytes: u64,
    pub(super) value_bytes: u64,
    pub(super) digest: blake3::Hash,
}

impl Seal {
    /// For the compilation with this token, of this caller's user.
    pub(crate) fn new(
        key: &CacheKey,
        bound: Bound<'_>,
        token: &[u8; CACHE_TOKEN_BYTES],
        caller: &Caller,
    ) -> Self {
        let key = key.of_user(caller.user());
        let mut hasher = key.header_hasher();
        hasher.update(token);
        for text in [bound.device, bound.version, bound.options, bound.build] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        Seal { key, bound: hasher }
    }

    /// Makes the digest of what follows a header.
    pub(super) fn body_hasher(&self) -> blake3::Hasher {
        self.key.body_hasher()
    }

    /// The MAC of a header; `partner` is that of the model file in a data file.
    fn mac(&self, header: &[u8], partner: Option<&blake3::Hash>) -> blake3::Hash {
        let mut hasher = self.bound.clone();
        hasher.update(header);
        if let Some(partner) = partner {
            hasher.update(partner.as_bytes());
        }
        hasher.finalize()
    }

    /// A header as bytes, and its MAC.
    pub(super) fn seal(
        &self,
        header: &Header,
        partner: Option<&blake3::Hash>,
    ) -> ([u8; HEADER_BYTES], blake3::Hash) {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(FORM.to_le_bytes());
        bytes.extend(code(header.kind).to_le_bytes());
        bytes.extend(header.options.preference.code().to_le_bytes());
        bytes.extend(header.options.priority.code().to_le_bytes());
        bytes.extend(header.list_bytes.to_le_bytes());
        bytes.extend(header.value_bytes.to_le_bytes());
        bytes.extend(header.digest.as_bytes());
        let mac = self.mac(&bytes, partner);
        bytes.extend(mac.as_bytes());
        let mut whole = [0; HEADER_BYTES];
        whole[..bytes.len()].copy_from_slice(&bytes);
        (whole, mac)
    }

    /// Puts a right header on the bytes of a file that has one: over what follows it now. Gives its MAC; `None`
    /// where the header cannot be read.
    pub(crate) fn seal_again(
        &self,
        kind: Kind,
        file: &mut [u8],
        partner: Option<&blake3::Hash>,
    ) -> Option<blake3::Hash> {
        let (header, body) = file.split_first_chunk_mut::<HEADER_BYTES>()?;
        let stated = Header::parse(kind, header)?;
        let digest = self.body_hasher().update(body).finalize();
        let (sealed, mac) = self.seal(&Header { digest, ..stated }, partner);
        *header = sealed;
        Some(mac)
    }

    /// What a header says, where this device has written it; and its MAC.
    ///
    /// # Errors
    /// [`CacheError::Foreign`].
    pub(super) fn open(
        &self,
        kind: Kind,
        bytes: &[u8; HEADER_BYTES],
        partner: Option<&blake3::Hash>,
    ) -> Result<(Header, blake3::Hash), CacheError> {
        let foreign = CacheError::Foreign { kind };
        let mac = self.mac(&bytes[..MAC_AT], partner);
        let stated = blake3::Hash::from_slice(&bytes[MAC_AT..MAC_END]).map_err(|_| foreign)?;
        // Hashes are compared in a time that does not depend on where they differ.
        if mac != stated || bytes[MAC_END..] != [0; HEADER_BYTES - MAC_END] {
            return Err(foreign);
        }
        Ok((Header::parse(kind, bytes).ok_or(foreign)?, mac))
    }
}

impl Header {
    fn parse(kind: Kind, bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let mut rest = bytes.as_slice();
        let is_ours = take(&mut rest)? == MAGIC
            && u32::from_le_bytes(take(&mut rest)?) == FORM
            && u32::from_le_bytes(take(&mut rest)?) == code(kind);
        let preference = i32::from_le_bytes(take(&mut rest)?);
        let priority = i32::from_le_bytes(take(&mut rest)?);
        let options = PrepareOptions {
            preference: ExecutionPreference::from_code(preference)?,
            priority: Priority::from_code(priority)?,
            deadline: None::<TimePoint>,
        };
        let list_bytes = u64::from_le_bytes(take(&mut rest)?);
        let value_bytes = u64::from_le_bytes(take(&mut rest)?);
        let digest = blake3::Hash::from_bytes(take(&mut rest)?);
        is_ours.then_some(Header { kind, options, list_bytes, value_bytes, digest })
    }

    /// Where the values begin behind the header, and bytes of all that follows it.
    pub(super) fn extent(&self) -> Option<(u64, u64)> {
        let values_at = self.list_bytes.checked_next_multiple_of(ALIGNMENT)?;
        Some((values_at, values_at.checked_add(self.value_bytes)?))
    }
}

fn code(kind: Kind) -> u32 {
    match kind {
        Kind::Model => 1,
        Kind::Data => 2,
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
