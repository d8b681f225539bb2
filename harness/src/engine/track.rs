//! One subject with its rounds, and one floor with its trials.

use super::subject::{Length, Subject};

/// How many rounds of a subject are wanted, and which of them count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Rounds that must count.
    pub rounds: usize,
    /// Rounds at the most, those that do not count and those that failed among them: then the subject
    /// makes do with what it has.
    pub tries: usize,
    /// After so many tries it can only be the machine that is not quiet.
    pub tries_before_quiet: usize,
    /// Trials that may fail before the whole run does: a peer may get stuck once in an hour, and that
    /// should not cost the rest. A failed trial is repeated like a round that does not count.
    pub failures: usize,
    /// Where rounds in which an end shared its core do not count: as long as there are so many others.
    /// `None` where they count like others.
    pub own_cores: Option<usize>,
}

impl Wanted {
    /// So many rounds, all of which count, and no trial may fail.
    #[must_use]
    pub const fn all_of(rounds: usize) -> Wanted {
        Wanted { rounds, tries: rounds, tries_before_quiet: rounds, failures: 0, own_cores: None }
    }
}

/// One round of one subject.
#[derive(Debug)]
pub struct Round<T> {
    /// Which round of the run, counted from 1.
    pub number: u32,
    /// Which trials of the subject's floor came right before and right after; `None` without a floor.
    pub floors: Option<[usize; 2]>,
    /// What the subject's own trial found.
    pub trial: T,
}

/// One subject with its rounds so far.
pub struct Track<S: Subject> {
    /// What is measured.
    pub subject: S,
    /// How long its trials are.
    pub length: Length,
    /// Index of the floor that it is compared with.
    pub floor: Option<usize>,
    /// How many rounds it needs.
    pub wanted: Wanted,
    /// Its rounds, those that do not count among them.
    pub rounds: Vec<Round<S::Trial>>,
    /// What went wrong so far.
    pub failures: Vec<String>,
}

impl<S: Subject> Track<S> {
    /// A subject that was not measured yet.
    #[must_use]
    pub fn new(subject: S, length: Length, floor: Option<usize>, wanted: Wanted) -> Track<S> {
        Track { subject, length, floor, wanted, rounds: Vec::new(), failures: Vec::new() }
    }

    /// Notes a failure, for the report.
    pub fn note_failure(&mut self, what: &dyn std::fmt::Display) {
        self.failures.push(format!("{}: {what}", self.subject.context()));
    }

    pub(super) fn tries(&self) -> usize {
        self.rounds.len() + self.failures.len()
    }

    /// Whether it was tried so often that it can only be the machine that is not quiet.
    pub(super) fn waits_for_quiet(&self) -> bool {
        self.tries() >= self.wanted.tries_before_quiet
    }
}

/// A subject that others are compared with. It has trials whenever they have.
pub struct Floor<S: Subject> {
    /// What is measured.
    pub subject: S,
    /// How long its trials are.
    pub length: Length,
    /// Its trials.
    pub trials: Vec<S::Trial>,
}

impl<S: Subject> Floor<S> {
    /// A floor that was not measured yet.
    #[must_use]
    pub fn new(subject: S, length: Length) -> Floor<S> {
        Floor { subject, length, trials: Vec::new() }
    }
}
