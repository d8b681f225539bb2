//! What a service started by systemd needs: the socket that systemd made for it, and messages to
//! systemd about its state.
//!
//! Only the two protocols, which need no library of systemd's: descriptors from number 3 on with
//! `LISTEN_FDS` and `LISTEN_PID`, and datagrams to the socket that `NOTIFY_SOCKET` names.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};

use super::listen::Listener;
use crate::ServerError;

/// The listening socket that systemd handed over, if it did: `ListenSequentialPacket=` of a
/// socket unit. The variables are taken out of the environment.
///
/// Call it before any thread starts.
///
/// # Errors
/// [`ServerError::Inherited`]: more than one socket, or one of another kind.
pub fn inherited_listener() -> Result<Option<Listener>, ServerError> {
    let mut inherited = listenfd::ListenFd::from_env();
    match inherited.len() {
        0 => return Ok(None),
        1 => {}
        sockets => {
            let reason = format!("{sockets} sockets were handed over where one is expected");
            return Err(ServerError::Inherited { reason });
        }
    }
    let hint = "listening Unix socket of sequenced packets";
    let taken = inherited
        .take_custom::<OwnedFd>(0, libc::AF_UNIX, libc::SOCK_SEQPACKET, hint)
        .map_err(|error| ServerError::Inherited { reason: error.to_string() })?;
    let Some(socket) = taken else { return Ok(None) };
    if rustix::net::sockopt::socket_acceptconn(&socket) != Ok(true) {
        let reason = "nobody listens on the socket that is descriptor 3".to_owned();
        return Err(ServerError::Inherited { reason });
    }
    Ok(Some(Listener::from_socket(socket)?))
}

/// Tells the supervisor of the service (systemd, or another one) how the service is. Without a
/// supervisor it does nothing.
#[derive(Debug)]
pub struct Notifier(Option<OwnedFd>);

impl Notifier {
    /// Connects to the socket that `NOTIFY_SOCKET` names, if it is set. Do so before the sandbox
    /// closes.
    ///
    /// # Errors
    /// The socket cannot be reached: the supervisor would wait for messages in vain.
    pub fn from_environment() -> Result<Self, ServerError> {
        match std::env::var_os("NOTIFY_SOCKET") {
            Some(name) if !name.is_empty() => Notifier::connect(&name),
            _ => Ok(Notifier(None)),
        }
    }

    /// Connects to a path, or to an abstract name after `@`.
    fn connect(name: &OsStr) -> Result<Self, ServerError> {
        let failed = |errno| ServerError::System { call: "connect to NOTIFY_SOCKET", errno };
        let address = match name.as_bytes() {
            [b'@', rest @ ..] => SocketAddrUnix::new_abstract_name(rest),
            path @ [b'/', ..] => SocketAddrUnix::new(path),
            _ => Err(Errno::AFNOSUPPORT),
        }
        .map_err(failed)?;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
                .map_err(failed)?;
        connect(&socket, &address).map_err(failed)?;
        Ok(Notifier(Some(socket)))
    }

    /// The service accepts connections from now on.
    pub fn ready(&self) {
        self.tell("READY=1");
    }

    /// The service ends in order.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// A line for `systemctl status`.
    pub fn status(&self, line: &str) {
        self.tell(&format!("STATUS={}", line.replace('\n', " ")));
    }

    fn tell(&self, news: &str) {
        let Some(socket) = &self.0 else { return };
        if let Err(errno) = send(socket, news.as_bytes(), SendFlags::NOSIGNAL) {
            tracing::warn!(news, %errno, "cannot tell the supervisor");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use super::*;

    fn news(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn news_reach_a_socket_with_a_path_and_one_with_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let supervisor = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::connect(path.as_os_str()).unwrap();
        notifier.ready();
        notifier.status("two\nlines");
        notifier.stopping();
        assert_eq!(news(&supervisor), "READY=1");
        assert_eq!(news(&supervisor), "STATUS=two lines");
        assert_eq!(news(&supervisor), "STOPPING=1");

        let name = format!("burst-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let supervisor = UnixDatagram::bind_addr(&address).unwrap();
        Notifier::connect(OsStr::new(&format!("@{name}"))).unwrap().ready();
        assert_eq!(news(&supervisor), "READY=1");
    }

    #[test]
    fn a_supervisor_that_is_not_there_is_an_error_and_none_at_all_is_not() {
        for name in ["/nonexistent/notify", "@nobody-is-here", "vsock:2:1234", "relative"] {
            assert!(Notifier::connect(OsStr::new(name)).is_err(), "{name}");
        }
        Notifier(None).ready();
    }
}
