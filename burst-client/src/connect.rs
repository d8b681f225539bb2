//! From a path to a socket on which both ends have said who they are.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use burst_wire::control::{ClientGreeting, ServerGreeting, Text, Welcome};
use burst_wire::socket::{self, Inbox};
use burst_wire::{Features, WireError};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::ClientError;

/// Everything this client can do beyond HAL 1.2.
pub(crate) const FEATURES: Features = Features::ALL;
/// How long a service may take to answer the greeting.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a service may leave its socket unread; nothing that is sent needs more than room.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Who is at the other end.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) pid: u32,
    /// Its process as the kernel knows it; `None` where that is not known for sure.
    pub(crate) verified_pid: Option<rustix::process::Pid>,
    pub(crate) name: String,
    pub(crate) features: Features,
}

/// Where a service listens unless told otherwise: `$BURST_SOCKET`, else `burst.sock` in
/// `$XDG_RUNTIME_DIR`, else in `/run/user/UID`.
#[must_use]
pub fn default_socket_path() -> PathBuf {
    if let Some(path) = std::env::var_os("BURST_SOCKET") {
        return path.into();
    }
    let directory = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(
        || PathBuf::from(format!("/run/user/{}", rustix::process::getuid().as_raw())),
        PathBuf::from,
    );
    directory.join("burst.sock")
}

/// A socket connected to the service that listens at `path`.
pub(crate) fn dial(path: &Path) -> Result<OwnedFd, ClientError> {
    let owned = || path.to_owned();
    let failed = |errno| ClientError::Connect { path: owned(), errno };
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket =
        rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(failed)?;
    // Also for connecting: a service that was stopped accepts nobody, and its queue can be full.
    socket::set_send_timeout(&socket, Some(SEND_TIMEOUT))?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => Ok(socket),
        Err(Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR) => {
            Err(ClientError::NobodyListens { path: owned() })
        }
        Err(Errno::ACCESS | Errno::PERM) => Err(ClientError::MayNotConnect { path: owned() }),
        // A socket of another type, so of another service.
        Err(Errno::PROTOTYPE) => Err(ClientError::NotThisProtocol),
        Err(errno) => Err(failed(errno)),
    }
}

/// Greets the service and hears who it is.
pub(crate) fn greet(socket: &OwnedFd, offered: Features) -> Result<Peer, ClientError> {
    socket::set_send_timeout(socket, Some(SEND_TIMEOUT))?;
    socket::set_receive_timeout(socket, Some(GREETING_TIMEOUT))?;
    let greeting = ClientGreeting { features: offered.bits(), name: Text::cut(&program_name()) };
    match socket::send(socket, &greeting.encode()?, &[]) {
        // It may have closed for a reason that it says first.
        Ok(()) | Err(WireError::Closed) => {}
        Err(error) => return Err(error.into()),
    }
    let mut inbox = Inbox::default();
    match socket::receive(socket, &mut inbox) {
        Ok(()) => {}
        Err(error) if socket::timed_out(&error) => return Err(ClientError::NoGreeting),
        Err(WireError::Closed | WireError::Truncated) => return Err(ClientError::NotThisProtocol),
        Err(error) => return Err(error.into()),
    }
    let greeting = match ServerGreeting::decode(inbox.message()) {
        Err(WireError::Version { ours, peer }) => {
            return Err(ClientError::Version { client: ours, service: peer });
        }
        Err(WireError::NotThisProtocol) => return Err(ClientError::NotThisProtocol),
        other => other?,
    };
    match greeting.welcome {
        Welcome::Accepted => {}
        Welcome::NotPermitted => return Err(ClientError::NotPermitted),
        Welcome::TooManyClients => return Err(ClientError::TooManyClients),
    }
    socket::set_receive_timeout(socket, None)?;
    identify(socket, &greeting, offered)
}

/// The kernel knows who made the other end. For a socket pair that was this process, and then
/// the greeting has to do.
fn identify(
    socket: &OwnedFd,
    greeting: &ServerGreeting,
    offered: Features,
) -> Result<Peer, ClientError> {
    let credentials =
        rustix::net::sockopt::socket_peercred(socket).map_err(ClientError::system("getsockopt"))?;
    let made_here = credentials.pid == rustix::process::getpid();
    let verified_pid = Some(credentials.pid).filter(|_| !made_here);
    let pid = verified_pid
        .and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok())
        .unwrap_or(greeting.pid);
    Ok(Peer {
        pid,
        verified_pid,
        name: greeting.name.as_str().to_owned(),
        features: greeting.common(offered),
    })
}

fn program_name() -> String {
    std::env::args_os()
        .next()
        .and_then(|path| Path::new(&path).file_name()?.to_str().map(str::to_owned))
        .unwrap_or_default()
}
