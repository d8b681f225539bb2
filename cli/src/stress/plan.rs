//! The nine tests.

use super::worker::Role;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Test {
    /// Several clients compute at once, on all devices, until they are told to stop.
    Parallel,
    /// Models are prepared and dropped again and again.
    Prepare,
    /// Clients take all that they may have, and beyond.
    Memory,
    /// Clients with many models.
    Models,
    /// Clients are killed at any time, beside one that is not.
    ClientKilled,
    /// The driver is killed at any time; its clients go on with the next one.
    DriverKilled,
    /// Models are prepared while others compute.
    PrepareBeside,
    /// Deadlines, priorities, and connections that end in the middle of an execution.
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
    /// Further arguments of the service.
    pub(super) limits: &'static [&'static str],
}

/// Limits that are soon reached.
const LITTLE: &[&str] = &["--max-models", "8", "--max-bursts", "8", "--max-memories", "64"];
const FEW_DESCRIPTORS: &[&str] = &["--max-descriptors", "400", "--max-descriptors-per-user", "300"];

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
        use Role::{Hoard, Infer, Many, Mixed, Prepare, Reconnect};
        let plan = |workers, victim, limits| Plan { workers, victim, limits };
        match self {
            Test::Parallel => plan(&[Infer, Infer, Infer, Infer], Victim::Nobody, &[]),
            Test::Prepare => plan(&[Prepare, Prepare], Victim::Nobody, &[]),
            Test::Memory => plan(&[Hoard, Hoard, Infer], Victim::Nobody, LITTLE),
            Test::Models => plan(&[Many, Many], Victim::Nobody, &[]),
            Test::ClientKilled => plan(&[Infer, Prepare, Infer], Victim::Workers, &[]),
            Test::DriverKilled => plan(&[Reconnect, Reconnect], Victim::Service, &[]),
            Test::PrepareBeside => plan(&[Prepare, Infer, Prepare, Infer], Victim::Nobody, &[]),
            Test::Mixed => plan(&[Mixed, Mixed, Infer], Victim::Nobody, &[]),
            Test::Descriptors => plan(&[Hoard, Hoard, Infer], Victim::Nobody, FEW_DESCRIPTORS),
        }
    }
}

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
