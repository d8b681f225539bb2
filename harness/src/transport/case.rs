//! What is measured: how large, how both ends wait, on which CPUs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::wait::WaitKind;

/// Bytes of every answer.
pub const ANSWER_BYTES: usize = 64;
/// Sizes of requests that are measured.
pub const REQUEST_SIZES: [usize; 3] = [64, 256, 1024];
/// Largest request of the small-message cases.
pub const REQUEST_MAX: usize = 1024;
/// Bytes of the frames that are measured: 224 x 224 pixels, and 448 x 448, of three bytes.
pub const FRAME_BYTES: [usize; 2] = [150_528, 602_112];
/// How long the server works on each request where one check is about that.
pub const SERVICE_NS: u64 = 200_000;
/// How long a small model takes: what waiting for it costs is asked of a waiter that polls and of one that does not.
pub const MODEL_NS: u64 = 150_000;

/// Where the two processes run.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Each pinned to a CPU of its own.
    PinnedApart,
    /// Both pinned to one CPU.
    SameCore,
    /// Wherever the kernel puts them.
    Unpinned,
}

impl Placement {
    /// All of them.
    pub const ALL: [Placement; 3] =
        [Placement::PinnedApart, Placement::SameCore, Placement::Unpinned];

    /// The name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Placement::PinnedApart => "pinned-apart",
            Placement::SameCore => "same-core",
            Placement::Unpinned => "unpinned",
        }
    }
}

/// One combination that peers are measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Case {
    /// How both ends wait.
    pub wait: WaitKind,
    /// Where they run.
    pub placement: Placement,
    /// Bytes of a request.
    pub request_bytes: usize,
    /// Requests on their way at one time; one is a ping-pong.
    pub in_flight: u32,
    /// How long the server works on each request.
    pub service_ns: u64,
    /// Time between the starts of two requests; zero is full speed.
    pub period_ns: u64,
    /// The system is asked to keep its CPUs from sleeping deeply meanwhile, as a service does while
    /// bursts live.
    pub kept_awake: bool,
    /// Both ends did other work right before, and no round trip comes before those that count.
    pub cold: bool,
}

impl Case {
    /// A ping-pong at full speed with a server that answers at once.
    #[must_use]
    pub const fn ping_pong(wait: WaitKind, placement: Placement, request_bytes: usize) -> Case {
        Case {
            wait,
            placement,
            request_bytes,
            in_flight: 1,
            service_ns: 0,
            period_ns: 0,
            kept_awake: false,
            cold: false,
        }
    }

    /// A peer's name in tables and JSON, with what sets the case apart from a plain ping-pong.
    #[must_use]
    pub fn label(&self, peer: &str) -> String {
        let mut label = peer.to_owned();
        if self.in_flight > 1 {
            label += &format!(", {} in flight", self.in_flight);
        }
        if self.service_ns > 0 {
            label += &format!(", {} us of service", self.service_ns / 1000);
        }
        if let Some(rate) = 1_000_000_000_u64.checked_div(self.period_ns) {
            label += &format!(", {rate} per second");
        }
        if self.kept_awake {
            label += ", CPUs kept awake";
        }
        if self.cold {
            label += ", cold";
        }
        label
    }

    /// Whether polling on one CPU would keep the other end from running.
    #[must_use]
    pub fn spins_in_vain(&self) -> bool {
        self.wait == WaitKind::Spin && self.placement == Placement::SameCore
    }
}

/// Which end of a peer a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Sends requests, takes the times, checks the answers.
    Client,
    /// Reads requests and answers.
    Server,
}

impl Role {
    /// The name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }
}

/// What one of the two processes has to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// Which peer, by name.
    pub peer: String,
    /// Which end of it.
    pub role: Role,
    /// What to measure.
    pub case: Case,
    /// Round trips before the measured ones.
    pub warm_up: u32,
    /// Measured round trips.
    pub trips: u32,
    /// The CPU to stay on; `None` where the kernel may choose.
    pub cpu: Option<usize>,
    /// When to give up, counted from the start of the process.
    pub limit: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_ping_pong_has_the_plain_name() {
        let plain = Case::ping_pong(WaitKind::Spin, Placement::PinnedApart, 64);
        assert_eq!(plain.label("x"), "x");
        assert_eq!(Case { in_flight: 8, ..plain }.label("x"), "x, 8 in flight");
        assert_eq!(Case { service_ns: 200_000, ..plain }.label("x"), "x, 200 us of service");
        let paced = Case { period_ns: 1_000_000, ..plain };
        assert_eq!(paced.label("x"), "x, 1000 per second");
        let awake = Case { kept_awake: true, ..paced };
        assert_eq!(awake.label("x"), "x, 1000 per second, CPUs kept awake");
        assert_eq!(Case { cold: true, ..plain }.label("x"), "x, cold");
    }
}
