//! Who takes part: numbers of users that need no entry in `/etc/passwd`.

/// A user who may use the service, besides the one that runs it.
pub const NEIGHBOUR: u32 = 64_321;
/// A user who may not.
pub const STRANGER: u32 = 64_322;

/// Whether processes can be started as other users.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
