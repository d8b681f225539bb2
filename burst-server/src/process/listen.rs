//! The socket of a service: made, accepted from, removed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, fchmod, lstat, unlink};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};

use crate::ServerError;
use crate::panics::lock;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// How long to leave connections waiting when the system has no descriptor or memory for one.
const RECOVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How long no connection may have had to wait before a shortage counts as over.
const CALM: Duration = Duration::from_secs(1);

/// A socket that clients connect to. Dropping it removes its file.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// The file and its identity when it was made; a file that others put there since stays.
    file: Option<SocketFile>,
    /// When the system last had no descriptor or memory left for a connection; `None` once that is over.
    shortage: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Listener {
    /// Makes a socket at `path`, for its owner alone (mode 0600). A socket that a dead service
    /// left behind is replaced.
    ///
    /// # Errors
    /// [`ServerError::PathInUse`] when another process listens there, [`ServerError::NotASocket`] when
    /// something else lies there, [`ServerError::Listen`] otherwise.
    pub fn bind(path: impl AsRef<Path>) -> Result<Self, ServerError> {
        Self::bind_with_mode(path, 0o600)
    }

    /// As [`Listener::bind`], with a mode that lets other users connect; the service then decides by
    /// [`Access`](crate::Access) whom to serve.
    ///
    /// # Errors
    /// As [`Listener::bind`].
    pub fn bind_with_mode(path: impl AsRef<Path>, mode: u32) -> Result<Self, ServerError> {
        Self::bind_socket(path.as_ref(), mode, SocketType::SEQPACKET)
    }

    /// A socket of bytes, for [`serve_admin`](crate::serve_admin).
    ///
    /// # Errors
    /// As [`Listener::bind`].
    pub fn bind_admin(path: impl AsRef<Path>, mode: u32) -> Result<Self, ServerError> {
        Self::bind_socket(path.as_ref(), mode, SocketType::STREAM)
    }

    fn bind_socket(path: &Path, mode: u32, kind: SocketType) -> Result<Self, ServerError> {
        let failed = |errno| ServerError::Listen { path: path.to_owned(), errno };
        let address = SocketAddrUnix::new(path).map_err(failed)?;
        remove_stale(path, &address, kind)?;
        let socket = new_socket(kind).map_err(failed)?;
        // Before `bind`: the file is made with the mode of its socket, so that there is no
        // moment at which others could connect.
        fchmod(&socket, Mode::from_raw_mode(mode)).map_err(failed)?;
        match bind(&socket, &address) {
            Err(Errno::ADDRINUSE) => {
                return Err(ServerError::PathInUse { path: path.to_owned() });
            }
            other => other.map_err(failed)?,
        }
        let file = SocketFile { path: path.to_owned(), identity: identity(path).map_err(failed)? };
        let listener = Listener { socket, file: Some(file), shortage: Mutex::default() };
        listen(&listener.socket, BACKLOG).map_err(failed)?;
        Ok(listener)
    }

    /// Takes over a listening socket that a supervisor made (socket activation).
    #[must_use]
    pub fn from_socket(socket: OwnedFd) -> Self {
        Listener { socket, file: None, shortage: Mutex::default() }
    }

    /// The folder in which the socket has a name that goes with it.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        let folder = self.file.as_ref()?.path.parent()?;
        Some(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    }

    /// Removes the socket's file, where this made it and it is still the same. Clients that come later are
    /// told at once that no service is there; those that have connected are not affected.
    pub fn remove_file(&self) {
        if let Some(file) = &self.file
            && identity(&file.path) == Ok(file.identity)
            && let Err(errno) = unlink(&file.path)
        {
            tracing::warn!(path = %file.path.display(), %errno, "cannot remove the socket's file");
        }
    }

    /// The next connection; `None` once stopped.
    ///
    /// Where the system has no descriptor or memory for a connection, that waits in the backlog: this
    /// tries again ten times a second, and calls `starved` once.
    pub(crate) fn accept(
        &self,
        stop: &Stop,
        starved: impl Fn(),
    ) -> Result<Option<OwnedFd>, ServerError> {
        loop {
            let mut fds = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
            ];
            retry_on_intr(|| poll(&mut fds, None)).map_err(system("poll"))?;
            if !fds[1].revents().is_empty() {
                return Ok(None);
            }
            match accept_with(&self.socket, SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    self.relieved();
                    return Ok(Some(socket));
                }
                // The client hung up before its connection was accepted.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::AGAIN) => {}
                Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)) => {
                    if self.is_first_of_shortage() {
                        tracing::error!(%errno, "cannot take connections just now; they wait in the backlog");
                        starved();
                    }
                    let mut fds = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
                    retry_on_intr(|| poll(&mut fds, Some(&RECOVERY))).map_err(system("poll"))?;
                }
                Err(errno) => return Err(ServerError::System { call: "accept", errno }),
            }
        }
    }
}

impl Listener {
    /// Notes that the system had nothing left for a connection; gives whether that begins a shortage.
    fn is_first_of_shortage(&self) -> bool {
        let mut shortage = lock(&self.shortage);
        shortage.replace(Instant::now()).is_none()
    }

    /// Notes that a connection was accepted. A shortage is over when none was met for [`CALM`]; until
    /// then it may come and go with every client that leaves.
    fn relieved(&self) {
        let mut shortage = lock(&self.shortage);
        if shortage.is_some_and(|last| last.elapsed() >= CALM) {
            *shortage = None;
            tracing::info!("connections are accepted again");
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.remove_file();
    }
}

fn system(call: &'static str) -> impl Fn(Errno) -> ServerError {
    move |errno| ServerError::System { call, errno }
}

fn new_socket(kind: SocketType) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
}

fn identity(path: &Path) -> Result<(u64, u64), Errno> {
    let stat = lstat(path)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Removes the socket that a dead service left behind, and never anything else.
fn remove_stale(
    path: &Path,
    address: &SocketAddrUnix,
    kind: SocketType,
) -> Result<(), ServerError> {
    let failed = |errno| ServerError::Listen { path: path.to_owned(), errno };
    let stat = match lstat(path) {
        Err(Errno::NOENT) => return Ok(()),
        other => other.map_err(failed)?,
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(ServerError::NotASocket { path: path.to_owned() });
    }
    match connect(&new_socket(kind).map_err(failed)?, address) {
        Err(Errno::CONNREFUSED) => unlink(path).map_err(failed),
        _ => Err(ServerError::PathInUse { path: path.to_owned() }),
    }
}

/// The means to end [`Service::run`](crate::Service::run) from another thread or a signal handler's
/// thread: it is stopped when the [`Stopper`] is dropped.
#[derive(Debug)]
pub struct Stop {
    read: OwnedFd,
}

/// Stops the holder of its [`Stop`] when dropped.
#[derive(Debug)]
pub struct Stopper {
    _write: OwnedFd,
}

impl Stop {
    /// A pair.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> Result<(Stopper, Stop), ServerError> {
        let (read, write) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(system("pipe"))?;
        Ok((Stopper { _write: write }, Stop { read }))
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
