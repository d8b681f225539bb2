//! The socket of a service: made, accepted from, removed.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use burst_shm::allow_descriptors;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    FileType, Mode, OFlags, chmod, fchmod, fcntl_getfl, fcntl_setfl, fstat, lstat, open, unlink,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};
use rustix::process::geteuid;

use super::folder_lock::FolderLock;
use crate::ServerError;
use crate::panics::lock;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// How long to leave connections waiting when the system has no descriptor or memory for one.
pub(crate) const RECOVERY: Duration = Duration::from_millis(100);

/// The bits of a file's mode that say who may do what.
const PERMISSIONS: u32 = 0o777;

/// How long no connection may have had to wait before a shortage counts as over.
const CALM: Duration = Duration::from_secs(1);

/// A socket that clients connect to. Its connections take no descriptors until somebody says otherwise
/// ([`allow_descriptors`]), so that letting go of one waits for nothing that a stranger has put into it.
///
/// Dropping it removes its file, where the process may still do that: within a [`Sandbox`](crate::Sandbox) the file
/// stays, nobody can connect to it, and the next service that listens there replaces it.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// The file and its identity when it was made; a file that others put there since stays.
    file: Option<SocketFile>,
    /// Set once it has [ended](Listener::end).
    ended: OnceLock<()>,
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
    /// Of several services that start at the same path at the same time one has it: each locks the folder (`flock`)
    /// while it looks and until it listens. Where a folder cannot be locked, because it may be written and not read or
    /// somebody else keeps the lock for longer than two seconds, it goes without; one that cannot be written is
    /// [`ServerError::Listen`] as ever.
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
        // Until it listens: another service would take it for one that a dead service left behind.
        let _locked = FolderLock::of(path);
        remove_stale(path, &address, kind)?;
        let socket = new_socket(kind).map_err(failed)?;
        allow_descriptors(&socket, false).map_err(failed)?;
        // Before `bind`: the file is made with the mode of its socket less the bits of the umask, so
        // that there is no moment at which others than the intended could connect.
        fchmod(&socket, Mode::from_raw_mode(mode)).map_err(failed)?;
        match bind(&socket, &address) {
            Err(Errno::ADDRINUSE) => {
                return Err(ServerError::PathInUse { path: path.to_owned() });
            }
            other => other.map_err(failed)?,
        }
        let file = SocketFile { path: path.to_owned(), identity: identity(path).map_err(failed)? };
        let listener = Listener {
            socket,
            file: Some(file),
            ended: OnceLock::new(),
            shortage: Mutex::default(),
        };
        give_mode(path, mode).map_err(failed)?;
        listen(&listener.socket, BACKLOG).map_err(failed)?;
        Ok(listener)
    }

    /// Takes over a listening socket that a supervisor made (socket activation).
    ///
    /// # Errors
    /// The descriptor cannot be made one that does not wait, or is no Unix socket.
    pub fn from_socket(socket: OwnedFd) -> Result<Self, ServerError> {
        // Others may accept from it, too: what was there to accept may be gone.
        let flags = fcntl_getfl(&socket).map_err(system("fcntl"))?;
        fcntl_setfl(&socket, flags | OFlags::NONBLOCK).map_err(system("fcntl"))?;
        allow_descriptors(&socket, false).map_err(system("setsockopt"))?;
        Ok(Listener { socket, file: None, ended: OnceLock::new(), shortage: Mutex::default() })
    }

    /// Takes no further connections: clients that come later are told at once that no service is there;
    /// those that have connected are not affected. The socket's file goes where this made it, it is still
    /// the same, and the process may. A supervisor's socket stays as it is: it belongs to the next service.
    pub fn end(&self) {
        if self.ended.set(()).is_err() {
            return; // nothing is left to do, nor to say
        }
        if self.file.is_none() {
            // As it came: whoever accepts from it next may know nothing of this.
            let _ = allow_descriptors(&self.socket, true);
        } else {
            // The only error is that nobody listens any more.
            let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        }
        let Some(file) = &self.file else { return };
        // A service that starts just now finds that nobody listens, and puts its own there.
        let _locked = FolderLock::of(&file.path);
        if identity(&file.path) == Ok(file.identity)
            && let Err(errno) = unlink(&file.path)
        {
            let path = file.path.display();
            match errno {
                Errno::PERM | Errno::ACCESS => {
                    tracing::info!(%path, "the socket's file stays; the next service replaces it");
                }
                _ => tracing::warn!(%path, %errno, "cannot remove the socket's file"),
            }
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
            match self.accept_now(&starved)? {
                Accept::Connection(socket) => return Ok(Some(socket)),
                Accept::None => {}
                Accept::Shortage => {
                    let mut fds = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
                    let recovery = Timespec::try_from(RECOVERY).unwrap_or_default();
                    retry_on_intr(|| poll(&mut fds, Some(&recovery))).map_err(system("poll"))?;
                }
            }
        }
    }

    /// The connection that waits, if there is one; `starved` is called once where the system has no
    /// descriptor or memory for it.
    pub(crate) fn accept_now(&self, starved: impl Fn()) -> Result<Accept, ServerError> {
        match accept_with(&self.socket, SocketFlags::CLOEXEC) {
            Ok(socket) => {
                self.relieved();
                if self.file.is_none() {
                    // Another service that had this socket may have given it back meanwhile, as `end` does. Without
                    // the option everything else goes on.
                    let _ = allow_descriptors(&self.socket, false);
                }
                Ok(Accept::Connection(socket))
            }
            // The client hung up before its connection was accepted.
            Err(Errno::CONNABORTED | Errno::INTR | Errno::AGAIN) => Ok(Accept::None),
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)) => {
                if self.is_first_of_shortage() {
                    tracing::error!(%errno, "cannot take connections just now; they wait in the backlog");
                    starved();
                }
                Ok(Accept::Shortage)
            }
            Err(errno) => Err(ServerError::System { call: "accept", errno }),
        }
    }
}

/// What came of accepting.
#[derive(Debug)]
pub(crate) enum Accept {
    Connection(OwnedFd),
    /// There is none.
    None,
    /// There is one that waits: try again after [`RECOVERY`].
    Shortage,
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
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
        self.end();
    }
}

fn system(call: &'static str) -> impl Fn(Errno) -> ServerError {
    move |errno| ServerError::System { call, errno }
}

fn new_socket(kind: SocketType) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// Gives the socket's file the mode that it was meant to have: the umask may have left less. Nobody
/// listens yet, so nobody can connect in between.
fn give_mode(path: &Path, mode: u32) -> Result<(), Errno> {
    // Whoever may write to the folder may put something else there: what is opened is what is looked
    // at and changed.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    let is_socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
    if !is_socket || stat.st_uid != geteuid().as_raw() {
        return Err(Errno::STALE);
    }
    if stat.st_mode & PERMISSIONS == mode {
        return Ok(());
    }
    // `fchmod` takes no descriptor of a mere path.
    chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), Mode::from_raw_mode(mode))
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Who starts at the same moment.
    const SERVICES: usize = 4;

    #[test]
    fn of_services_that_start_at_one_path_at_once_one_has_it_and_is_found_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("burst.sock");
        let address = SocketAddrUnix::new(&path).unwrap();
        for round in 0..200 {
            // What a dead service left behind.
            let stale = new_socket(SocketType::SEQPACKET).unwrap();
            bind(&stale, &address).unwrap();
            drop(stale);
            let at_once = Barrier::new(SERVICES);
            let start = || {
                at_once.wait();
                Listener::bind(&path)
            };
            let bound: Vec<Result<Listener, ServerError>> = std::thread::scope(|scope| {
                let threads = [(); SERVICES].map(|()| scope.spawn(start));
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let (have, others): (Vec<_>, Vec<_>) = bound.into_iter().partition(Result::is_ok);
            assert_eq!(have.len(), 1, "round {round}: {have:?} {others:?}");
            let in_use = |other: &Result<_, _>| matches!(other, Err(ServerError::PathInUse { .. }));
            assert!(others.iter().all(in_use), "round {round}: {others:?}");
            let client = new_socket(SocketType::SEQPACKET).unwrap();
            assert_eq!(connect(&client, &address), Ok(()), "round {round}");
            drop(have);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_service_that_ends_leaves_the_socket_of_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("burst.sock");
        for round in 0..200 {
            let ends = Listener::bind(&path).unwrap();
            let at_once = Barrier::new(2);
            let next = std::thread::scope(|scope| {
                let next = scope.spawn(|| {
                    at_once.wait();
                    loop {
                        match Listener::bind(&path) {
                            Err(ServerError::PathInUse { .. }) => std::thread::yield_now(),
                            other => break other.unwrap(),
                        }
                    }
                });
                at_once.wait();
                drop(ends);
                next.join().unwrap()
            });
            assert_eq!(identity(&path), Ok(next.file.as_ref().unwrap().identity), "round {round}");
        }
    }
}
