//! The nine tests.

use super::worker::Role;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Test {
    /// Several clients compute at once, each on all devices, until they are told to stop.
    Parallel,
    /// Models are prepared and dropped again and again.
    Prepare,
    /// Clients take of everything all that they may have, and go on asking.
    Memory,
    /// Clients with many models.
    Models,
    /// Clients are killed at any time, beside one that is not.
    ClientKilled,
    /// The driver is killed at any time; its clients go on with the next one.
    DriverKilled,
    /// Models are prepared while others compute.
    PrepareBeside,
    /// Deadlines, priorities, executions that are cancelled, and connections that end in the middle of one.
    Mixed,
    /// Clients take all descriptors that the service has, beside an honest one.
    Descriptors,
}

/// Who is killed on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    Nobody,
    /// All workers but the last.
    Workers,
    Service,
}

/// What a test consists of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) workers: &'static [Role],
    pub(super) victim: Victim,
    /// Further arguments of this program's service.
    pub(super) limits: &'static [&'static str],
    /// Whether half-way through the system leaves the service fewer descriptors than it gives away.
    pub(super) starves: bool,
    /// What has to have happened, or the test has shown nothing: names of what workers count.
    pub(super) shows: &'static [&'static str],
    /// The same with this program's service, which has the limits.
    pub(super) shows_of_ours: &'static [&'static str],
}

/// Limits that are soon reached: each of those that bound what a client, or a user, takes.
const LITTLE: &[&str] = &[
    "--max-models=9",
    "--max-bursts=9",
    "--max-buffers=8",
    "--max-memories=64",
    "--max-mapped-bytes=16777216",
    "--max-allocated-bytes=8388608",
    "--max-model-bytes=1048576",
    "--max-pending-executions=16",
    "--max-memory-per-user=33554432",
    "--max-address-space-per-user=67108864",
    "--max-threads-per-user=64",
    "--max-clients-per-user=20",
];
/// What [`LITTLE`] has refused, and the service by itself.
const REFUSED: &[&str] = &[
    "refused:models",
    "refused:bursts",
    "refused:buffers",
    "refused:memories",
    "refused:mapped_bytes",
    "refused:allocated_bytes",
    "refused:model_bytes",
    "refused:queue_datums",
    "refused:pending_executions",
    "refused:memory_bytes_per_user",
    "refused:address_space_bytes_per_user",
    "refused:threads_per_user",
    "refused:clients_per_user",
];
/// Enough for those who live: a service that gave nothing back of the dead would soon have no place.
const FOR_THE_LIVING: &[&str] = &[
    "--max-clients-per-user=12",
    "--max-threads-per-user=96",
    "--max-descriptors-per-user=600",
    "--max-memory-per-user=268435456",
];
const FEW_DESCRIPTORS: &[&str] = &["--max-descriptors=400", "--max-descriptors-per-user=300"];

impl Test {
    pub(super) fn name(self) -> &'static str {
        match self {
            Test::Parallel => "parallel",
            Test::Prepare => "prepare",
            Test::Memory => "memory",
            Test::Models => "models",
            Test::ClientKilled => "client-killed",
            Test::DriverKilled => "driver-killed",
            Test::PrepareBeside => "prepare-beside",
            Test::Mixed => "mixed",
            Test::Descriptors => "descriptors",
        }
    }

    pub(super) fn plan(self) -> Plan {
        use Role::{Exhaust, Hoard, Infer, Many, Mixed, Prepare, Reconnect};
        let plan = |workers, shows| Plan {
            workers,
            victim: Victim::Nobody,
            limits: &[],
            starves: false,
            shows,
            shows_of_ours: &[],
        };
        match self {
            Test::Parallel => plan(&[Infer, Infer, Infer, Infer], &["answers"]),
            Test::Prepare => plan(&[Prepare, Prepare], &["prepared", "answers"]),
            Test::Memory => Plan {
                limits: LITTLE,
                shows_of_ours: REFUSED,
                ..plan(&[Hoard, Hoard, Infer], &["answers"])
            },
            Test::Models => plan(&[Many, Many], &["times_with_48_models", "answers"]),
            Test::ClientKilled => Plan {
                victim: Victim::Workers,
                limits: FOR_THE_LIVING,
                ..plan(&[Infer, Prepare, Mixed, Exhaust, Infer], &["answers"])
            },
            Test::DriverKilled => Plan {
                victim: Victim::Service,
                ..plan(&[Reconnect, Reconnect, Reconnect], &["came_back", "answers"])
            },
            Test::PrepareBeside => {
                plan(&[Prepare, Infer, Prepare, Infer], &["prepared", "answers"])
            }
            Test::Mixed => Plan {
                shows_of_ours: &["deadlines_that_ended_loops", "loops_cancelled", "hung_up_midway"],
                ..plan(&[Mixed, Mixed, Infer], MIXED)
            },
            Test::Descriptors => Plan {
                limits: FEW_DESCRIPTORS,
                starves: true,
                shows_of_ours: &["refused:descriptors_per_user", "refused:process_descriptors"],
                ..plan(&[Exhaust, Exhaust, Infer], &[ANSWERS_BESIDE])
            },
        }
    }
}

/// Answers that came while somebody had all descriptors.
pub(super) const ANSWERS_BESIDE: &str = "answers_beside_exhaustion";

/// What has to come of deadlines, priorities and cancellation.
const MIXED: &[&str] = &[
    "deadlines_kept",
    "missed_at_a_fence",
    "priority_low",
    "priority_medium",
    "priority_high",
    "cancelled",
    "failed_behind_one",
    "dropped",
    "answers",
];

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn names_are_those_of_the_command_line_and_whoever_kills_leaves_one_alone() {
        assert_eq!(Test::value_variants().len(), 9);
        for test in Test::value_variants() {
            assert_eq!(test.to_possible_value().unwrap().get_name(), test.name());
            assert!(test.plan().victim != Victim::Workers || test.plan().workers.len() > 1);
        }
    }
}
