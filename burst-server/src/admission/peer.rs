//! Who is at the other end of a socket.

use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, sockopt};
use rustix::io::Errno;

/// The process that connected a socket, as the kernel knew it then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its number; `None` for a process of another namespace that has none in this one.
    pub(crate) pid: Option<u32>,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Peer {
    /// Asks the kernel.
    ///
    /// # Errors
    /// It is no socket of this machine.
    pub(crate) fn of(socket: impl AsFd) -> Result<Self, Errno> {
        let credentials = getsockopt(&socket, sockopt::PeerCredentials)
            .map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        Ok(Peer::new(credentials.pid(), credentials.uid(), credentials.gid()))
    }

    fn new(pid: i32, uid: u32, gid: u32) -> Self {
        let pid = u32::try_from(pid).ok().filter(|pid| *pid > 0);
        Peer { pid, uid, gid }
    }

    /// Whether it is root or this process's own user, who see everything.
    pub(crate) fn is_owner(&self) -> bool {
        self.uid == 0 || self.uid == rustix::process::geteuid().as_raw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_known_by_the_kernel_and_one_of_another_namespace_has_no_number() {
        let (one, _other) = burst_wire::socket::pair().unwrap();
        let own = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        let peer = Peer::of(&one).unwrap();
        assert_eq!(peer, Peer { pid: Some(std::process::id()), uid: own, gid: group });
        assert!(peer.is_owner());
        assert_eq!(Peer::new(0, 7, 8), Peer { pid: None, uid: 7, gid: 8 });
        let file = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(Peer::of(&file), Err(Errno::NOTSOCK));
    }
}
