//! How both ends of a queue wait, as command lines and JSON write it.

use serde::{Deserialize, Serialize};

/// How both ends wait for each other: [`fmq::Wait`] in words. Each peer of the transport that is not
/// ours has a policy of its own where this one says `adaptive`, or none.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// Poll without a pause: fastest, one CPU each.
    Spin,
    /// Poll for about as long as a wake-up takes, then sleep.
    #[default]
    Adaptive,
    /// Sleep at once.
    Sleep,
}

impl WaitKind {
    /// All of them.
    pub const ALL: [WaitKind; 3] = [WaitKind::Spin, WaitKind::Adaptive, WaitKind::Sleep];

    /// The name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WaitKind::Spin => "spin",
            WaitKind::Adaptive => "adaptive",
            WaitKind::Sleep => "sleep",
        }
    }
}

impl From<WaitKind> for fmq::Wait {
    fn from(wait: WaitKind) -> fmq::Wait {
        match wait {
            WaitKind::Spin => fmq::Wait::Spin,
            WaitKind::Adaptive => fmq::Wait::default(),
            WaitKind::Sleep => fmq::Wait::Sleep,
        }
    }
}
