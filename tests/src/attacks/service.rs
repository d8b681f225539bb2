//! The service that is attacked: `burst serve` in a process of its own, within limits.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::process::{Pid, Resource, Rlimit, Signal, setrlimit, umask};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::child::{Child, HANG, User};
use super::users::{NEIGHBOUR, is_root};

/// The role that confines itself and then becomes the service.
pub(super) const ROLE: &str = "confined";

/// What a service may use of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Confinement {
    /// Bytes of address space (`RLIMIT_AS`); `None` for as many as there are.
    pub address_space: Option<u64>,
    /// Whether it may run on one CPU alone.
    pub one_cpu: bool,
}

impl Confinement {
    /// What an honest load fits into many times over, and what a machine that has other work could
    /// spare.
    pub const MEMORY: Confinement = Confinement { address_space: Some(4 << 30), one_cpu: false };

    fn arguments(self) -> [String; 2] {
        [self.address_space.unwrap_or(0).to_string(), u8::from(self.one_cpu).to_string()]
    }

    /// What the service is told of its limits. An address space holds stacks and the allocator's heaps
    /// too, so that accounts get the smaller part of it.
    fn flags(self) -> &'static [&'static str] {
        if self.address_space.is_none() { &[] } else { CONFINED_FLAGS }
    }
}

/// A GiB of memory and 512 threads for all users, half of each for one.
const CONFINED_FLAGS: &[&str] = &[
    "--max-memory=1073741824",
    "--max-memory-per-user=536870912",
    "--max-threads=512",
    "--max-threads-per-user=256",
];

/// A running `burst serve` with an admin socket, killed when this is dropped.
#[derive(Debug)]
pub struct Service {
    process: Child,
    socket: PathBuf,
    admin: PathBuf,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Service {
    /// Starts it with these flags. Where this process is root's, the neighbour may use it too.
    ///
    /// # Errors
    /// It does not say that it listens.
    pub fn start(confinement: Confinement, flags: &[&str]) -> Result<Service, String> {
        Service::start_logging(confinement, flags, "")
    }

    /// The same, with the log lines that a filter as of `BURST_LOG` lets through; empty for the usual ones.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub fn start_logging(
        confinement: Confinement,
        flags: &[&str],
        filter: &str,
    ) -> Result<Service, String> {
        let text = |error: std::io::Error| error.to_string();
        let folder = tempfile::tempdir().map_err(text)?;
        // Other users reach the sockets inside.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).map_err(text)?;
        let [socket, admin, log] =
            ["burst.sock", "admin.sock", "log"].map(|name| folder.path().join(name));
        let path = |path: &Path| path.display().to_string();
        let mut arguments = Vec::from(confinement.arguments());
        arguments.extend([filter, "serve", "--socket"].map(str::to_owned));
        arguments.extend([path(&socket), "--admin".to_owned(), path(&admin)]);
        if is_root() {
            arguments.extend(["--allow-uid".to_owned(), NEIGHBOUR.to_string()]);
        }
        let flags = confinement.flags().iter().chain(flags);
        arguments.extend(flags.map(|flag| (*flag).to_owned()));
        let stderr =
            Stdio::from(fs::File::options().create(true).append(true).open(&log).map_err(text)?);
        let process = Child::start(User::Same, ROLE, &arguments, stderr);
        let mut service = Service { process, socket, admin, log, _folder: folder };
        match service.process.hear("listening on ", HANG) {
            Ok(_) => Ok(service),
            Err(error) => Err(format!("{error}: {}", service.log())),
        }
    }

    /// Where clients connect.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Where its metrics are read.
    #[must_use]
    pub fn admin(&self) -> &Path {
        &self.admin
    }

    /// What it said on standard error.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Where it stands, for whoever has to explain a failure: what it counts, what its threads do and what
    /// it said last.
    #[must_use]
    pub fn standing(&self) -> String {
        let metrics = self.metrics().map_or_else(|error| error, |metrics| metrics.brief());
        let threads = threads(self.process.pid()).unwrap_or_else(|error| error.to_string());
        let log = self.log();
        let last: Vec<&str> = log.lines().rev().take(20).collect();
        format!(
            "the service counts\n{metrics}\nits threads:\n{threads}\nits last lines, newest first:\n{}",
            last.join("\n")
        )
    }

    /// Its log, for others to write to.
    pub(super) fn append_log(&self) -> Stdio {
        let file = fs::File::options().append(true).open(&self.log);
        file.map_or_else(|_| Stdio::inherit(), Stdio::from)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// How it ended, where it does so in time.
    pub fn ended_within(&mut self, within: Duration) -> Option<ExitStatus> {
        self.process.ended_within(within)
    }

    /// Why it is no service any more; `None` while it lives.
    pub fn end(&mut self) -> Option<String> {
        let status = self.process.ended_within(Duration::ZERO)?;
        let log = self.log();
        let last: Vec<&str> = log.lines().rev().take(5).collect();
        Some(format!("the service ended: {status}; its last lines, newest first: {last:#?}"))
    }

    /// User and system time so far, in ticks of 10 ms.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_time(&self) -> Result<Duration, String> {
        let path = format!("/proc/{}/stat", self.process.pid());
        let stat = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
        let sum = ticks(11).zip(ticks(12)).map(|(user, system)| user + system);
        sum.map(|ticks| Duration::from_millis(ticks * 10)).ok_or(format!("not a stat: {stat}"))
    }

    /// What its threads with such names, as far as they live, have computed so far, to the nanosecond; `None` where
    /// there is none, or the kernel does not count so.
    #[must_use]
    pub fn thread_time(&self, is_one: impl Fn(&str) -> bool) -> Option<Duration> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.pid())).ok()?;
        let mut sum = Duration::ZERO;
        for task in tasks.flatten() {
            // One that has ended meanwhile has neither.
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            if !is_one(name.trim_end()) {
                continue;
            }
            let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
            let nanos = text.split_whitespace().next()?.parse().ok()?;
            sum += Duration::from_nanos(nanos);
        }
        (!sum.is_zero()).then_some(sum)
    }

    /// A size of `/proc/PID/status` in bytes, such as `VmSize` or `VmHWM`.
    ///
    /// # Errors
    /// It has ended.
    pub fn size(&self, name: &str) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.process.pid());
        let status = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.map(|kib| kib << 10).ok_or(format!("no {name} in {status}"))
    }

    /// What it counts about itself.
    ///
    /// # Errors
    /// It does not answer.
    pub fn metrics(&self) -> Result<Metrics, String> {
        let ask = || {
            let mut connection = UnixStream::connect(&self.admin)?;
            connection.set_read_timeout(Some(HANG))?;
            connection.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
            let mut answer = String::new();
            connection.read_to_string(&mut answer)?;
            Ok(Metrics(answer))
        };
        ask().map_err(|error: std::io::Error| format!("no metrics: {error}"))
    }

    /// Asks for the metrics again and again until something is so.
    ///
    /// # Errors
    /// It is not so in time, or the service does not answer.
    pub fn wait_until(
        &self,
        what: &str,
        within: Duration,
        is_so: impl Fn(&Metrics) -> bool,
    ) -> Result<Duration, String> {
        let start = Instant::now();
        loop {
            if is_so(&self.metrics()?) {
                return Ok(start.elapsed());
            }
            if start.elapsed() > within {
                let standing = self.standing();
                return Err(format!("{what} does not come within {within:?}; {standing}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A service's counters at one moment.
#[derive(Debug)]
pub struct Metrics(String);

impl Metrics {
    /// The value of a series that counts, by name and labels; 0 where there is none.
    #[must_use]
    pub fn value(&self, series: &str) -> u64 {
        let line = self.0.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// What counts anything, without limits and histograms.
    fn brief(&self) -> String {
        let left_out = ["#", "burst_service_limit", "burst_user_limit"];
        let counts = |line: &&str| {
            let is_left_out = left_out.iter().any(|start| line.starts_with(start));
            !is_left_out && !line.contains("_bucket{") && !line.ends_with(" 0")
        };
        self.0.lines().filter(counts).collect::<Vec<_>>().join("\n")
    }

    /// What all clients together have of something that is limited.
    #[must_use]
    pub fn in_use(&self, limit: &str) -> u64 {
        self.value(&format!("burst_in_use{{limit=\"{limit}\"}}"))
    }

    /// Executions that bursts handed to the device.
    #[must_use]
    pub fn executions(&self) -> u64 {
        self.value("burst_executions_total{path=\"burst\"}")
    }
}

/// The threads of a process, by name: how many there are, and how many of them compute or want to.
fn threads(pid: Pid) -> std::io::Result<String> {
    let mut by_name: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // One that has ended meanwhile is none.
        let Ok(stat) = fs::read_to_string(thread?.path().join("stat")) else { continue };
        let name = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(") "));
        let Some((name, state)) = name else { continue };
        let (all, running) = by_name.entry(name.to_owned()).or_default();
        *all += 1;
        *running += u32::from(state.starts_with('R'));
    }
    let line =
        |(name, (all, running)): (&String, &(u32, u32))| format!("{all} {name}, {running} running");
    Ok(by_name.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// The role: takes its limits upon itself and becomes this program with the arguments behind them.
pub(super) fn confine(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [address_space, one_cpu, filter, rest @ ..] = arguments else {
        return Err("no limits".into());
    };
    let bytes: u64 = address_space.parse()?;
    if bytes > 0 {
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        setrlimit(Resource::As, limit)?;
    }
    if one_cpu == "1" {
        let allowed = rustix::thread::sched_getaffinity(None)?;
        let first = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).ok_or("no CPU")?;
        let mut one = CpuSet::new();
        one.set(first);
        sched_setaffinity(None, &one)?;
    }
    // The modes of the sockets are what the service makes them.
    umask(Mode::empty());
    let mut service = Command::new(std::env::current_exe()?);
    if !filter.is_empty() {
        service.env("BURST_LOG", filter);
    }
    Err(service.args(rest).exec().into())
}
