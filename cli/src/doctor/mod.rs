//! `burst doctor`: what this machine allows, what follows from it, and what can be done.
//!
//! | file | what |
//! |---|---|
//! | `machine.rs`, `calls.rs` | where answers come from: files of the system, and calls of the kernel |
//! | `clock.rs`, `processors.rs`, `lines.rs`, `kernel.rs`, `limits.rs`, `devices.rs` | the checks |
//! | `finding.rs`, `text.rs` | what a check finds; that for people |

mod calls;
mod clock;
mod devices;
mod finding;
mod kernel;
mod limits;
mod lines;
mod machine;
mod processors;
#[cfg(test)]
mod testing;
mod text;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::{failure, json, out};
use finding::{Finding, Verdict};
use machine::Machine;

/// What is looked at, in the order in which it is shown.
const CHECKS: [&[Check]; 6] = [
    clock::CHECKS,
    processors::CHECKS,
    lines::CHECKS,
    kernel::CHECKS,
    limits::CHECKS,
    devices::CHECKS,
];

/// One thing that is looked at.
type Check = fn(&Machine<'_>) -> Finding;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
struct Report {
    /// How many of them are in the way of something.
    lacking: usize,
    /// How many cost time or room.
    worse: usize,
    /// How many could not be found out.
    unknown: usize,
    checks: Vec<Finding>,
}

impl Report {
    fn of(machine: &Machine<'_>) -> Report {
        let checks: Vec<Finding> =
            CHECKS.iter().flat_map(|group| group.iter()).map(|check| check(machine)).collect();
        let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
        Report {
            lacking: count(Verdict::Lacking),
            worse: count(Verdict::Worse),
            unknown: count(Verdict::Unknown),
            checks,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let report = Report::of(&Machine { root: Path::new("/"), calls: &calls::Here });
    let mut to = out::stdout();
    if args.json {
        writeln!(to, "{}", json::object(&json::DOCTOR, &report)?)?;
    } else {
        let columns = out::columns().map_or(text::USUAL_COLUMNS, usize::from);
        write!(to, "{}", text::text(&report, columns))?;
    }
    Ok(ExitCode::from(if report.lacking == 0 { 0 } else { failure::NO }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::MadeUp;

    #[test]
    fn every_check_has_a_name_of_its_own_an_effect_and_a_way_out_of_what_is_wrong() {
        for made_up in [MadeUp::new(), MadeUp::without_files().old_kernel()] {
            let report = made_up.look(Report::of);
            let mut names: Vec<&str> = report.checks.iter().map(|check| check.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), report.checks.len());
            for check in &report.checks {
                assert!(!check.found.is_empty() && !check.effect.is_empty(), "{check:?}");
                let wants_advice = matches!(check.verdict, Verdict::Lacking | Verdict::Worse);
                assert!(!wants_advice || check.advice.is_some(), "{check:?}");
            }
        }
    }

    /// Machines on which, taken together, every check comes to more than one verdict.
    fn made_up() -> [MadeUp; 4] {
        let tight = "Max processes  64  64  processes\nMax open files  64  64  files\n\
                     Max address space  1048576  1048576  bytes\n";
        [
            MadeUp::new(),
            MadeUp::without_files().old_kernel(),
            MadeUp::new()
                .file("dev/dma_heap/system", "")
                .file("sys/class/video4linux/video0/name", "Webcam\n")
                .file("sys/class/powercap/intel-rapl:0/energy_uj", "5\n"),
            MadeUp::new()
                .file("proc/self/limits", tight)
                .file("proc/self/cgroup", "0::/app\n")
                .file("sys/fs/cgroup/app/cpu.max", "50000 100000\n")
                .file("proc/stat", "cpu  1000 0 1000 9000 0 0 0 5000 0 0\n")
                .file("proc/loadavg", "40.0 40.0 40.0 1/100 7\n"),
        ]
    }

    /// A check that says the same of every machine that is made up is a check that no test looks at.
    #[test]
    fn every_line_goes_by_the_machine_that_is_made_up() {
        let reports = made_up().map(|machine| machine.look(Report::of).checks);
        for (at, check) in reports[0].iter().enumerate() {
            let said: Vec<(Verdict, &str)> = reports
                .iter()
                .map(|checks| (checks[at].verdict, checks[at].found.as_str()))
                .collect();
            assert!(reports.iter().all(|checks| checks[at].name == check.name));
            assert!(
                said.iter().any(|(verdict, _)| *verdict != said[0].0),
                "{}: {said:?}",
                check.name
            );
        }
    }

    #[test]
    fn a_machine_that_tells_nothing_is_unknown_and_not_fine() {
        let report = MadeUp::without_files().look(Report::of);
        let fine: Vec<&str> = report
            .checks
            .iter()
            .filter(|check| check.verdict == Verdict::Fine)
            .map(|check| check.name)
            .collect();
        // These ask the kernel or the processor, which answer.
        let asked = [
            "wake_cost",
            "instruction_sets",
            "futex_waitv",
            "seals",
            "landlock",
            "peer_pidfd",
            "pass_rights",
        ];
        assert!(fine.iter().all(|name| asked.contains(name)), "{fine:?}");
        assert!(report.unknown >= 12, "{report:?}");
    }

    #[test]
    fn what_this_machine_has_is_found_without_an_end_in_the_middle() {
        let here = Machine { root: Path::new("/"), calls: &calls::Here };
        let report = Report::of(&here);
        let all: usize = CHECKS.iter().map(|group| group.len()).sum();
        assert_eq!(report.checks.len(), all);
        let kernel = report.checks.iter().find(|check| check.name == "kernel").unwrap();
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(kernel.found, format!("Linux {}", release.trim()));
    }
}
