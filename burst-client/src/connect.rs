//! From a path to a socket on which both ends have said who they are.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use burst_shm::{Sender, SenderWatch};
use burst_wire::control::{
    ClientGreeting, MESSAGE_MAX, ServerGreeting, StatedLimits, Versions, Welcome,
};
use burst_wire::socket;
use burst_wire::{Features, WireError};
use fmq::Deadline;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use crate::ClientError;
use crate::waiting::remaining;

/// Everything this client can do beyond HAL 1.2.
const FEATURES: Features = Features::ALL;
/// How long a service may take to answer the greeting.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a service may leave its socket unread; nothing that is sent needs more than room.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest wait for anything.
const MOMENT: Duration = Duration::from_millis(1);

/// How a connection is made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Additions to HAL 1.2 that the program can use.
    pub features: Features,
    /// Additions that the program cannot do without: a service that lacks one refuses the
    /// connection ([`ClientError::FeatureMissing`]).
    pub required: Features,
    /// When to give up. Connecting gives up earlier where a service leaves its socket unread for
    /// 10 s, or takes 5 s to answer the greeting.
    pub deadline: Deadline,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        let (features, required) = (FEATURES, Features::NONE);
        ConnectOptions { features, required, deadline: Deadline::never() }
    }
}

impl ConnectOptions {
    /// These options with another deadline.
    #[must_use]
    pub fn until(self, deadline: Deadline) -> Self {
        ConnectOptions { deadline, ..self }
    }
}

/// Who is at the other end.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Its process id, for people; 0 where it is not known.
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) features: Features,
    pub(crate) limits: StatedLimits,
}

/// A service that takes this client.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) peer: Peer,
    /// The process that answered; `None` where the kernel does not tell, or where it is this one.
    pub(crate) process: Option<OwnedFd>,
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
pub(crate) fn dial(path: &Path, deadline: Deadline) -> Result<OwnedFd, ClientError> {
    let owned = || path.to_owned();
    let failed = |errno| ClientError::Connect { path: owned(), errno };
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket =
        rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(failed)?;
    // Also for connecting: a service that was stopped accepts nobody, and its queue can be full.
    socket::set_send_timeout(&socket, Some(patience(SEND_TIMEOUT, deadline)))?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => Ok(socket),
        Err(Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR) => {
            Err(ClientError::NobodyListens { path: owned() })
        }
        Err(Errno::ACCESS | Errno::PERM) => Err(ClientError::MayNotConnect { path: owned() }),
        // A socket of another type, so of another service.
        Err(Errno::PROTOTYPE) => Err(ClientError::NotThisProtocol),
        // The deadline, where it came first.
        Err(Errno::AGAIN) if has_passed(deadline) => Err(ClientError::Timeout),
        Err(errno) => Err(failed(errno)),
    }
}

/// How long to wait for something that may take so long at most, until a deadline. For a moment also
/// where it has passed: the reason why there is no connection says more than that it is late.
fn patience(longest: Duration, deadline: Deadline) -> Duration {
    remaining(deadline).map_or(longest, |left| left.clamp(MOMENT, longest))
}

fn has_passed(deadline: Deadline) -> bool {
    remaining(deadline).is_some_and(|left| left.is_zero())
}

/// Greets the service and hears who it is.
pub(crate) fn greet(socket: &OwnedFd, options: &ConnectOptions) -> Result<Greeted, ClientError> {
    let ConnectOptions { features, required, deadline } = *options;
    socket::set_send_timeout(socket, Some(patience(SEND_TIMEOUT, deadline)))?;
    let greeting = ClientGreeting {
        required: required.bits(),
        ..ClientGreeting::new(features.union(required), &program_name())
    };
    // Before the greeting, so that the answer comes with the kernel's word for who sent it.
    let watch = SenderWatch::begin(socket).map_err(ClientError::system("setsockopt"))?;
    match socket::send(socket, &greeting.encode()?, &[]) {
        // It may have closed for a reason that it says first.
        Ok(()) | Err(WireError::Closed) => {}
        Err(error) if socket::timed_out(&error) => return Err(ClientError::NoGreeting),
        Err(error) => return Err(error.into()),
    }
    socket::set_receive_timeout(socket, Some(patience(GREETING_TIMEOUT, deadline)))?;
    let mut bytes = vec![0; MESSAGE_MAX];
    let packet = match watch.receive(&mut bytes) {
        Ok(packet) => packet,
        Err(Errno::AGAIN) if has_passed(deadline) => return Err(ClientError::Timeout),
        Err(Errno::AGAIN) => return Err(ClientError::NoGreeting),
        Err(Errno::CONNRESET | Errno::NOTCONN | Errno::MSGSIZE) => {
            return Err(ClientError::NotThisProtocol);
        }
        Err(errno) => return Err(WireError::from(errno).into()),
    };
    drop(watch);
    // None, or more than any service of this protocol says.
    let answer = bytes.get(..packet.length).filter(|answer| !answer.is_empty());
    let answer = welcomed(answer.ok_or(ClientError::NotThisProtocol)?)?;
    socket::set_receive_timeout(socket, None)?;
    socket::set_send_timeout(socket, Some(SEND_TIMEOUT))?;
    Ok(Greeted {
        peer: Peer {
            pid: other_pid(&packet.sender).unwrap_or(answer.pid),
            version: answer.version,
            features: answer.common(features.union(required)),
            name: answer.name.as_str().to_owned(),
            limits: answer.limits,
        },
        process: process_of(packet.sender),
    })
}

/// The answer of a service that takes this client.
fn welcomed(answer: &[u8]) -> Result<ServerGreeting, ClientError> {
    let answer = match ServerGreeting::decode(answer) {
        Err(WireError::Version { ours, peer }) => {
            return Err(ClientError::Version { client: ours, service: peer });
        }
        Err(WireError::NotThisProtocol) => return Err(ClientError::NotThisProtocol),
        other => other?,
    };
    let detail = || answer.detail.as_str().into();
    match answer.welcome {
        Welcome::Accepted if Versions::SPOKEN.contain(answer.version) => Ok(answer),
        Welcome::Accepted | Welcome::NoCommonVersion => {
            Err(ClientError::Version { client: Versions::SPOKEN, service: answer.versions })
        }
        Welcome::NotPermitted => Err(ClientError::NotPermitted),
        Welcome::TooManyClients => Err(ClientError::TooManyClients { detail: detail() }),
        Welcome::FeatureMissing => {
            Err(ClientError::FeatureMissing { missing: Features::from_bits(answer.missing) })
        }
        Welcome::Malformed | Welcome::Other(_) => {
            Err(ClientError::GreetingRefused { detail: detail() })
        }
    }
}

/// The process that sent a packet, unless it is this one: then there is nobody to outlive.
fn other_pid(sender: &Sender) -> Option<u32> {
    sender.pid.filter(|pid| i32::try_from(*pid) != Ok(getpid().as_raw_nonzero().get()))
}

/// A descriptor that says when the process ends that sent a packet: the kernel's own, or one by its
/// process id. `None` where the kernel tells neither, and for this process itself: the socket's
/// hang-up then has to do. `docs/decisions/0018-who-the-service-is.md` says why.
fn process_of(sender: Sender) -> Option<OwnedFd> {
    let pid = other_pid(&sender);
    if sender.pid.is_some() && pid.is_none() {
        return None;
    }
    sender.pidfd.or_else(|| {
        let pid = Pid::from_raw(i32::try_from(pid?).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok()
    })
}

fn program_name() -> String {
    std::env::args_os()
        .next()
        .and_then(|path| Path::new(&path).file_name()?.to_str().map(str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::process::Command;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    /// Without a pidfd, as before Linux 6.5: the process id has to do.
    #[test]
    fn a_process_is_known_by_its_id_where_the_kernel_gives_nothing_better() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let sender = Sender { pid: Some(child.id()), pidfd: None };
        let process = process_of(sender).expect("a pidfd, since Linux 5.3");
        child.kill().unwrap();
        let mut fds = [PollFd::new(&process, PollFlags::IN)];
        assert_eq!(poll(&mut fds, None), Ok(1), "it says that the child has ended");
        child.wait().unwrap();
    }

    #[test]
    fn a_service_in_this_process_and_one_that_the_kernel_does_not_name_have_no_process() {
        let pid = Some(std::process::id());
        assert!(process_of(Sender { pid, pidfd: None }).is_none());
        let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        assert!(process_of(Sender { pid, pidfd: Some(own) }).is_none());
        assert!(process_of(Sender::default()).is_none());
        // In another pid namespace it has a descriptor and no id.
        let other = std::io::stderr().as_fd().try_clone_to_owned().unwrap();
        assert!(process_of(Sender { pid: None, pidfd: Some(other) }).is_some());
    }

    #[test]
    fn nobody_waits_for_longer_than_there_is_time_nor_for_less_than_a_moment() {
        assert_eq!(patience(SEND_TIMEOUT, Deadline::never()), SEND_TIMEOUT);
        assert_eq!(patience(SEND_TIMEOUT, Deadline::at_ns(1)), MOMENT);
        let second = Duration::from_secs(1);
        assert!(patience(SEND_TIMEOUT, Deadline::after(second)) <= second);
    }
}
