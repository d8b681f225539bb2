//! How much there may be of each thing: by the machine, its control groups and the limits of processes.

use super::Check;
use super::finding::{Finding, Named};
use super::machine::Machine;

pub(super) const CHECKS: &[Check] = &[open_files, threads, mappings, address_space, memory];

const LIMITS: &str = "/proc/self/limits";
const MEMINFO: &str = "/proc/meminfo";
const MAP_COUNT: &str = "/proc/sys/vm/max_map_count";

/// Descriptors with which some hundred clients have room.
const MANY_FILES: u64 = 4096;
/// What the service takes, without a limit of the system, on any machine.
const MANY_THREADS: u64 = 2048;
/// The kernel's own number.
const USUAL_MAPPINGS: u64 = 65_530;
/// With less than that real models do not fit beside each other.
const SOME_MEMORY: u64 = 1 << 30;
/// Control groups of version 1 give a number like this for no limit.
const NO_LIMIT: u64 = 1 << 62;

/// The limit of this process in the line that begins with `name`: what holds now, and what it may raise it to.
fn limit(machine: &Machine<'_>, name: &str) -> Result<(u64, u64), String> {
    let text = machine.read(LIMITS)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = |word: &str| match word {
        "unlimited" => Some(u64::MAX),
        word => word.parse().ok(),
    };
    let mut numbers = line.into_iter().flat_map(str::split_whitespace).map_while(number);
    match (numbers.next(), numbers.next()) {
        (Some(soft), Some(hard)) => Ok((soft, hard)),
        _ => Err(format!("{LIMITS} has no {name}")),
    }
}

fn written(number: u64) -> String {
    if number == u64::MAX { "unlimited".to_owned() } else { number.to_string() }
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

fn open_files(machine: &Machine<'_>) -> Finding {
    let named = Named("open_files");
    let (soft, hard) = match limit(machine, "Max open files") {
        Ok(both) => both,
        Err(why) => return named.unknown(why, "Each client, memory and queue is a descriptor."),
    };
    let found = format!("{}, at most {}", written(soft), written(hard));
    let effect = "The service raises it to the second number. Each client, memory, queue and fence takes one.";
    if hard >= MANY_FILES {
        return named.fine(found, effect);
    }
    named.worse(found, effect, "raise it: LimitNOFILE= of the unit, nofile in limits.conf")
}

fn threads(machine: &Machine<'_>) -> Finding {
    let named = Named("threads");
    let effect =
        "Each connection and each burst has a thread; the service takes half of this at most.";
    let of_user = match limit(machine, "Max processes") {
        Ok((soft, _)) => soft,
        Err(why) => return named.unknown(why, effect),
    };
    let groups = machine.groups("pids").unwrap_or_default();
    let of_group =
        groups.iter().filter_map(|group| machine.number(&format!("{group}/pids.max")).ok()).min();
    let (found, advice) = match of_group {
        Some(tasks) if tasks < of_user => {
            (format!("{tasks}, by its control group"), "raise TasksMax= of the unit, or pids.max")
        }
        _ => (written(of_user), "raise it: LimitNPROC= of the unit, nproc in limits.conf"),
    };
    if of_user.min(of_group.unwrap_or(u64::MAX)) >= MANY_THREADS {
        return named.fine(found, effect);
    }
    named.worse(found, effect, advice)
}

fn mappings(machine: &Machine<'_>) -> Finding {
    let named = Named("mappings");
    let effect = "Every memory and queue of every client is a mapping of the service.";
    match machine.number(MAP_COUNT) {
        Ok(count) if count >= USUAL_MAPPINGS => named.fine(count.to_string(), effect),
        Ok(count) => named.worse(
            count.to_string(),
            effect,
            format!("as root: sysctl vm.max_map_count={USUAL_MAPPINGS}"),
        ),
        Err(why) => named.unknown(why, effect),
    }
}

fn address_space(machine: &Machine<'_>) -> Finding {
    let named = Named("address_space");
    let effect = "What clients share is mapped into the service; beyond the limit it is refused.";
    match limit(machine, "Max address space") {
        Ok((u64::MAX, _)) => {
            named.fine("unlimited", "It is bounded by the service's own limit alone.")
        }
        Ok((soft, _)) => {
            named.worse(gib(soft), effect, "raise it: LimitAS= of the unit, `ulimit -v unlimited`")
        }
        Err(why) => named.unknown(why, effect),
    }
}

fn memory(machine: &Machine<'_>) -> Finding {
    let named = Named("memory");
    let effect =
        "Three quarters of it are for clients' models and memories, unless flags say otherwise.";
    let total = match kib(machine, "MemTotal") {
        Ok(total) => total,
        Err(why) => return named.unknown(why, effect),
    };
    let groups = machine.groups("memory").unwrap_or_default();
    let limits: Vec<(u64, Option<u64>)> =
        groups.iter().filter_map(|group| limit_of_group(machine, group)).collect();
    let of_group = limits.iter().map(|(limit, _)| *limit).min();
    let (least, whose) = match of_group {
        Some(limit) if limit < total => (limit, ", by its control group"),
        _ => (total, ""),
    };
    // What is free on the machine is of use as far as each group may still take it.
    let left = limits.iter().map(|(limit, used)| used.map(|used| limit.saturating_sub(used)));
    let left: Option<Vec<u64>> = left.collect();
    let free = kib(machine, "MemAvailable").ok().zip(left);
    let free = free.map(|(free, left)| left.into_iter().fold(free, u64::min));
    let free = free.map_or_else(String::new, |free| format!(", {} free", gib(free)));
    let found = format!("{}{whose}{free}", gib(least));
    if least >= SOME_MEMORY {
        return named.fine(found, effect);
    }
    named.worse(found, effect, "give it more, or hold clients to less: `serve --max-memory`")
}

/// What a group may have of memory, where it is limited, and what it has by now, where that can be read: without
/// what was read of files and can be read again.
fn limit_of_group(machine: &Machine<'_>, group: &str) -> Option<(u64, Option<u64>)> {
    // Of version 2 and of version 1.
    const FILES: [[&str; 3]; 2] = [
        ["memory.max", "memory.current", "inactive_file"],
        ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
    ];
    FILES.iter().find_map(|[limit, used, cached]| {
        let limit = machine.number(&format!("{group}/{limit}")).ok().filter(|n| *n < NO_LIMIT)?;
        let stat = machine.read(&format!("{group}/memory.stat")).unwrap_or_default();
        let cached = stat.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            (name == *cached).then(|| value.parse::<u64>().ok()).flatten()
        });
        let used = machine.number(&format!("{group}/{used}")).ok();
        Some((limit, used.map(|used| used.saturating_sub(cached.unwrap_or(0)))))
    })
}

/// Bytes that a line of `/proc/meminfo` gives in units of 1024.
fn kib(machine: &Machine<'_>, name: &str) -> Result<u64, String> {
    let value = machine.line_of(MEMINFO, name)?;
    let number = value.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
    number
        .and_then(|kib| kib.checked_mul(1024))
        .ok_or_else(|| format!("{MEMINFO}: {name} is no size"))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict::{self, Fine, Unknown, Worse};
    use super::super::testing::MadeUp;
    use super::*;

    const LIMITS: &str = "proc/self/limits";
    const CGROUP: &str = "proc/self/cgroup";

    fn verdict(made_up: &MadeUp, check: Check) -> (Verdict, String) {
        let finding = made_up.look(check);
        (finding.verdict, finding.found)
    }

    #[test]
    fn limits_of_a_process_are_what_it_may_raise_them_to() {
        let of = |line: &str, check: Check| verdict(&MadeUp::new().file(LIMITS, line), check);
        assert_eq!(
            of(
                "Max open files            1024                 524288               files\n",
                open_files
            ),
            (Fine, "1024, at most 524288".into())
        );
        assert_eq!(
            of(
                "Max open files            1024                 1024                 files\n",
                open_files
            )
            .0,
            Worse
        );
        let line = "Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(of(line, address_space), (Fine, "unlimited".into()));
        let line = "Max address space         8589934592           unlimited            bytes\n";
        assert_eq!(of(line, address_space), (Worse, "8.0 GiB".into()));
        for check in [open_files as Check, threads, address_space] {
            assert_eq!(of("Max open things  soon\n", check).0, Unknown);
            assert_eq!(verdict(&MadeUp::new().no_file(LIMITS), check).0, Unknown);
        }
    }

    #[test]
    fn threads_are_counted_by_the_tighter_of_user_and_control_group() {
        assert_eq!(verdict(&MadeUp::new(), threads), (Fine, "96365".into()));
        let group = |tasks: &str| {
            let made_up = MadeUp::new().file(CGROUP, "0::/app\n");
            verdict(&made_up.file("sys/fs/cgroup/app/pids.max", tasks), threads)
        };
        assert_eq!(group("max"), (Fine, "96365".into()));
        assert_eq!(group("512"), (Worse, "512, by its control group".into()));
        let few = "Max processes             300                  300                  processes\n";
        assert_eq!(verdict(&MadeUp::new().file(LIMITS, few), threads), (Worse, "300".into()));
    }

    #[test]
    fn mappings_are_judged_by_the_kernels_usual_number() {
        let of = |text: &str| {
            verdict(&MadeUp::new().file("proc/sys/vm/max_map_count", text), mappings).0
        };
        assert_eq!((of("65530\n"), of("1000\n"), of("many")), (Fine, Worse, Unknown));
        assert_eq!(
            verdict(&MadeUp::new().no_file("proc/sys/vm/max_map_count"), mappings).0,
            Unknown
        );
    }

    #[test]
    fn memory_is_that_of_the_machine_or_of_a_tighter_control_group() {
        assert_eq!(verdict(&MadeUp::new(), memory), (Fine, "16.0 GiB, 8.0 GiB free".into()));
        let group = MadeUp::new()
            .file(CGROUP, "0::/app\n")
            .file("sys/fs/cgroup/app/memory.max", "536870912\n");
        let said = verdict(&group, memory);
        assert_eq!(
            said,
            (Worse, "0.5 GiB, by its control group".into()),
            "nobody knows what is left"
        );
        let group = group
            .file("sys/fs/cgroup/app/memory.current", "429496730\n")
            .file("sys/fs/cgroup/app/memory.stat", "anon 1\ninactive_file 107374182\n");
        let said = verdict(&group, memory);
        assert_eq!(said, (Worse, "0.5 GiB, by its control group, 0.2 GiB free".into()));
        let older = MadeUp::new()
            .file(CGROUP, "4:memory:/\n")
            .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(verdict(&older, memory), (Fine, "16.0 GiB, 8.0 GiB free".into()));
        for meminfo in ["MemTotal: much\n", "SwapTotal: 1 kB\n"] {
            assert_eq!(verdict(&MadeUp::new().file("proc/meminfo", meminfo), memory).0, Unknown);
        }
    }
}
