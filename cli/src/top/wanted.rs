//! What somebody wants to see, and in which order.

use serde::Serialize;

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SortBy {
    /// Who computes most.
    Busy,
    /// Who asks most often.
    Rate,
    /// Whose slowest requests take longest.
    P99,
    /// Whose queue is longest.
    Queue,
    /// By the number of the client.
    Client,
}

/// What is wrong with a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Trouble {
    /// Anything of the below.
    #[serde(skip)]
    Any,
    /// It waits on a queue that is full: its client takes no results, or it is not done with requests that
    /// fill their queue.
    FullQueue,
    /// A core is polled on for it.
    Spins,
    /// Its client computes more than its share, while others wait.
    OverShare,
}

impl Trouble {
    pub(super) fn word(self) -> &'static str {
        match self {
            Trouble::Any => "any",
            Trouble::FullQueue => "full-queue",
            Trouble::Spins => "spins",
            Trouble::OverShare => "over-share",
        }
    }
}

/// What somebody wants to see.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) user: Option<u32>,
    pub(super) client: Option<u64>,
    pub(super) device: Option<String>,
    pub(super) trouble: Option<Trouble>,
    pub(super) sort: SortBy,
}
