//! Environment variables that change what the framework does, for tests and for finding faults.
//!
//! | variable | default | meaning |
//! |---|---|---|
//! | `BURST_NN_CPUONLY` | 0 | 1: no device but `nnapi-reference` |
//! | `BURST_NN_PARTITION` | 1 | 0: whole models on `nnapi-reference`; 1: parts on devices, and what fails on the reference; 2: likewise, and what fails has failed |
//! | `BURST_NN_STRICT_SLICING` | 0 | 1: a compilation fails where the part of a model for an older device is not legal by itself |
//! | `BURST_NN_SYNCEXEC_HAL` | 1 | 0: devices are called asynchronously and waited for |
//! | `BURST_NN_SYNCEXEC_CPU` | 1 | 0: likewise the reference device |
//! | `BURST_NN_SYNCEXEC_RUNTIME` | 0 | 1: what starts an execution returns when it has ended |
//! | `BURST_NN_SERVICE_TIMEOUT` | 60 | seconds that one call to a service may take where the application sets no deadline, at most 86400; 0: any time |
//!
//! They are read once. A value without meaning is said in the log and counts as the default.

use std::sync::OnceLock;
use std::time::Duration;

use crate::patience::Patience;

/// The longest limit that can be set for a call to a service, in seconds: a day.
const SERVICE_TIMEOUT_MAX: u32 = 86_400;

/// How models are divided among devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Partitioning {
    /// Not at all: whole models on the reference device.
    No,
    /// The reference device runs what others fail at.
    WithFallback,
    /// What fails has failed.
    WithoutFallback,
}

/// What the variables say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switches {
    pub(crate) cpu_only: bool,
    pub(crate) partitioning: Partitioning,
    pub(crate) strict_slicing: bool,
    pub(crate) sync_devices: bool,
    pub(crate) sync_reference: bool,
    pub(crate) sync_runtime: bool,
    pub(crate) patience: Patience,
}

impl Default for Switches {
    fn default() -> Self {
        Switches {
            cpu_only: false,
            partitioning: Partitioning::WithFallback,
            strict_slicing: false,
            sync_devices: true,
            sync_reference: true,
            sync_runtime: false,
            patience: Patience::default(),
        }
    }
}

impl Switches {
    /// What the environment of this process says.
    pub(crate) fn of_environment() -> Switches {
        static SWITCHES: OnceLock<Switches> = OnceLock::new();
        *SWITCHES.get_or_init(|| Switches::of(|name| std::env::var(name).ok()))
    }

    /// What these variables say.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Switches {
        let flag = |name: &str, default: bool| {
            number(name, variable(name), 1).map_or(default, |value| value == 1)
        };
        let default = Switches::default();
        let partition = "BURST_NN_PARTITION";
        let timeout = "BURST_NN_SERVICE_TIMEOUT";
        let timeout = number(timeout, variable(timeout), SERVICE_TIMEOUT_MAX);
        Switches {
            cpu_only: flag("BURST_NN_CPUONLY", default.cpu_only),
            partitioning: match number(partition, variable(partition), 2) {
                Some(0) => Partitioning::No,
                Some(2) => Partitioning::WithoutFallback,
                _ => Partitioning::WithFallback,
            },
            strict_slicing: flag("BURST_NN_STRICT_SLICING", default.strict_slicing),
            sync_devices: flag("BURST_NN_SYNCEXEC_HAL", default.sync_devices),
            sync_reference: flag("BURST_NN_SYNCEXEC_CPU", default.sync_reference),
            sync_runtime: flag("BURST_NN_SYNCEXEC_RUNTIME", default.sync_runtime),
            patience: timeout.map_or(default.patience, |seconds| {
                Patience::of(Duration::from_secs(seconds.into()))
            }),
        }
    }
}

/// The number that a variable holds; `None` where it is not set, or holds something else.
fn number(name: &str, value: Option<String>, largest: u32) -> Option<u32> {
    let value = value?;
    let number = value.trim().parse().ok().filter(|number| *number <= largest);
    if number.is_none() {
        tracing::warn!(name, value, "not a number from 0 to {largest}; it is ignored");
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_switches_one_thing_and_nonsense_nothing() {
        let with = |name: &'static str, value: &'static str| {
            Switches::of(move |asked| (asked == name).then(|| value.to_owned()))
        };
        let default = Switches::default();
        assert_eq!(Switches::of(|_| None), default);
        for (name, value, want) in [
            ("BURST_NN_CPUONLY", "1", Switches { cpu_only: true, ..default }),
            ("BURST_NN_CPUONLY", "yes", default),
            ("BURST_NN_PARTITION", "0", Switches { partitioning: Partitioning::No, ..default }),
            ("BURST_NN_PARTITION", "1", default),
            (
                "BURST_NN_PARTITION",
                " 2 ",
                Switches { partitioning: Partitioning::WithoutFallback, ..default },
            ),
            ("BURST_NN_PARTITION", "3", default),
            ("BURST_NN_STRICT_SLICING", "1", Switches { strict_slicing: true, ..default }),
            ("BURST_NN_SYNCEXEC_HAL", "0", Switches { sync_devices: false, ..default }),
            ("BURST_NN_SYNCEXEC_CPU", "0", Switches { sync_reference: false, ..default }),
            ("BURST_NN_SYNCEXEC_RUNTIME", "1", Switches { sync_runtime: true, ..default }),
            ("BURST_NN_SYNCEXEC_RUNTIME", "-1", default),
            (
                "BURST_NN_SERVICE_TIMEOUT",
                "7",
                Switches { patience: Patience::of(Duration::from_secs(7)), ..default },
            ),
            (
                "BURST_NN_SERVICE_TIMEOUT",
                "0",
                Switches { patience: Patience::of(Duration::ZERO), ..default },
            ),
            ("BURST_NN_SERVICE_TIMEOUT", "86401", default),
            ("BURST_NN_SERVICE_TIMEOUT", "soon", default),
        ] {
            assert_eq!(with(name, value), want, "{name}={value}");
        }
    }
}
