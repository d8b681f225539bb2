//! What the kernel can do of what is asked of it.

use rustix::io::Errno;

use super::Check;
use super::finding::{Finding, Named};
use super::machine::Machine;

pub(super) const CHECKS: &[Check] =
    &[kernel, futex_waitv, seals, landlock, seccomp, peer_pidfd, pass_rights];

const RELEASE: &str = "/proc/sys/kernel/osrelease";
const SECCOMP: &str = "/proc/sys/kernel/seccomp/actions_avail";

/// The oldest kernel that everything needed is in, and what is said of it.
const OLDEST: (u32, u32) = (5, 1);
/// The interface of landlock whose rights the service gives up.
const WHOLE_LANDLOCK: u8 = 6;

fn kernel(machine: &Machine<'_>) -> Finding {
    let named = Named("kernel");
    let needs = "Shared memory is sealed with what Linux has had since 5.1.";
    let release = match machine.read(RELEASE) {
        Ok(release) => release,
        Err(why) => return named.unknown(why, needs),
    };
    let found = format!("Linux {release}");
    match version(&release) {
        None => named.unknown(found, needs),
        Some(version) if version >= OLDEST => {
            named.fine(found, "Everything that is needed is in it.")
        }
        Some(_) => named.lacking(found, needs, "update to Linux 5.1 or later"),
    }
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn futex_waitv(machine: &Machine<'_>) -> Finding {
    let named = Named("futex_waitv");
    match machine.calls.futex_waitv() {
        Ok(()) => named.fine("there", "One thread can wait for many queues (`fmq::WaitSet`)."),
        Err(errno) => named.lacking(
            refused(errno),
            "One thread cannot wait for many queues; bursts, which have a thread each, can.",
            kernel_or_filter(errno, "5.16"),
        ),
    }
}

fn seals(machine: &Machine<'_>) -> Finding {
    let named = Named("seals");
    match machine.calls.seal_future_write() {
        Ok(()) => named.fine(
            "there",
            "Memory that the service makes for outputs cannot be written by its clients.",
        ),
        Err(why) => named.lacking(
            why,
            "The service cannot make memory for outputs that its clients only read.",
            "update to Linux 5.1 or later",
        ),
    }
}

fn landlock(machine: &Machine<'_>) -> Finding {
    let named = Named("landlock");
    match machine.calls.landlock() {
        0 => named.lacking(
            "not there",
            "The service runs without the layer of its sandbox that takes files and TCP away.",
            "boot with lsm=landlock before the others, or a kernel with CONFIG_SECURITY_LANDLOCK",
        ),
        abi if abi < WHOLE_LANDLOCK => named.worse(
            format!("interface {abi}"),
            match abi {
                ..=3 => {
                    "The service gives up files, but neither TCP nor signals and abstract sockets."
                }
                _ => "The service gives up files and TCP, but not signals and abstract sockets.",
            },
            "update to Linux 6.12 or later",
        ),
        abi => named.fine(
            format!("interface {abi} or newer"),
            "The service gives up files, TCP, signals and abstract sockets.",
        ),
    }
}

fn seccomp(machine: &Machine<'_>) -> Finding {
    let named = Named("seccomp");
    let actions = match machine.read(SECCOMP) {
        Ok(actions) => actions,
        Err(why) => {
            return named.unknown(why, "The service may run without its list of system calls.");
        }
    };
    if actions.split_whitespace().any(|action| action == "errno") {
        return named.fine("there", "The service gives up all system calls that it does not need.");
    }
    named.lacking(
        format!("only {actions}"),
        "The service runs without its list of system calls.",
        "a kernel with CONFIG_SECCOMP_FILTER",
    )
}

fn peer_pidfd(machine: &Machine<'_>) -> Finding {
    let named = Named("peer_pidfd");
    match machine.calls.peer_pidfd() {
        Ok(()) => named.fine("there", "A peer's death is seen whoever holds its socket."),
        Err(errno) => named.worse(
            refused(errno),
            "A peer's death is seen when the last copy of its socket is closed, which a child of it may hold.",
            kernel_or_filter(errno, "6.5"),
        ),
    }
}

fn pass_rights(machine: &Machine<'_>) -> Finding {
    let named = Named("pass_rights");
    match machine.calls.pass_rights() {
        Ok(()) => named.fine("there", "Nobody hands descriptors to the service who was not let in."),
        Err(errno) => named.worse(
            refused(errno),
            "Whoever may connect can hold up the thread that accepts, with a descriptor whose closing waits.",
            kernel_or_filter(errno, "6.16"),
        ),
    }
}

fn refused(errno: Errno) -> String {
    match errno {
        Errno::NOSYS | Errno::NOPROTOOPT => "not there".to_owned(),
        errno => format!("refused: {errno}"),
    }
}

fn kernel_or_filter(errno: Errno, since: &str) -> String {
    match errno {
        Errno::PERM | Errno::ACCESS => {
            "let the container's list of system calls have it".to_owned()
        }
        _ => format!("update to Linux {since} or later"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict::{Fine, Lacking, Unknown, Worse};
    use super::super::testing::MadeUp;
    use super::*;

    #[test]
    fn the_release_is_judged_by_its_number() {
        for (release, want) in [
            ("6.18.44-fc\n", Fine),
            ("5.1.0", Fine),
            ("5.0.21", Lacking),
            ("4.19", Lacking),
            ("new", Unknown),
        ] {
            let made_up = MadeUp::new().file(&RELEASE[1..], release);
            assert_eq!(made_up.look(kernel).verdict, want, "{release}");
        }
        assert_eq!(MadeUp::new().no_file(&RELEASE[1..]).look(kernel).verdict, Unknown);
    }

    #[test]
    fn features_that_the_kernel_refuses_say_what_is_lost_and_from_when_on_they_are_there() {
        let checks: [(Check, &str, _); 4] = [
            (futex_waitv, "5.16", Lacking),
            (seals, "5.1", Lacking),
            (peer_pidfd, "6.5", Worse),
            (pass_rights, "6.16", Worse),
        ];
        for (check, since, verdict) in checks {
            assert_eq!(MadeUp::new().look(check).verdict, Fine);
            let old = MadeUp::new().old_kernel().look(check);
            assert_eq!(old.verdict, verdict, "{old:?}");
            assert!(old.advice.unwrap().contains(since));
        }
        let filtered = MadeUp::new().refused(Errno::PERM).look(futex_waitv);
        assert!(filtered.found.starts_with("refused: "), "{filtered:?}");
        assert!(filtered.advice.unwrap().contains("container"));
    }

    #[test]
    fn landlock_is_judged_by_what_the_service_gives_up() {
        for (abi, want) in [(0, Lacking), (1, Worse), (3, Worse), (4, Worse), (5, Worse), (6, Fine)]
        {
            let found = MadeUp::new().landlock(abi).look(landlock);
            assert_eq!(found.verdict, want, "{abi}");
            assert_eq!(found.effect.contains("but neither TCP"), (1..=3).contains(&abi), "{abi}");
        }
    }

    #[test]
    fn seccomp_needs_the_action_that_the_service_uses() {
        assert_eq!(MadeUp::new().look(seccomp).verdict, Fine);
        let strict = MadeUp::new().file(&SECCOMP[1..], "kill_thread allow\n").look(seccomp);
        assert_eq!((strict.verdict, strict.found.as_str()), (Lacking, "only kill_thread allow"));
        assert_eq!(MadeUp::new().no_file(&SECCOMP[1..]).look(seccomp).verdict, Unknown);
    }
}
