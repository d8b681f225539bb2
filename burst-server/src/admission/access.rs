//! Which users may connect.

/// Who may use a service, besides its own user and root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Users.
    pub uids: Vec<u32>,
    /// Groups: the client's process must have one of them as its own.
    pub gids: Vec<u32>,
    /// Everybody who may open the socket's file: only the file's mode keeps others out.
    pub anyone: bool,
}

impl Access {
    /// Whether a peer with these credentials is let in.
    #[must_use]
    pub fn permits(&self, uid: u32, gid: u32) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.anyone
            || uid == 0
            || uid == own
            || self.uids.contains(&uid)
            || self.gids.contains(&gid)
    }
}
