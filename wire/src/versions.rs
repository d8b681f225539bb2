//! Versions of the protocol, and what two ends make of theirs.

use std::fmt;

/// Versions of the protocol that an end speaks: all from the oldest to the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The oldest.
    pub oldest: u32,
    /// The newest.
    pub newest: u32,
}

impl Versions {
    /// What this code speaks.
    pub const SPOKEN: Versions = Versions { oldest: 2, newest: 2 };

    /// Nothing but one version.
    #[must_use]
    pub const fn only(version: u32) -> Self {
        Versions { oldest: version, newest: version }
    }

    /// Whether this version is among them.
    #[must_use]
    pub fn contain(self, version: u32) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }

    /// The newest version that both ends speak.
    #[must_use]
    pub fn common(self, other: Versions) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        Some(newest).filter(|version| self.contain(*version) && other.contain(*version))
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oldest == self.newest {
            true => write!(f, "version {}", self.newest),
            false => write!(f, "versions {} to {}", self.oldest, self.newest),
        }
    }
}
