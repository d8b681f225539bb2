//! Cache lines: what one takes from one CPU to another, which is what a message takes at least.

use burst_harness::lines::FAR_ABOVE_NS;

use super::Check;
use super::finding::{Finding, Named};
use super::machine::Machine;
use crate::out::counted;

pub(super) const CHECKS: &[Check] = &[cache_lines];

/// Most CPUs to which lines are sent from the first one.
const OTHERS_MAX: usize = 63;
/// Between two CPUs of one core a line stays in that core's own cache.
const ONE_CORE_BELOW_NS: f64 = 80.0;

fn cache_lines(machine: &Machine<'_>) -> Finding {
    let named = Named("cache_lines");
    let effect =
        "A message and its answer, and each operation that threads share, wait for such lines.";
    let usable = match machine.usable() {
        Ok(usable) => usable,
        Err(why) => return named.unknown(why, effect),
    };
    let Some((first, others)) = usable.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return named.fine("one CPU", "None travels.");
    };
    let to = |cpu: &usize| Some((*cpu, machine.calls.two_lines_ns([*first, *cpu])?));
    let measured: Vec<(usize, f64)> = others.iter().take(OTHERS_MAX).filter_map(to).collect();
    let times = || measured.iter().map(|(_, ns)| *ns);
    let (Some(least), Some(most)) =
        (times().min_by(f64::total_cmp), times().max_by(f64::total_cmp))
    else {
        return named.unknown("no thread ran on both of two CPUs", effect);
    };
    let at_the_other_end = match measured.as_slice() {
        [(only, _)] => format!("CPU {only}"),
        several => counted(several.len() as u64, "other"),
    };
    let range = if measured.len() == 1 { String::new() } else { format!(" to {most:.0}") };
    let found =
        format!("{least:.0}{range} ns there and back between CPU {first} and {at_the_other_end}");
    let is_near = |ns: f64| (ONE_CORE_BELOW_NS..=FAR_ABOVE_NS).contains(&ns);
    let near: Vec<String> =
        measured.iter().filter(|(_, ns)| is_near(*ns)).map(|(cpu, _)| cpu.to_string()).collect();
    if most <= FAR_ABOVE_NS && !near.is_empty() {
        return named.fine(found, effect);
    }
    if most < ONE_CORE_BELOW_NS {
        return named.worse(
            found,
            "So short a way stays on one core: two threads that compute or poll slow each other down.",
            "use CPUs of other cores; in a virtual machine: let it have cores of its own",
        );
    }
    let advice = if near.is_empty() {
        "use CPUs that share a cache (lscpu -e); in a virtual machine the host chooses, and may choose anew".to_owned()
    } else {
        format!(
            "tie application and service to CPU {first} and those near it: {} (taskset)",
            near.join(", ")
        )
    };
    named.worse(found, effect, advice)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict::{self, Fine, Unknown, Worse};
    use super::super::testing::MadeUp;
    use super::*;

    fn found(made_up: &MadeUp) -> (Verdict, String, Option<String>) {
        let Finding { verdict, found, advice, .. } = made_up.look(cache_lines);
        (verdict, found, advice)
    }

    #[test]
    fn lines_are_sent_from_the_first_cpu_to_all_others() {
        let near =
            MadeUp::new().lines(|[from, to]| [0.0, 101.0, 102.0, 103.0].get(from + to).copied());
        let said = "101 to 103 ns there and back between CPU 0 and 3 others";
        assert_eq!(found(&near), (Fine, said.into(), None));
        let two = MadeUp::new().file("sys/devices/system/cpu/online", "2-3").lines(|_| Some(117.6));
        let said = "118 ns there and back between CPU 2 and CPU 3";
        assert_eq!(found(&two), (Fine, said.into(), None));
        let one = MadeUp::new().file("sys/devices/system/cpu/online", "0").lines(|_| None);
        assert_eq!(found(&one), (Fine, "one CPU".into(), None));
    }

    #[test]
    fn far_cpus_are_worse_and_the_near_ones_are_named() {
        let some = MadeUp::new().lines(|[_, to]| Some([0.0, 56.0, 140.0, 512.0][to]));
        let (verdict, said, advice) = found(&some);
        assert_eq!(verdict, Worse);
        assert_eq!(said, "56 to 512 ns there and back between CPU 0 and 3 others");
        assert!(advice.unwrap().contains("CPU 0 and those near it: 2 ("));
        let (verdict, _, advice) = found(&MadeUp::new().lines(|_| Some(512.0)));
        assert_eq!(verdict, Worse);
        assert!(advice.unwrap().contains("lscpu"));
    }

    #[test]
    fn one_core_for_all_is_worse_and_beside_near_ones_it_is_no_matter() {
        let one_core = MadeUp::new().lines(|_| Some(56.0)).look(cache_lines);
        assert_eq!(one_core.verdict, Worse);
        assert!(one_core.effect.contains("on one core"));
        let both = MadeUp::new().lines(|[_, to]| Some(if to == 1 { 56.0 } else { 120.0 }));
        assert_eq!(found(&both).0, Fine);
    }

    #[test]
    fn what_cannot_be_measured_is_unknown() {
        assert_eq!(found(&MadeUp::new().lines(|_| None)).0, Unknown);
        assert_eq!(found(&MadeUp::without_files()).0, Unknown);
    }
}
