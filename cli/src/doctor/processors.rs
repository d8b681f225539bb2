//! Processors: how many, who shares them, how quickly they wake and how fast they run.

use burst_driver::Isa;

use super::Check;
use super::finding::{Finding, Named};
use super::machine::{Machine, cpu_list};
use crate::out::counted;

pub(super) const CHECKS: &[Check] = &[
    cpus,
    shared_cores,
    stolen_time,
    cpu_quota,
    load,
    governor,
    sleep_states,
    wake_cost,
    instruction_sets,
];

const CPUS: &str = "/sys/devices/system/cpu";
const STAT: &str = "/proc/stat";
const LOADAVG: &str = "/proc/loadavg";
/// Through it a process asks that no CPU sleep deeply.
const DMA_LATENCY: &str = "/dev/cpu_dma_latency";

/// A state that takes longer to leave than this is felt by a small model, in microseconds.
const QUICK_LEAVING_US: u64 = 20;
/// Two wakes that take longer than this cost a small model more than the queue saves it.
const QUICK_WAKES_NS: u64 = 30_000;
/// Longest time that the measurement of a wake can give.
const LONGEST_WAKES_NS: u64 = 200_000;
/// Sleep states of one CPU at most; the kernel has ten.
const STATES_MAX: usize = 64;

fn cpus(machine: &Machine<'_>) -> Finding {
    let named = Named("cpus");
    let (online, usable) = match (machine.online(), machine.usable()) {
        (Ok(online), Ok(usable)) => (online.len(), usable.len()),
        (Err(why), _) | (_, Err(why)) => {
            return named.unknown(why, "How many threads compute and poll depends on it.");
        }
    };
    let found = format!("{usable} of {online}");
    match (usable, online) {
        (0 | 1, ..=1) => named.worse(
            found,
            "Nobody polls, as the other side could not run meanwhile: each frame costs two wakes.",
            "give the machine a second CPU",
        ),
        (1, _) => named.worse(
            found,
            "One thread computes, and application and driver share a CPU.",
            "do not tie the process to one CPU (taskset, cpuset)",
        ),
        _ => named.fine(
            found,
            format!("{usable} threads may compute, and {} of a process poll.", usable - 1),
        ),
    }
}

fn shared_cores(machine: &Machine<'_>) -> Finding {
    let named = Named("shared_cores");
    let effect = "Two threads that compute or poll on one core slow each other down.";
    let online = match machine.online() {
        Ok(online) => online,
        Err(why) => return named.unknown(why, effect),
    };
    let mut cores: Vec<String> = Vec::new();
    for cpu in online {
        match machine.read(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list")) {
            Ok(list) => cores.push(list),
            Err(why) => return named.unknown(why, effect),
        }
    }
    cores.sort_unstable();
    cores.dedup();
    cores.retain(|list| cpu_list(list).is_none_or(|cpus| cpus.len() > 1));
    if let Some(first) = cores.first() {
        return named.worse(
            format!("{} cores have several CPUs, the first one {first}", cores.len()),
            effect,
            "tie application and service to CPUs of different cores (taskset)",
        );
    }
    match machine.is_virtual() {
        Ok(false) => named.fine("none", "Each CPU is a core of its own."),
        Ok(true) => named.unknown(
            "none that a virtual machine is told of",
            format!("The host may run several CPUs on one core. {effect}"),
        ),
        Err(why) => named.unknown(why, effect),
    }
}

/// Where in the first line of `/proc/stat` the time stands that a hypervisor gave to others.
const STOLEN: usize = 7;
/// More than this share is felt at the 99th percentile.
const MUCH_STOLEN: f64 = 0.01;

fn stolen_time(machine: &Machine<'_>) -> Finding {
    let named = Named("stolen_time");
    let effect = "While the host runs others a frame waits, some milliseconds at a time.";
    let line = match machine.read(STAT) {
        Ok(text) => text.lines().find_map(|line| line.strip_prefix("cpu ").map(str::to_owned)),
        Err(why) => return named.unknown(why, effect),
    };
    let times: Option<Vec<u64>> =
        line.and_then(|line| line.split_whitespace().map(|time| time.parse().ok()).collect());
    let Some(stolen) = times.as_ref().and_then(|times| times.get(STOLEN)) else {
        return named.unknown(format!("{STAT} does not tell"), effect);
    };
    // The two behind it, of guests, are counted among the first two already.
    let all: u64 = times.iter().flatten().take(STOLEN + 1).sum();
    #[expect(clippy::cast_precision_loss, reason = "a share of a time")]
    let share = *stolen as f64 / all.max(1) as f64;
    let found = format!("{:.1} % since the start", share * 100.0);
    if share > MUCH_STOLEN {
        return named.worse(found, effect, "let the host give this machine CPUs of its own");
    }
    named.fine(found, "Little or nothing of the CPUs is given to other machines.")
}

fn cpu_quota(machine: &Machine<'_>) -> Finding {
    let named = Named("cpu_quota");
    let effect = "Who polls uses up the quota; then everything stands still until the next period.";
    let (groups, usable) = match (machine.groups("cpu"), machine.usable()) {
        (Ok(groups), Ok(usable)) => (groups, usable.len()),
        (Err(why), _) | (_, Err(why)) => return named.unknown(why, effect),
    };
    let least = groups.iter().filter_map(|group| quota(machine, group)).min_by(f64::total_cmp);
    #[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
    let usable = usable as f64;
    match least {
        Some(quota) if quota < usable => named.worse(
            format!("{quota:.2} CPUs"),
            effect,
            "raise the group's cpu.max, or do not poll: `--wait sleep`, `serve --max-wait sleep`",
        ),
        Some(quota) => named.fine(format!("{quota:.2} CPUs"), "No less than what there is."),
        None => named.fine("none", "All of each CPU may be used."),
    }
}

/// How many CPUs' time a control group may use; `None` for any.
fn quota(machine: &Machine<'_>, group: &str) -> Option<f64> {
    let (quota, period) = match machine.read(&format!("{group}/cpu.max")) {
        Ok(both) => {
            let (quota, period) = both.split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        }
        Err(_) => (
            machine.read(&format!("{group}/cpu.cfs_quota_us")).ok()?,
            machine.read(&format!("{group}/cpu.cfs_period_us")).ok()?,
        ),
    };
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn load(machine: &Machine<'_>) -> Finding {
    let named = Named("load");
    let effect = "Where more wants to run than there are CPUs, each wake waits for its turn.";
    let (text, online) = match (machine.read(LOADAVG), machine.online()) {
        (Ok(text), Ok(online)) => (text, online.len()),
        (Err(why), _) | (_, Err(why)) => return named.unknown(why, effect),
    };
    let last_minute = text.split_whitespace().next().and_then(|load| load.parse::<f64>().ok());
    let Some(load) = last_minute else {
        return named.unknown(format!("{LOADAVG} does not tell"), effect);
    };
    let found = format!("{load:.1} in the last minute, on {}", counted(online as u64, "CPU"));
    #[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
    if load > online as f64 {
        return named.worse(found, effect, "measure when less runs; take ratios, not times");
    }
    named.fine(found, "There is a CPU for whoever wakes.")
}

fn governor(machine: &Machine<'_>) -> Finding {
    let named = Named("governor");
    let effect = "CPUs run faster only after work has come: frames after a pause take longer.";
    let online = match machine.online() {
        Ok(online) => online,
        Err(why) => return named.unknown(why, effect),
    };
    let file = |cpu| format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor");
    let mut governors: Vec<String> =
        online.iter().filter_map(|cpu| machine.read(&file(cpu)).ok()).collect();
    governors.sort_unstable();
    governors.dedup();
    if governors.is_empty() {
        return named.unknown(
            "none that this system shows",
            "The host or the firmware chooses how fast CPUs run.",
        );
    }
    let found = governors.join(", ");
    if governors == ["performance"] {
        return named.fine(found, "CPUs run as fast as they may.");
    }
    named.worse(found, effect, "as root: cpupower frequency-set -g performance")
}

fn sleep_states(machine: &Machine<'_>) -> Finding {
    let named = Named("sleep_states");
    let first = match machine.online() {
        Ok(online) => online.first().copied().unwrap_or(0),
        Err(why) => return named.unknown(why, "A CPU that sleeps deeply answers late."),
    };
    let folder = format!("{CPUS}/cpu{first}/cpuidle");
    let states: Vec<String> = machine.list(&folder).unwrap_or_default();
    let is_on = |state: &&String| {
        machine.read(&format!("{folder}/{state}/disable")).is_ok_and(|disabled| disabled == "0")
    };
    let latency = |state: &String| machine.number(&format!("{folder}/{state}/latency")).ok();
    let deepest = states.iter().take(STATES_MAX).filter(is_on).filter_map(latency).max();
    let Some(latency) = deepest else {
        return named.unknown(
            "none that this system shows",
            "The host or the firmware chooses how deeply CPUs sleep.",
        );
    };
    let found = format!("the deepest takes {latency} us to leave");
    if latency <= QUICK_LEAVING_US {
        return named.fine(found, "A CPU that sleeps is soon awake.");
    }
    match machine.may_use(DMA_LATENCY) {
        Ok(()) => named.fine(found, "The service keeps CPUs from it while bursts are in use."),
        Err(errno) => named.worse(
            format!("{found}; {DMA_LATENCY}: {errno}"),
            "Each wake of a CPU that sleeps deeply takes that much longer.",
            format!("let the service write {DMA_LATENCY} (a rule of udev)"),
        ),
    }
}

fn wake_cost(machine: &Machine<'_>) -> Finding {
    let named = Named("wake_cost");
    let cost = machine.calls.wake_cost_ns();
    #[expect(clippy::cast_precision_loss, reason = "some microseconds")]
    let found = format!("{:.1} us for two", cost as f64 / 1e3);
    if cost <= QUICK_WAKES_NS {
        return named.fine(found, "Adaptive waiting polls for about as long before it sleeps.");
    }
    let found = if cost >= LONGEST_WAKES_NS { format!("{found} or more") } else { found };
    named.worse(
        found,
        "A frame whose two sides sleep takes that much longer; adaptive waiting polls for about as long first.",
        "where frames come all the time: `--wait spin`; else fewer sleep states and less load",
    )
}

fn instruction_sets(machine: &Machine<'_>) -> Finding {
    let named = Named("instruction_sets");
    let isa = machine.calls.isa();
    let advice = "in a virtual machine: let it have the host's model of CPU";
    if isa.neon {
        return instruction_sets_of_arm(&named, isa, advice);
    }
    match (isa.vnni, isa.avx512, isa.avx_vnni, isa.avx2) {
        (true, ..) => named.fine("AVX2, AVX-512, VNNI", "Every kernel has its fastest form."),
        (_, true, true, _) => named.worse(
            "AVX2, AVX-VNNI, AVX-512, without VNNI for it",
            "Products of bytes use vectors of half the width.",
            advice,
        ),
        (_, true, ..) => named.worse(
            "AVX2, AVX-512, without VNNI",
            "Products of bytes take kernels for pairs of 16 bits.",
            advice,
        ),
        (_, _, true, _) => named.worse(
            "AVX2, AVX-VNNI, without AVX-512",
            "Kernels use vectors of half the width.",
            advice,
        ),
        (.., true) => named.worse(
            "AVX2, without AVX-512 and VNNI",
            "Kernels use vectors of half the width, products of bytes pairs of 16 bits.",
            advice,
        ),
        _ => named.worse(
            format!("none of AVX2, AVX-512 and VNNI ({})", std::env::consts::ARCH),
            "Convolutions and the like take kernels that the compiler made; many models compute several times as long.",
            advice,
        ),
    }
}

fn instruction_sets_of_arm(named: &Named, isa: Isa, advice: &'static str) -> Finding {
    match (isa.i8mm, isa.dotprod) {
        (true, _) => named.fine(
            "NEON, DotProd, I8MM",
            "Products of bytes take instructions of their own; none of this was measured on such a machine.",
        ),
        (_, true) => named.worse(
            "NEON, DotProd, without I8MM",
            "Products of bytes take an instruction for half as many at once.",
            advice,
        ),
        _ => named.worse(
            "NEON, without DotProd and I8MM",
            "Products of bytes take the kernels of a matrix library.",
            advice,
        ),
    }
}

#[cfg(test)]
mod tests {
    use burst_driver::Isa;
    use rustix::io::Errno;

    use super::super::finding::Verdict::{self, Fine, Unknown, Worse};
    use super::super::testing::MadeUp;
    use super::*;

    const ONLINE: &str = "sys/devices/system/cpu/online";
    const STATUS: &str = "proc/self/status";

    fn verdict(made_up: &MadeUp, check: Check) -> (Verdict, String) {
        let finding = made_up.look(check);
        (finding.verdict, finding.found)
    }

    #[test]
    fn cpus_are_those_that_are_on_and_that_the_process_may_use() {
        assert_eq!(verdict(&MadeUp::new(), cpus), (Fine, "4 of 4".into()));
        let allowed =
            |list: &str| MadeUp::new().file(STATUS, &format!("Cpus_allowed_list:\t{list}\n"));
        assert_eq!(verdict(&allowed("2-9"), cpus), (Fine, "2 of 4".into()));
        assert_eq!(verdict(&allowed("1"), cpus), (Worse, "1 of 4".into()));
        let single = MadeUp::new().file(ONLINE, "0\n").look(cpus);
        assert_eq!(single.verdict, Worse);
        assert!(single.effect.starts_with("Nobody polls"));
        assert_eq!(verdict(&MadeUp::new().file(STATUS, "Name: x\n"), cpus).0, Unknown);
    }

    #[test]
    fn cores_with_several_cpus_are_named_and_a_virtual_machine_cannot_know() {
        let siblings =
            |cpu: usize| format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        assert_eq!(verdict(&MadeUp::new(), shared_cores).0, Fine);
        let pairs = MadeUp::new()
            .file(&siblings(0), "0,2\n")
            .file(&siblings(2), "0,2\n")
            .file(&siblings(1), "1,3\n")
            .file(&siblings(3), "1,3\n");
        let said = "2 cores have several CPUs, the first one 0,2";
        assert_eq!(verdict(&pairs, shared_cores), (Worse, said.into()));
        let guest = MadeUp::new().file("proc/cpuinfo", "flags\t\t: fpu hypervisor lm\n");
        assert_eq!(verdict(&guest, shared_cores).0, Unknown);
        assert_eq!(verdict(&MadeUp::new().no_file(&siblings(3)), shared_cores).0, Unknown);
    }

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let stat = |line: &str| verdict(&MadeUp::new().file("proc/stat", line), stolen_time);
        assert_eq!(
            stat("cpu  10 0 10 970 0 0 0 10 5 5\ncpu0 1\n"),
            (Fine, "1.0 % since the start".into())
        );
        assert_eq!(
            stat("cpu  10 0 10 930 0 0 0 50 5 5\n"),
            (Worse, "5.0 % since the start".into())
        );
        for nonsense in ["cpu  1 2 3\n", "cpu  a b c d e f g h\n", "intr 5\n"] {
            assert_eq!(stat(nonsense).0, Unknown, "{nonsense}");
        }
    }

    #[test]
    fn a_quota_counts_where_it_is_less_than_the_cpus() {
        let cgroup = ("proc/self/cgroup", "0::/app\n");
        let of = |file: &str, value: &str| {
            verdict(&MadeUp::new().file(cgroup.0, cgroup.1).file(file, value), cpu_quota)
        };
        assert_eq!(of("sys/fs/cgroup/app/cpu.max", "max 100000"), (Fine, "none".into()));
        assert_eq!(of("sys/fs/cgroup/app/cpu.max", "150000 100000"), (Worse, "1.50 CPUs".into()));
        assert_eq!(of("sys/fs/cgroup/cpu.max", "50000 100000"), (Worse, "0.50 CPUs".into()));
        assert_eq!(of("sys/fs/cgroup/app/cpu.max", "900000 100000").0, Fine);
        let older = MadeUp::new()
            .file(cgroup.0, "3:cpu:/a\n")
            .file("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "20000")
            .file("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
        assert_eq!(verdict(&older, cpu_quota), (Worse, "0.20 CPUs".into()));
        let unlimited = older.file("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1");
        assert_eq!(verdict(&unlimited, cpu_quota), (Fine, "none".into()));
        assert_eq!(verdict(&MadeUp::new().no_file(cgroup.0), cpu_quota).0, Unknown);
    }

    #[test]
    fn load_is_judged_by_the_cpus() {
        let of = |text: &str| verdict(&MadeUp::new().file("proc/loadavg", text), load).0;
        assert_eq!(of("3.90 9 9 1/2 3"), Fine);
        assert_eq!(of("4.10 0 0 1/2 3"), Worse);
        assert_eq!(of("much"), Unknown);
        assert_eq!(verdict(&MadeUp::new().no_file("proc/loadavg"), load).0, Unknown);
    }

    #[test]
    fn any_governor_but_performance_costs_time() {
        let file = |cpu: usize| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        assert_eq!(verdict(&MadeUp::new(), governor), (Fine, "performance".into()));
        let mixed = MadeUp::new().file(&file(3), "powersave\n");
        assert_eq!(verdict(&mixed, governor), (Worse, "performance, powersave".into()));
        let none = (0..4).fold(MadeUp::new(), |made_up, cpu| made_up.no_file(&file(cpu)));
        assert_eq!(verdict(&none, governor).0, Unknown);
    }

    #[test]
    fn deep_sleep_counts_where_the_service_cannot_hold_it_off() {
        assert_eq!(verdict(&MadeUp::new(), sleep_states).0, Fine);
        let state = "sys/devices/system/cpu/cpu0/cpuidle/state1";
        let deep = || MadeUp::new().file(&format!("{state}/latency"), "350\n");
        let held = deep().look(sleep_states);
        assert_eq!((held.verdict, held.found.contains("350 us")), (Fine, true), "{held:?}");
        assert!(held.effect.contains("keeps CPUs from it"));
        assert_eq!(verdict(&deep().refused(Errno::ACCESS), sleep_states).0, Worse);
        let off = deep().file(&format!("{state}/disable"), "1\n").refused(Errno::ACCESS);
        assert_eq!(verdict(&off, sleep_states).0, Fine);
        assert_eq!(verdict(&MadeUp::without_files(), sleep_states).0, Unknown);
        let none = MadeUp::without_files().file(ONLINE, "0-1");
        assert_eq!(verdict(&none, sleep_states).0, Unknown);
    }

    #[test]
    fn what_two_wakes_take_is_said_and_judged() {
        assert_eq!(
            verdict(&MadeUp::new().wakes(8_000), wake_cost),
            (Fine, "8.0 us for two".into())
        );
        assert_eq!(
            verdict(&MadeUp::new().wakes(57_300), wake_cost),
            (Worse, "57.3 us for two".into())
        );
        let longest = verdict(&MadeUp::new().wakes(LONGEST_WAKES_NS), wake_cost);
        assert_eq!(longest, (Worse, "200.0 us for two or more".into()));
    }

    #[test]
    fn each_step_of_the_ladder_of_instruction_sets_says_what_is_missing() {
        let of = |isa| verdict(&MadeUp::new().isa(isa), instruction_sets);
        let all = Isa { avx2: true, avx_vnni: true, avx512: true, vnni: true, ..Isa::PORTABLE };
        let without_avx_vnni = Isa { avx_vnni: false, ..all };
        assert_eq!(of(all), (Fine, "AVX2, AVX-512, VNNI".into()));
        assert_eq!(of(without_avx_vnni), of(all));
        let without_vnni = Isa { vnni: false, ..all };
        let found = "AVX2, AVX-VNNI, AVX-512, without VNNI for it";
        assert_eq!(of(without_vnni), (Worse, found.into()));
        let without_both = Isa { vnni: false, ..without_avx_vnni };
        assert_eq!(of(without_both), (Worse, "AVX2, AVX-512, without VNNI".into()));
        let client = Isa { avx512: false, ..without_vnni };
        assert_eq!(of(client), (Worse, "AVX2, AVX-VNNI, without AVX-512".into()));
        let avx2 = Isa { avx_vnni: false, ..client };
        assert_eq!(of(avx2), (Worse, "AVX2, without AVX-512 and VNNI".into()));
        assert!(of(Isa::PORTABLE).1.starts_with("none of AVX2"));
        let of_arm = |dotprod, i8mm| {
            let isa = Isa { neon: true, dotprod, i8mm, ..Isa::PORTABLE };
            verdict(&MadeUp::new().isa(isa), instruction_sets)
        };
        assert_eq!(of_arm(true, true), (Fine, "NEON, DotProd, I8MM".into()));
        assert_eq!(of_arm(true, false), (Worse, "NEON, DotProd, without I8MM".into()));
        assert_eq!(of_arm(false, false), (Worse, "NEON, without DotProd and I8MM".into()));
    }
}
