//! The clock: every request looks at it several times.

use super::Check;
use super::finding::{Finding, Named};
use super::machine::Machine;

pub(super) const CHECKS: &[Check] = &[clock_source];

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Clocks that no process can read without asking the kernel and, mostly, a device.
const SLOW: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"];
/// A look that takes longer than this went through the kernel.
const QUICK_NS: u64 = 150;

fn clock_source(machine: &Machine<'_>) -> Finding {
    let named = Named("clock_source");
    let cost = machine.calls.clock_cost_ns();
    let takes = format!("Reading the time takes {cost} ns, some ten times a request.");
    let source = match machine.read(CURRENT) {
        Ok(source) => source,
        Err(why) => return named.unknown(why, takes),
    };
    if cost <= QUICK_NS && !SLOW.contains(&source.as_str()) {
        return named.fine(source, takes);
    }
    let available = machine.read(AVAILABLE).unwrap_or_default();
    let better = available.split_whitespace().find(|one| *one != source && !SLOW.contains(one));
    let advice = match better {
        Some(better) => {
            format!("boot with clocksource={better}, unless the kernel log calls it unstable")
        }
        None => "in a virtual machine: let it have the host's time stamp counter".to_owned(),
    };
    named.worse(source, format!("{takes} It goes through the kernel."), advice)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::super::testing::MadeUp;
    use super::*;

    #[test]
    fn a_clock_that_asks_the_kernel_is_worse_and_a_better_one_is_named() {
        let fine = MadeUp::new().look(clock_source);
        assert_eq!((fine.verdict, fine.found.as_str()), (Verdict::Fine, "tsc"));
        let hpet = MadeUp::new().file(&CURRENT[1..], "hpet\n").look(clock_source);
        assert_eq!(hpet.verdict, Verdict::Worse);
        assert!(hpet.advice.unwrap().contains("clocksource=tsc"));
        let slow = MadeUp::new().clock(900).look(clock_source);
        assert_eq!(slow.verdict, Verdict::Worse);
        assert!(slow.effect.contains("900 ns"), "{slow:?}");
        assert!(slow.advice.unwrap().contains("kvm-clock"));
        let none =
            MadeUp::new().file(&CURRENT[1..], "xen\n").file(&AVAILABLE[1..], "xen\n").clock(900);
        assert!(none.look(clock_source).advice.unwrap().contains("virtual machine"));
    }

    #[test]
    fn a_clock_that_is_not_named_is_unknown() {
        let unknown = MadeUp::new().no_file(&CURRENT[1..]).look(clock_source);
        assert_eq!(unknown.verdict, Verdict::Unknown);
        assert!(unknown.found.contains(CURRENT), "{unknown:?}");
    }
}
