//! The two ends as processes: the coordinator starts them, sends their jobs, receives their outcomes,
//! and never leaves one behind.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use burst_wire::WireError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::engine::Length;
use crate::error::HarnessError;
use crate::machine::{pin, usable_cpus};
use crate::transport::case::{Case, Job, Placement, Role};
use crate::transport::link::Link;
use crate::transport::peers::Peer;
use crate::transport::session::{ClientSession, Measured, Served, ServerSession};

/// The first argument of a program that is to be one end of a measurement. Its standard input then
/// is a socket with its job.
pub const CHILD_ARGUMENT: &str = "bench-peer";

/// Added to what a run should take at most, before its ends count as stuck.
const PATIENCE: Duration = Duration::from_secs(20);
/// What a round trip takes at most, on average, on a loaded machine.
const SLOW_TRIP: Duration = Duration::from_millis(2);

/// What an end sends back.
#[derive(Debug, Serialize, Deserialize)]
enum Outcome {
    Client(Measured),
    Server(Served),
    Failed(String),
}

/// Becomes one end of a measurement if the first argument says so; call it first in `main`.
#[must_use]
pub fn serve_if_asked(peers: &[&dyn Peer]) -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == CHILD_ARGUMENT).then(|| serve_child(peers))
}

/// One end of a measurement, with its job on standard input.
#[must_use]
pub fn serve_child(peers: &[&dyn Peer]) -> ExitCode {
    match serve(peers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{CHILD_ARGUMENT}: {error}");
            ExitCode::from(2)
        }
    }
}

fn serve(peers: &[&dyn Peer]) -> Result<(), HarnessError> {
    // A coordinator that is killed takes its ends along: they would spin for ever.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(HarnessError::system("prctl"))?;
    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    let mut coordinator = Link::new(stdin);
    let (job, fds): (Job, _) = coordinator.receive()?;
    let [link]: [OwnedFd; 1] =
        fds.try_into().map_err(|_| HarnessError::Handshake { expected: "a link" })?;
    let outcome = be_an_end(peers, &job, Link::new(link))
        .unwrap_or_else(|error| Outcome::Failed(error.to_string()));
    coordinator.send(&outcome, &[])
}

fn be_an_end(peers: &[&dyn Peer], job: &Job, link: Link) -> Result<Outcome, HarnessError> {
    let peer = find(peers, &job.peer)?;
    pin_and_warm_up(job)?;
    Ok(match job.role {
        Role::Client => Outcome::Client(peer.client(ClientSession::new(job, link))?),
        Role::Server => Outcome::Server(peer.server(ServerSession::new(job, link))?),
    })
}

/// A peer by its name.
///
/// # Errors
/// [`HarnessError::UnknownPeer`].
pub fn find<'p>(peers: &[&'p dyn Peer], name: &str) -> Result<&'p dyn Peer, HarnessError> {
    let found = peers.iter().find(|peer| peer.name() == name);
    found.copied().ok_or_else(|| HarnessError::UnknownPeer {
        name: name.to_owned(),
        known: peers.iter().map(|peer| peer.name()).collect(),
    })
}

/// Pins this process to its CPU. A queue measures once what a sleep costs between the CPUs of its process: two
/// processes on CPUs of their own pay for a sleep between two, two on one CPU for one on that. So
/// that comes before pinning in the first case and after it in the second.
fn pin_and_warm_up(job: &Job) -> Result<(), HarnessError> {
    let same = job.case.placement == Placement::SameCore;
    if !same {
        fmq::warm_up();
    }
    job.cpu.map_or(Ok(()), pin)?;
    if same {
        fmq::warm_up();
    }
    Ok(())
}

/// Starts pairs of processes.
#[derive(Debug, Clone)]
pub struct Runner {
    program: PathBuf,
    usable: Vec<usize>,
    longest: Duration,
}

impl Runner {
    /// Starts `program` as both ends; it must call [`serve_if_asked`] with the same peers.
    ///
    /// # Errors
    /// The system's.
    pub fn new(program: impl Into<PathBuf>) -> Result<Runner, HarnessError> {
        Ok(Runner { program: program.into(), usable: usable_cpus()?, longest: Duration::MAX })
    }

    /// Whose ends count as stuck after `longest` whatever they do.
    #[must_use]
    pub fn with_trials_of(self, longest: Duration) -> Runner {
        Runner { longest, ..self }
    }

    /// Starts the program that is running.
    ///
    /// # Errors
    /// The system's.
    pub fn this_program() -> Result<Runner, HarnessError> {
        Runner::new(format!("/proc/{}/exe", std::process::id()))
    }

    /// Whether this machine has the CPUs for a placement.
    #[must_use]
    pub fn can(&self, placement: Placement) -> bool {
        cpus_for(placement, &self.usable).is_some()
    }

    /// One run of one peer.
    ///
    /// # Errors
    /// [`HarnessError::EndFailed`], [`HarnessError::Stuck`], and the system's.
    pub fn measure(
        &self,
        peer: &str,
        case: &Case,
        length: Length,
    ) -> Result<(Measured, Served), HarnessError> {
        self.run(peer, case, length, |_| Command::new(&self.program))
    }

    /// System calls per message (a round trip is two) of both ends together: the difference between
    /// a longer and a shorter run, so that setting up does not count.
    ///
    /// # Errors
    /// As [`Runner::measure`].
    pub fn calls_per_message(
        &self,
        peer: &str,
        case: &Case,
        [short, long]: [u32; 2],
    ) -> Result<f64, HarnessError> {
        let counted = |trips| self.count_calls(peer, case, Length { warm_up: 0, counted: trips });
        let (few, many) = (counted(short)?, counted(long)?);
        let calls = (many - few) / (2.0 * f64::from(long - short));
        // Starting up costs a few calls more or less each time: less than the third digit.
        Ok(((calls * 1000.0).round() / 1000.0).max(0.0))
    }

    fn count_calls(&self, peer: &str, case: &Case, length: Length) -> Result<f64, HarnessError> {
        let folder = Folder::new()?;
        let file = |role: Role| folder.0.join(role.name());
        self.run(peer, case, length, |role| {
            let mut command = Command::new("strace");
            command.args(["-f", "-c", "-U", "name,calls", "-o"]).arg(file(role)).arg(&self.program);
            command
        })?;
        let mut calls = 0.0;
        for role in [Role::Client, Role::Server] {
            calls += total_calls(&std::fs::read_to_string(file(role))?);
        }
        Ok(calls)
    }

    fn run(
        &self,
        peer: &str,
        case: &Case,
        length: Length,
        command: impl Fn(Role) -> Command,
    ) -> Result<(Measured, Served), HarnessError> {
        let cpus = cpus_for(case.placement, &self.usable)
            .ok_or(HarnessError::Handshake { expected: "two CPUs" })?;
        let (client_link, server_link) = burst_wire::socket::pair()?;
        let limit = limit(case, length).min(self.longest);
        let start = |role, cpu, link| {
            let Length { warm_up, counted: trips } = length;
            let job = Job { peer: peer.to_owned(), role, case: *case, warm_up, trips, cpu, limit };
            End::start(command(role), &job, link)
        };
        let mut server = start(Role::Server, cpus[1], server_link)?;
        let mut client = start(Role::Client, cpus[0], client_link)?;
        let until = Instant::now() + limit;
        let [client_outcome, server_outcome] =
            receive_outcomes([&mut client, &mut server], peer, until, limit)?;
        client.child.wait()?;
        server.child.wait()?;
        match (client_outcome, server_outcome) {
            (Outcome::Client(measured), Outcome::Server(served)) => Ok((measured, served)),
            _ => Err(HarnessError::Handshake { expected: "its own role" }),
        }
    }
}

/// The CPUs of client and server; `None` where there are not enough.
fn cpus_for(placement: Placement, usable: &[usize]) -> Option<[Option<usize>; 2]> {
    match (placement, usable) {
        (Placement::Unpinned, _) => Some([None, None]),
        (Placement::SameCore, [one, ..]) => Some([Some(*one), Some(*one)]),
        (Placement::PinnedApart, [one, two, ..]) => Some([Some(*one), Some(*two)]),
        _ => None,
    }
}

/// What a run takes at most, unless it hangs.
fn limit(case: &Case, length: Length) -> Duration {
    let trips = length.warm_up.saturating_add(length.counted);
    let planned = Duration::from_nanos(case.service_ns.saturating_add(case.period_ns));
    PATIENCE.saturating_add((planned + SLOW_TRIP).saturating_mul(trips))
}

/// One end, killed and collected when dropped.
struct End {
    role: Role,
    child: Child,
    control: Link,
}

impl End {
    fn start(mut command: Command, job: &Job, link: OwnedFd) -> Result<End, HarnessError> {
        let (ours, theirs) = burst_wire::socket::pair()?;
        let child =
            command.arg(CHILD_ARGUMENT).stdin(Stdio::from(theirs)).stdout(Stdio::null()).spawn()?;
        let end = End { role: job.role, child, control: Link::new(ours) };
        end.control.send(job, &[link.as_fd()])?;
        Ok(end)
    }

    fn outcome(&mut self, peer: &str) -> Result<Outcome, HarnessError> {
        let failed = |message| {
            let (peer, role) = (peer.to_owned(), self.role.name());
            Err(HarnessError::EndFailed { peer, role, message })
        };
        match self.control.receive() {
            Ok((Outcome::Failed(message), _)) => failed(message),
            Ok((outcome, _)) => Ok(outcome),
            Err(HarnessError::Wire(WireError::Closed)) => {
                failed("ended without an outcome".to_owned())
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // Both fail only where it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Receives both outcomes in whatever order they come: when one end failed the other may wait for it
/// for ever.
fn receive_outcomes(
    ends: [&mut End; 2],
    peer: &str,
    until: Instant,
    limit: Duration,
) -> Result<[Outcome; 2], HarnessError> {
    let mut outcomes = [None, None];
    loop {
        outcomes = match outcomes {
            [Some(client), Some(server)] => return Ok([client, server]),
            other => other,
        };
        let waiting: Vec<usize> = (0..2).filter(|index| outcomes[*index].is_none()).collect();
        let left = until.saturating_duration_since(Instant::now());
        let ready: Vec<bool> = {
            let mut fds: Vec<PollFd<'_>> = waiting
                .iter()
                .map(|index| PollFd::new(&ends[*index].control, PollFlags::IN))
                .collect();
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            poll(&mut fds, Some(&timeout)).map_err(HarnessError::system("poll"))?;
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        if !ready.contains(&true) {
            return Err(HarnessError::Stuck { peer: peer.to_owned(), seconds: limit.as_secs() });
        }
        for (index, ready) in waiting.into_iter().zip(ready) {
            if ready {
                outcomes[index] = Some(ends[index].outcome(peer)?);
            }
        }
    }
}

/// Whether system calls can be counted here.
#[must_use]
pub fn has_strace() -> bool {
    let quiet = Stdio::null;
    let mut command = Command::new("strace");
    command.arg("-V").stdin(quiet()).stdout(quiet()).stderr(quiet());
    command.status().is_ok_and(|status| status.success())
}

/// The sum of a `strace -c -U name,calls` table.
fn total_calls(table: &str) -> f64 {
    table
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (name, calls) = (fields.next()?, fields.next()?);
            (name != "total").then(|| calls.parse::<f64>().ok()).flatten()
        })
        .sum()
}

/// A folder of our own, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, HarnessError> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("burst-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::WaitKind;

    #[test]
    fn the_table_of_strace_is_added_up_without_its_own_total() {
        let table = "syscall               calls\n---------------- ---------\n\
                     futex                   120\nwrite                     3\n\
                     ---------------- ---------\ntotal                   123\n";
        assert!((total_calls(table) - 123.0).abs() < 1e-9);
        assert!(total_calls("").abs() < 1e-9);
    }

    #[test]
    fn a_run_may_take_longer_when_it_is_meant_to() {
        let length = Length { warm_up: 0, counted: 1000 };
        let mut case = Case::ping_pong(WaitKind::Sleep, Placement::Unpinned, 64);
        let quick = limit(&case, length);
        case.service_ns = 1_000_000_000;
        assert_eq!(limit(&case, length) - quick, Duration::from_secs(1000));
    }

    #[test]
    fn placements_need_as_many_cpus_as_they_say() {
        use Placement::{PinnedApart, SameCore, Unpinned};
        assert_eq!(cpus_for(PinnedApart, &[2, 5, 7]), Some([Some(2), Some(5)]));
        assert_eq!(cpus_for(PinnedApart, &[2]), None);
        assert_eq!(cpus_for(SameCore, &[2, 5]), Some([Some(2), Some(2)]));
        assert_eq!(cpus_for(Unpinned, &[2, 5]), Some([None, None]));
    }
}
