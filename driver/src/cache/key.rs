//! The secret that makes compilations in files ours, and what is derived from it.

use std::fmt;

/// A secret of whoever makes devices. Files that one device has written are accepted by every device of
/// the same build with the same key.
#[derive(Clone)]
pub struct CacheKey([u8; CacheKey::BYTES]);

/// Names the only use of a key, so that the same secret used elsewhere gives other keys.
const OF_A_USER: &str = "burst-driver 2026 compilation cache: the key of one user";
const OF_HEADERS: &str = "burst-driver 2026 compilation cache: headers";
const OF_BODIES: &str = "burst-driver 2026 compilation cache: bodies";

impl CacheKey {
    /// Bytes of a key.
    pub const BYTES: usize = 32;

    /// A key of these bytes, which nobody can guess.
    #[must_use]
    pub fn new(bytes: [u8; CacheKey::BYTES]) -> Self {
        CacheKey(bytes)
    }

    /// The key for this user, or for the device's own process.
    pub(super) fn of_user(&self, user: Option<u32>) -> UserKey {
        let mut hasher = blake3::Hasher::new_derive_key(OF_A_USER);
        hasher.update(&self.0);
        if let Some(user) = user {
            hasher.update(&user.to_le_bytes());
        }
        UserKey(*hasher.finalize().as_bytes())
    }
}

/// Says nothing: a key has no place in a log.
impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheKey")
    }
}

/// The key of one user.
pub(super) struct UserKey([u8; CacheKey::BYTES]);

impl UserKey {
    /// Makes the MAC of a header.
    pub(super) fn header_hasher(&self) -> blake3::Hasher {
        self.hasher(OF_HEADERS)
    }

    /// Makes the digest of what follows a header.
    pub(super) fn body_hasher(&self) -> blake3::Hasher {
        self.hasher(OF_BODIES)
    }

    fn hasher(&self, purpose: &str) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&blake3::derive_key(purpose, &self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_purposes_have_keys_of_their_own_and_none_is_printed() {
        let key = CacheKey::new([7; 32]);
        let users = [None, Some(0), Some(1), Some(u32::MAX)];
        let mut digests: Vec<_> = users
            .iter()
            .map(|user| key.of_user(*user))
            .flat_map(|key| [key.header_hasher(), key.body_hasher()])
            .chain([CacheKey::new([8; 32]).of_user(None).header_hasher()])
            .map(|hasher| *hasher.finalize().as_bytes())
            .collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 2 * users.len() + 1);
        assert_eq!(format!("{key:?}"), "CacheKey");
    }
}
