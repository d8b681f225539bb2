//! A peer in one case, as a subject of the engine; and which floor it is compared with.

use crate::engine::{Length, Subject, Trial, Wanted};
use crate::error::HarnessError;
use crate::machine::KeepAwake;
use crate::transport::case::{Case, FRAME_BYTES, Placement};
use crate::transport::names;
use crate::transport::peers::Peer;
use crate::transport::process::Runner;
use crate::transport::session::{Measured, Served};
use crate::wait::WaitKind;

/// Rounds of a subject, those that do not count among them, as a multiple of the rounds wanted: so
/// often they are repeated before a subject makes do with what it has.
const TRIES_PER_ROUND: usize = 3;
/// The same where a round is quick: those on shared cores, of which a busy host has many, come on top.
const TRIES_PER_QUICK_ROUND: usize = 40;
/// Where both ends poll, each on a CPU of its own, a round takes a thirtieth of a second, and rounds
/// differ more: a median needs more of them, and they cost little.
const QUICK_ROUNDS: usize = 3;
/// Trials of one subject that may fail before the whole run does.
const FAILURES_MAX: usize = 2;

/// Whether a whole frame travels; one that lies in the pool already costs a small message.
pub(crate) fn carries_a_frame(peer: &str, case: &Case) -> bool {
    FRAME_BYTES.contains(&case.request_bytes) && peer != names::FRAME_IN_POOL
}

/// Which floor a subject is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FloorKey {
    pub(crate) name: &'static str,
    pub(crate) case: Case,
}

impl FloorKey {
    /// The floor for a case: it waits in the same way, on the same CPUs, at the same pace. A frame
    /// takes as long as its memory; a word's trip says nothing about that, a plain copy does.
    pub(crate) fn of(peer: &str, case: &Case) -> FloorKey {
        let polls = case.wait == WaitKind::Spin && !case.spins_in_vain();
        let (name, wait, request_bytes) = match (carries_a_frame(peer, case), polls) {
            (true, _) => (names::FRAME_FLOOR, WaitKind::Spin, case.request_bytes),
            (false, true) => (names::TWO_LINES, WaitKind::Spin, 8),
            (false, false) => (names::FUTEX_FLOOR, WaitKind::Sleep, 4),
        };
        let case =
            Case { wait, in_flight: 1, request_bytes, kept_awake: false, cold: false, ..*case };
        FloorKey { name, case }
    }
}

/// A peer in one case, between two processes that each trial starts.
#[derive(Clone, Copy)]
pub struct PeerInCase<'p> {
    runner: &'p Runner,
    /// How requests and answers travel.
    pub peer: &'p dyn Peer,
    /// Sizes, waits, CPUs.
    pub case: Case,
}

impl<'p> PeerInCase<'p> {
    pub(crate) fn new(runner: &'p Runner, peer: &'p dyn Peer, case: Case) -> PeerInCase<'p> {
        PeerInCase { runner, peer, case }
    }

    /// Both ends poll, each on a CPU of its own: a round is quick, and its time is that of a few cache
    /// lines and a few hundred instructions.
    fn is_quick(&self) -> bool {
        let Case { wait, placement, .. } = self.case;
        wait == WaitKind::Spin
            && placement == Placement::PinnedApart
            && !carries_a_frame(self.peer.name(), &self.case)
    }

    /// How many rounds of it are wanted, where `rounds` were asked for; `hurried` where they only have
    /// to show that everything works.
    pub(crate) fn wanted(&self, rounds: u32, hurried: bool) -> Wanted {
        let asked = rounds as usize;
        let is_patient = self.is_quick() && !hurried;
        let rounds = asked.saturating_mul(if is_patient { QUICK_ROUNDS } else { 1 });
        let tries = if is_patient { TRIES_PER_QUICK_ROUND } else { TRIES_PER_ROUND };
        Wanted {
            rounds,
            tries: rounds.saturating_mul(tries),
            tries_before_quiet: rounds.saturating_mul(TRIES_PER_ROUND),
            failures: FAILURES_MAX,
            own_cores: self.is_quick().then_some(asked),
        }
    }

    /// How many round trips a trial has: enough for a p99.9 where they are quick, a fraction of a
    /// second where they are slow. Not more: the other hardware thread of a core is seldom idle for
    /// longer than some milliseconds.
    pub(crate) fn length(&self, hurried: bool) -> Length {
        /// Longest trial in which the case sets the pace.
        const PACED_NS: u64 = 1_000_000_000;
        /// Round trips of a cold run: what an application that comes back to its queue has before it is warm.
        const COLD_TRIPS: u32 = 3_200;
        let case = &self.case;
        if case.cold {
            return Length { warm_up: 0, counted: COLD_TRIPS };
        }
        let usual = match case.wait {
            WaitKind::Spin if !case.spins_in_vain() => 20_000,
            WaitKind::Adaptive if case.placement == Placement::PinnedApart => 50_000,
            _ => 5_000,
        };
        // A frame of some hundred kilobytes takes as long as a hundred small messages.
        let carried = if carries_a_frame(self.peer.name(), case) { case.request_bytes } else { 0 };
        let usual = usual / (1 + u32::try_from(carried / 4096).unwrap_or(u32::MAX - 1));
        let pace = case.service_ns.max(case.period_ns).max(1);
        let paced = u32::try_from(PACED_NS / pace).unwrap_or(u32::MAX).max(3);
        let counted = if hurried { usual / 10 } else { usual }.min(paced);
        Length { warm_up: counted / 10 + 10, counted }
    }
}

/// What the two ends of a peer measured.
#[derive(Debug)]
pub struct RoundTrips {
    pub(crate) measured: Measured,
    pub(crate) served: Served,
}

impl Trial for RoundTrips {
    fn p50_ns(&self) -> Option<f64> {
        Some(self.measured.sample.p50_ns)
    }

    fn compute_ns(&self) -> Option<[f64; 2]> {
        let (client, server) = (self.measured.compute_ns, self.served.compute_ns);
        Some([client.min(server), client.max(server)])
    }
}

impl Subject for PeerInCase<'_> {
    type Trial = RoundTrips;

    fn context(&self) -> String {
        format!("{}, {}", self.case.wait.name(), self.case.placement.name())
    }

    fn trial(&mut self, length: Length) -> Result<RoundTrips, HarnessError> {
        let awake = self.case.kept_awake.then(KeepAwake::take).transpose()?;
        let (measured, served) = self.runner.measure(self.peer.name(), &self.case, length)?;
        drop(awake);
        Ok(RoundTrips { measured, served })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::peers::own_peers;

    fn wanted(wait: WaitKind, rounds: u32, hurried: bool) -> Wanted {
        let runner = Runner::new("/bin/true").unwrap();
        let peers = own_peers();
        let peer = peers.iter().find(|peer| peer.name() == names::OURS).unwrap();
        let case = Case::ping_pong(wait, Placement::PinnedApart, 64);
        PeerInCase::new(&runner, *peer, case).wanted(rounds, hurried)
    }

    #[test]
    fn quick_subjects_want_three_times_the_rounds_and_cores_of_their_own() {
        let spin = wanted(WaitKind::Spin, 5, false);
        assert_eq!((spin.rounds, spin.tries, spin.tries_before_quiet), (15, 600, 45));
        assert_eq!((spin.own_cores, spin.failures), (Some(5), 2));
        let hurried = wanted(WaitKind::Spin, 2, true);
        assert_eq!((hurried.rounds, hurried.tries, hurried.own_cores), (2, 6, Some(2)));
    }

    #[test]
    fn a_cold_run_has_nothing_before_it_and_is_compared_with_the_warm_floor() {
        let runner = Runner::new("/bin/true").unwrap();
        let peers = own_peers();
        let peer = peers.iter().find(|peer| peer.name() == names::OURS).unwrap();
        let warm = Case::ping_pong(WaitKind::Spin, Placement::PinnedApart, 64);
        let cold = Case { cold: true, ..warm };
        for hurried in [false, true] {
            let length = PeerInCase::new(&runner, *peer, cold).length(hurried);
            assert_eq!((length.warm_up, length.counted), (0, 3_200));
        }
        assert!(FloorKey::of(names::OURS, &cold) == FloorKey::of(names::OURS, &warm));
        assert_eq!(FloorKey::of(names::OURS, &cold).name, names::TWO_LINES);
    }

    #[test]
    fn a_subject_that_sleeps_has_as_many_as_were_asked_for_whatever_its_core_does() {
        let sleep = wanted(WaitKind::Sleep, 5, false);
        assert_eq!((sleep.rounds, sleep.tries, sleep.tries_before_quiet), (5, 15, 15));
        assert_eq!(sleep.own_cores, None);
    }
}
