//! `--preference` and `--priority`: what a prepared model should be good at, and whom it gives way to.

use burst_hal::{ExecutionPreference, Priority};

/// What the driver should do well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum PreferenceArg {
    /// Little energy: one thread computes, nobody polls.
    LowPower,
    /// Each answer soon: all threads.
    #[default]
    Fast,
    /// Much over time: threads are shared, working memory is kept.
    Sustained,
}

impl From<PreferenceArg> for ExecutionPreference {
    fn from(preference: PreferenceArg) -> Self {
        match preference {
            PreferenceArg::LowPower => ExecutionPreference::LowPower,
            PreferenceArg::Fast => ExecutionPreference::FastSingleAnswer,
            PreferenceArg::Sustained => ExecutionPreference::SustainedSpeed,
        }
    }
}

/// How urgent a model's executions are among those of the same user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum PriorityArg {
    /// LOW of the HAL: gives way to all others.
    Low,
    /// MEDIUM of the HAL.
    #[default]
    Medium,
    /// HIGH of the HAL: the others give way.
    High,
}

impl From<PriorityArg> for Priority {
    fn from(priority: PriorityArg) -> Self {
        match priority {
            PriorityArg::Low => Priority::Low,
            PriorityArg::Medium => Priority::Medium,
            PriorityArg::High => Priority::High,
        }
    }
}
