//! The kernel that this runs on.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use burst_driver::Isa;
use burst_harness::lines;
use burst_shm::allow_descriptors;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError,
    Scope,
};
use nix::sys::socket::{getsockopt, sockopt};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::thread::futex::{WaitvFlags, waitv};
use rustix::time::ClockId;

use super::machine::Calls;

/// This machine.
pub(super) struct Here;

/// Looks at the clock of one batch, and batches: the quickest batch is what a look takes undisturbed.
const LOOKS: u32 = 200;
const BATCHES: usize = 20;

/// Two Unix sockets, connected.
fn sockets() -> Result<(UnixStream, UnixStream), Errno> {
    UnixStream::pair().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

impl Calls for Here {
    fn futex_waitv(&self) -> Result<(), Errno> {
        // No word to wait for is a mistake that only a kernel with the call knows.
        match waitv(&[], WaitvFlags::empty(), None, ClockId::Monotonic) {
            Ok(_) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn seal_future_write(&self) -> Result<(), String> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("burst-doctor", flags)
            .map_err(|errno| format!("memfd_create: {errno}"))?;
        fcntl_add_seals(&memory, SealFlags::FUTURE_WRITE).map_err(|errno| format!("seal: {errno}"))
    }

    fn landlock(&self) -> u8 {
        let has = |ruleset: Result<Ruleset, RulesetError>| {
            ruleset.and_then(Ruleset::create).is_ok() // made, and not entered
        };
        let asked = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let files = |abi| has(asked().handle_access(AccessFs::from_all(abi)));
        match () {
            () if has(asked().scope(Scope::from_all(ABI::V6))) => 6,
            () if files(ABI::V5) => 5,
            () if has(asked().handle_access(AccessNet::from_all(ABI::V4))) => 4,
            () if files(ABI::V3) => 3,
            () if files(ABI::V2) => 2,
            () if files(ABI::V1) => 1,
            () => 0,
        }
    }

    fn peer_pidfd(&self) -> Result<(), Errno> {
        let (one, _other) = sockets()?;
        match getsockopt(&one, sockopt::PeerPidfd) {
            Ok(_) => Ok(()),
            Err(errno) => Err(Errno::from_raw_os_error(errno as i32)),
        }
    }

    fn pass_rights(&self) -> Result<(), Errno> {
        let (one, _other) = sockets()?;
        if allow_descriptors(&one, false)? { Ok(()) } else { Err(Errno::NOPROTOOPT) }
    }

    fn clock_cost_ns(&self) -> u64 {
        let batch = |_| {
            let begun = Instant::now();
            for _ in 0..LOOKS {
                std::hint::black_box(Instant::now());
            }
            begun.elapsed()
        };
        let quickest = (0..BATCHES).map(batch).min().unwrap_or_default();
        u64::try_from((quickest / LOOKS).as_nanos()).unwrap_or(u64::MAX)
    }

    fn wake_cost_ns(&self) -> u64 {
        fmq::machine::sleep_cost_ns()
    }

    fn two_lines_ns(&self, cpus: [usize; 2]) -> Option<f64> {
        lines::two_lines_between_ns(cpus, lines::PATIENCE)
    }

    fn isa(&self) -> Isa {
        Isa::detect()
    }

    fn may_use(&self, path: &Path) -> Result<(), Errno> {
        rustix::fs::access(path, rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK)
    }
}
