//! Either end killed at each step of a conversation that has every kind of call in it. The one that
//! is left gets a typed error within its deadline and keeps nothing.
//!
//! The conversation runs through a relay that knows the messages. At its step a message has been
//! sent, and the victim is killed before the other end can see it: a receiver dies without having
//! read it, a sender has just sent it.
//!
//! One test, so that no other begins or ends a thread of this process while threads are counted; it starts
//! itself again, so that the allocator of that process keeps nothing of its own.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use burst_client::ClientError;
use burst_server::ServiceOptions;
use burst_tests::repository;
use rustix::process::Pid;

use crate::burst_support::tour::{From, Kill, Kind, Relay, Step, tour};
use crate::burst_support::{Private, wait_until};
use crate::peer;

burst_testing::tests![survivor_gets_typed_error_and_leaks_nothing()];

/// Steps that the conversation must at least have.
const STEPS_MIN: usize = 84;
/// By how much this process may grow over all rounds of one victim: less than a kilobyte in each.
const GROWTH_MAX_KIB: i64 = 64;
/// Set in the process that goes through the matrix.
const IN_CHILD: &str = "BURST_KILL_MATRIX";
/// What glibc is told there. By default it gives threads heaps of their own, which fragment each for itself, and
/// keeps the stacks of threads that have ended, with whatever pages those had touched: over the 174 rounds of both
/// victims that was 300 KiB, and up to 400 KiB were seen. With one heap for all threads it was 44 KiB, and without
/// kept stacks either nothing: 0 KiB. So what still grows here is something that somebody keeps.
const ALLOCATOR: [(&str, &str); 2] =
    [("MALLOC_ARENA_MAX", "1"), ("GLIBC_TUNABLES", "glibc.pthread.stack_cache_size=0")];

/// What a process must not keep of a dead peer.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) struct Held {
    descriptors: usize,
    mappings: usize,
    threads: usize,
}

pub(crate) fn held() -> Held {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    Held {
        descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        mappings: maps.lines().filter(|line| line.contains("/memfd:")).count(),
        threads: std::fs::read_dir("/proc/self/task").unwrap().count(),
    }
}

/// Waits for threads that are on their way out: one that was joined is still listed for a moment.
pub(crate) fn back_at(level: Held, after: &dyn Display) {
    wait_until(&format!("{level:?} after {after}, last seen {:?},", held()), || held() == level);
}

fn anonymous_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A second process with one end of a socket as its standard input.
pub(crate) struct Victim {
    child: Child,
    pub(crate) pid: Pid,
    output: BufReader<ChildStdout>,
}

impl Victim {
    pub(crate) fn start(role: &str, first_word: Option<&str>) -> (Victim, OwnedFd) {
        let (ours, theirs) = burst_wire::socket::pair().unwrap();
        let (child, output) = peer::spawn(&[role], Stdio::from(theirs));
        let pid = Pid::from_child(&child);
        let mut victim = Victim { child, pid, output };
        if let Some(word) = first_word {
            victim.expect(word);
        }
        (victim, ours)
    }

    /// Waits until it says this.
    pub(crate) fn expect(&mut self, word: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), word);
    }

    /// Kills it and waits until it is dead.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is said when nobody dies.
fn rehearse() -> Vec<Step> {
    let (service, to_service) = Private::start(ServiceOptions::default());
    let (ours, to_client) = burst_wire::socket::pair().unwrap();
    let relay = Relay::start_withholding(to_client, to_service, None);
    tour(ours).unwrap();
    let steps = relay.join();
    service.join();
    steps
}

fn survivor_gets_typed_error_and_leaks_nothing() {
    if std::env::var_os(IN_CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "kill_matrix::survivor_gets_typed_error_and_leaks_nothing"]);
        let ended = child.envs(ALLOCATOR).env(IN_CHILD, "1").status().unwrap();
        return assert!(ended.success(), "it says above what is wrong");
    }
    let level = held();
    let steps = rehearse();
    assert_eq!(by_end(steps.clone()), by_end(rehearse()), "the same each time");
    back_at(level, &"two rehearsals");
    every_step_is_listed_in_the_specification(&steps);
    a_service_killed_is_a_typed_error_and_leaves_nothing_in_the_client(level, &steps);
    a_client_killed_leaves_nothing_in_the_service(level, &steps);
}

/// What each end said, in order: between the two it may vary, where one is told something by a fence.
fn by_end(mut steps: Vec<Step>) -> Vec<Step> {
    steps.sort_by_key(|step| (step.from == From::Service, step.number));
    steps
}

fn every_step_is_listed_in_the_specification(steps: &[Step]) {
    assert!(steps.len() >= STEPS_MIN, "{}", steps.len());
    let listed = std::fs::read_to_string(repository().join("docs/SPEC.md")).unwrap();
    let missing: Vec<String> = steps.iter().map(|step| format!("`{step}`")).collect();
    let missing: Vec<&String> = missing.iter().filter(|step| !listed.contains(*step)).collect();
    assert!(missing.is_empty(), "docs/SPEC.md does not list {missing:#?}");
    let said: BTreeSet<Kind> = steps.iter().filter_map(|step| step.kind).collect();
    let silent: Vec<Kind> = Kind::all().difference(&said).copied().collect();
    assert!(silent.is_empty(), "of the messages that there are, nobody sends {silent:?}");
}

/// Holds all rounds of one victim to leaving no memory behind. The heap may get another shape once, and keep pages for it
/// that nobody has: 64 KiB were seen in one run of many. What somebody keeps of each victim shows every time.
fn leaves_no_memory(rounds: impl Fn()) {
    const ATTEMPTS: usize = 3;
    let growths: Vec<i64> = (0..ATTEMPTS)
        .map(|_| {
            let memory = anonymous_kib();
            rounds();
            let growth = anonymous_kib() - memory;
            println!("anonymous memory grew by {growth} KiB over all rounds");
            growth
        })
        .take_while(|growth| *growth >= GROWTH_MAX_KIB)
        .collect();
    assert!(growths.len() < ATTEMPTS, "{growths:?} KiB");
}

fn a_service_killed_is_a_typed_error_and_leaves_nothing_in_the_client(level: Held, steps: &[Step]) {
    let last = steps.last().unwrap();
    leaves_no_memory(|| {
        for step in steps {
            let (victim, to_service) = Victim::start("serve-private", Some("ready"));
            let (ours, to_client) = burst_wire::socket::pair().unwrap();
            let kill = Kill { at: step.clone(), victim: From::Service, pid: victim.pid };
            let relay = Relay::start_withholding(to_client, to_service, Some(kill));
            let start = Instant::now();
            let ended = tour(ours);
            println!("service killed at {step}: {ended:?} after {:?}", start.elapsed());
            match ended {
                // The last reply was on its way already.
                Ok(()) => assert_eq!(step, last),
                Err(ClientError::PeerDied { .. }) => {}
                Err(ClientError::NotThisProtocol) => assert_eq!(step.name, "greeting"),
                Err(other) => panic!("{step}: {other}"),
            }
            assert!(relay.join().contains(step), "{step} never came");
            drop(victim);
            back_at(level, step);
        }
    });
}

fn a_client_killed_leaves_nothing_in_the_service(level: Held, steps: &[Step]) {
    leaves_no_memory(|| {
        for step in steps {
            let (service, to_service) = Private::start(ServiceOptions::default());
            let (victim, to_client) = Victim::start("tour", None);
            let kill = Kill { at: step.clone(), victim: From::Client, pid: victim.pid };
            let relay = Relay::start_withholding(to_client, to_service, Some(kill));
            assert!(relay.join().contains(step), "{step} never came");
            let controls = Arc::clone(&service.controls);
            service.join();
            assert_eq!(controls.buffers.count(), 0, "buffers of the client killed at {step}");
            drop(victim);
            back_at(level, step);
        }
    });
}
