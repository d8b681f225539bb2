//! The sandbox in which the service locks itself: it computes on bytes from strangers, and needs next
//! to nothing of the system for that.
//!
//! Two layers, each useful without the other:
//! * **landlock**: no file can be opened, made, run or removed, no TCP port used, no process
//!   outside signalled. Not even the service's own sockets: a right to remove names is one to a whole
//!   folder (docs/decisions/0017-sockets-outlive-the-sandbox.md).
//! * **seccomp**: of the system calls only those on the list in `sandbox/calls.rs` work; others
//!   fail with EPERM. Killing the service instead would punish it for whatever a library tries.
//!   Threads can be started, processes cannot; memory is never executable.
//!
//! Landlock covers the calling thread and those it starts, so [`Sandbox::enter`] comes before any
//! thread, and after everything that reads files (sockets bound, `fmq::warm_up`, levers opened).

mod calls;

use std::fs::File;
use std::time::{Duration, Instant};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus,
    Scope,
};

/// The newest interface of landlock whose rights are taken away; kernels that know less take away
/// what they know.
const NEWEST: ABI = ABI::V6;

/// What a service locks itself in with: nothing is left but what descriptors that are open already allow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sandbox(());

/// Why a layer is not in force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// Threads exist already: they would stay outside.
    #[error("{threads} threads run already; the sandbox must come before them")]
    Threads {
        /// How many, besides the calling one.
        threads: usize,
    },
    /// Landlock refused.
    #[error("landlock: {0}")]
    Landlock(#[from] landlock::RulesetError),
    /// Seccomp refused, or the filter cannot be made.
    #[error("seccomp: {0}")]
    Seccomp(#[from] seccompiler::Error),
    /// There is no list of calls for this kind of processor.
    #[error("seccomp: no list of system calls for this architecture")]
    Architecture,
}

/// How far landlock is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayerState {
    /// All that was asked for.
    Full,
    /// What this kernel knows of it.
    Partial,
    /// Nothing.
    Absent,
}

/// How far each layer is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxReport {
    /// Files, network, signals.
    pub landlock: LayerState,
    /// System calls.
    pub seccomp: LayerState,
}

impl SandboxReport {
    /// Nothing is locked.
    #[must_use]
    pub fn off() -> Self {
        SandboxReport { landlock: LayerState::Absent, seccomp: LayerState::Absent }
    }

    /// Whether both layers are in force, at least as far as this kernel knows them.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.landlock != LayerState::Absent && self.seccomp != LayerState::Absent
    }

    pub(crate) fn layers(&self) -> [(&'static str, bool); 2] {
        [
            ("landlock", self.landlock != LayerState::Absent),
            ("seccomp", self.seccomp != LayerState::Absent),
        ]
    }
}

impl Sandbox {
    /// All of it.
    #[must_use]
    pub fn new() -> Self {
        Sandbox::default()
    }

    /// Locks the process in, for good. A layer that the system does not have is left out, which the
    /// log says.
    ///
    /// # Errors
    /// [`SandboxError::Threads`]: nothing was locked.
    pub fn enter(&self) -> Result<SandboxReport, SandboxError> {
        let threads = threads_that_stay();
        if threads > 0 {
            return Err(SandboxError::Threads { threads });
        }
        let landlock = or_absent("landlock", enter_landlock());
        let seccomp = or_absent("seccomp", calls::enter());
        let report = SandboxReport { landlock, seccomp };
        tracing::info!(?landlock, ?seccomp, "sandbox");
        Ok(report)
    }
}

fn enter_landlock() -> Result<LayerState, SandboxError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    Ok(match ruleset.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => LayerState::Full,
        RulesetStatus::PartiallyEnforced => LayerState::Partial,
        RulesetStatus::NotEnforced => LayerState::Absent,
    })
}

fn or_absent(layer: &str, entered: Result<LayerState, SandboxError>) -> LayerState {
    match entered {
        Ok(LayerState::Absent) => {
            tracing::warn!(
                layer,
                "the kernel does not have this layer of the sandbox; the service runs without it"
            );
            LayerState::Absent
        }
        Ok(state) => state,
        Err(error) => {
            tracing::warn!(layer, %error, "this layer of the sandbox is not in force; the service runs without it");
            LayerState::Absent
        }
    }
}

/// How long a thread that has ended may still be on the kernel's list: it is taken from there some
/// time after it was joined, later where the machine is busy.
const LEAVING: Duration = Duration::from_secs(1);

/// Threads of this process besides the calling one, once those that have ended are gone.
fn threads_that_stay() -> usize {
    let give_up = Instant::now() + LEAVING;
    loop {
        let threads = other_threads();
        if threads == 0 || Instant::now() >= give_up {
            return threads;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Threads of this process besides the calling one; none where the system does not tell.
fn other_threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, |threads| threads.count().saturating_sub(1))
}

/// Whether this process can open a file: what a closed sandbox takes away. For reports and tests.
#[must_use]
pub fn can_open_files() -> bool {
    File::open("/proc/self/status").is_ok()
}
