//! The system calls that a service needs once it runs, and the filter made of them.
//!
//! A comment says what each group is needed for; extend it with the list. `strace -f -c burst serve` under traffic shows what is used; a call
//! that is missing here fails with EPERM.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

use super::{LayerState, SandboxError};

/// Calls that are always allowed.
const ALLOWED: &[c_long] = &[
    // Memory: the heap, pools, queues, stacks. `mmap` and `mprotect` have conditions below.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_membarrier,
    // Descriptors that are there already: sockets, pools that are files, the log.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_fstatfs,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_close,
    libc::SYS_pipe2,
    libc::SYS_eventfd2,
    libc::SYS_ppoll,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    // Clients: `socket` and `connect` are not here, nothing is dialled; `sendto` has conditions below.
    libc::SYS_accept4,
    libc::SYS_recvmsg,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    // Waiting and time.
    libc::SYS_futex,
    libc::SYS_restart_syscall,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_sched_yield,
    // Threads: started (`clone`) and bound to CPUs (`sched_setaffinity`) under conditions below, ended.
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Signals: handled and waited for. `abort` sends one to this process: see `tgkill` below.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    // Who we are (`prlimit64` has a condition below), and random keys of hash tables.
    libc::SYS_getpid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_uname,
];

/// The same under names that only older architectures have.
#[cfg(target_arch = "x86_64")]
const ALLOWED_BY_ARCHITECTURE: &[c_long] = &[
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_dup2,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_BY_ARCHITECTURE: &[c_long] = &[];

/// Puts the filter in force for the whole process.
pub(super) fn enter() -> Result<LayerState, SandboxError> {
    let architecture = architecture()?;
    // Asked of libc, so that starting a thread falls back to `clone`, whose flags can be looked
    // at; those of `clone3` lie in memory. This filter is first: the next one allows the call, and
    // of all filters' answers the strictest counts.
    let no_clone3 = compile(
        [(libc::SYS_clone3, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        architecture,
    )?;
    let listed = compile(
        rules()?,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        SeccompAction::Allow,
        architecture,
    )?;
    apply_filter_all_threads(&no_clone3)?;
    apply_filter_all_threads(&listed)?;
    Ok(LayerState::Full)
}

fn architecture() -> Result<TargetArch, SandboxError> {
    TargetArch::try_from(std::env::consts::ARCH).map_err(|_| SandboxError::Architecture)
}

fn compile(
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    on_match: SeccompAction,
    architecture: TargetArch,
) -> Result<BpfProgram, SandboxError> {
    let filter = SeccompFilter::new(rules, otherwise, on_match, architecture);
    let program = filter.and_then(BpfProgram::try_from);
    Ok(program.map_err(seccompiler::Error::from)?)
}

/// Every call that is allowed, with its conditions; one without any has no rule.
fn rules() -> Result<BTreeMap<c_long, Vec<SeccompRule>>, SandboxError> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> =
        ALLOWED.iter().chain(ALLOWED_BY_ARCHITECTURE).map(|call| (*call, Vec::new())).collect();
    let executable = libc::PROT_EXEC.unsigned_abs().into();
    // No executable memory.
    let not_executable = || only(2, SeccompCmpOp::MaskedEq(executable), 0);
    rules.insert(libc::SYS_mmap, not_executable()?);
    rules.insert(libc::SYS_mprotect, not_executable()?);
    // Threads, not processes.
    let thread = libc::CLONE_THREAD.unsigned_abs().into();
    rules.insert(libc::SYS_clone, only(0, SeccompCmpOp::MaskedEq(thread), thread)?);
    // The names of threads.
    let set_name = libc::PR_SET_NAME.unsigned_abs().into();
    rules.insert(libc::SYS_prctl, only(0, SeccompCmpOp::Eq, set_name)?);
    // To the peer of a socket, and to no address.
    rules.insert(libc::SYS_sendto, all(&[null(4), word(5, 0)])?);
    // On this process and its threads: no other one's limits, processors or end.
    rules.insert(libc::SYS_prlimit64, all(&[word(0, 0)])?);
    rules.insert(libc::SYS_sched_setaffinity, all(&[word(0, 0)])?);
    rules.insert(libc::SYS_tgkill, all(&[word(0, std::process::id())])?);
    // Whether standard error is a terminal; access to buffers of devices, and how far fences of the
    // kernel are, that clients bring.
    let mut ioctls = only(1, SeccompCmpOp::Eq, libc::TCGETS)?;
    ioctls.extend(only(1, SeccompCmpOp::Eq, burst_shm::DMA_BUF_SYNC.into())?);
    ioctls.extend(only(1, SeccompCmpOp::Eq, burst_shm::SYNC_FILE_INFO.into())?);
    rules.insert(libc::SYS_ioctl, ioctls);
    Ok(rules)
}

/// What one argument has to be.
type Condition = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

/// A number of 32 bits.
fn word(argument: u8, value: u32) -> Condition {
    (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value.into())
}

/// No address: all 64 bits.
fn null(argument: u8) -> Condition {
    (argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)
}

/// One condition on the lower half of one argument.
fn only(argument: u8, compare: SeccompCmpOp, value: u64) -> Result<Vec<SeccompRule>, SandboxError> {
    all(&[(argument, SeccompCmpArgLen::Dword, compare, value)])
}

/// Conditions that all have to hold.
fn all(conditions: &[Condition]) -> Result<Vec<SeccompRule>, SandboxError> {
    let conditions = conditions.iter().map(|(argument, length, compare, value)| {
        SeccompCondition::new(*argument, length.clone(), compare.clone(), *value)
    });
    let rule = conditions.collect::<Result<_, _>>().and_then(SeccompRule::new);
    Ok(vec![rule.map_err(seccompiler::Error::from)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_can_be_made_and_leave_out_what_opens_or_runs_anything() {
        let rules = rules().unwrap();
        for call in [
            libc::SYS_openat,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_bpf,
            libc::SYS_io_uring_setup,
            libc::SYS_kill,
            libc::SYS_mount,
            libc::SYS_setuid,
            libc::SYS_unlinkat,
        ] {
            assert!(!rules.contains_key(&call), "system call {call}");
        }
        let exec = libc::PROT_EXEC.unsigned_abs().into();
        let not_executable = only(2, SeccompCmpOp::MaskedEq(exec), 0).unwrap();
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            assert_eq!(rules[&call], not_executable, "memory made executable by {call}");
        }
        assert!(!rules.contains_key(&libc::SYS_pkey_mprotect));
        let ioctls = &rules[&libc::SYS_ioctl];
        for request in [burst_shm::DMA_BUF_SYNC, burst_shm::SYNC_FILE_INFO] {
            let rule = only(1, SeccompCmpOp::Eq, request.into()).unwrap();
            assert!(ioctls.contains(&rule[0]), "request {request:x}");
        }
        assert_eq!(ioctls.len(), 3, "terminals, dma-bufs and sync_files");
        let action = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        compile(rules, action, SeccompAction::Allow, architecture().unwrap()).unwrap();
    }

    #[test]
    fn calls_that_can_reach_others_name_nobody_but_this_process() {
        let rules = rules().unwrap();
        let own = std::process::id();
        for (call, want) in [
            (libc::SYS_sendto, all(&[null(4), word(5, 0)])),
            (libc::SYS_prlimit64, all(&[word(0, 0)])),
            (libc::SYS_sched_setaffinity, all(&[word(0, 0)])),
            (libc::SYS_tgkill, all(&[word(0, own)])),
        ] {
            assert_eq!(rules[&call], want.unwrap(), "system call {call}");
        }
    }
}
