//! `--preference`: what a prepared model should be good at.

use burst_hal::ExecutionPreference;

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
