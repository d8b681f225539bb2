//! What came of a run over random models.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::form::{Forms, Variants};
use super::one::Passed;
use crate::random::Class;

/// Times that each form has to occur in a run of at least [`RandomReport::FULL_RUN`] models per class.
pub const MIN_OCCURRENCES: u64 = 20;

/// What came of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RandomReport {
    /// The first seed.
    pub seed: u64,
    /// The lanes, the first of which was judged and the others compared with it.
    pub lanes: Vec<String>,
    /// Models that were judged.
    pub models: u64,
    /// Models with nothing wrong.
    pub passed: u64,
    /// Models with something wrong.
    pub failed: u64,
    /// Models with an operation that the device does not run.
    pub unsupported: u64,
    /// Counts by class.
    pub classes: BTreeMap<Class, ClassCounts>,
    /// Executions, one for each model and lane.
    pub executions: u64,
    /// Models on lanes that could not be asked: fences want to know the sizes of outputs.
    pub inapplicable: u64,
    /// Models on lanes that may round otherwise, and did.
    pub rounded_otherwise: u64,
    /// Models whose outputs were other bits when all of their values were outputs, by the operation of the
    /// first one.
    pub rewoven: BTreeMap<&'static str, u64>,
    /// Operations that were judged with inputs other than the judge's.
    pub retaken: u64,
    /// By form of operation.
    pub forms: Forms,
    /// What occurred of what forms leave open: ranks, operands that were left out or had no elements.
    pub variants: Variants,
    /// Everything that was wrong.
    pub findings: Vec<RandomFinding>,
}

/// Models of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ClassCounts {
    /// With nothing wrong.
    pub passed: u64,
    /// With something wrong.
    pub failed: u64,
    /// With an operation that the device does not run.
    pub unsupported: u64,
    /// Operations of their main graphs.
    pub operations: u64,
}

/// A model with which something was wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RandomFinding {
    /// Its class.
    pub class: Class,
    /// Its seed.
    pub seed: u64,
    /// The operation that was asked for.
    pub only: Option<&'static str>,
    /// The lane.
    pub lane: String,
    /// What was wrong with the smallest model that failed.
    pub what: String,
    /// The operations of that one.
    pub operations: Vec<String>,
    /// The file that it was written to.
    pub file: Option<PathBuf>,
}

impl RandomReport {
    /// Models of each class from which on every form has to have occurred [`MIN_OCCURRENCES`] times.
    pub const FULL_RUN: u64 = 3000;

    pub(super) fn new(seed: u64, lanes: Vec<String>) -> Self {
        RandomReport {
            seed,
            lanes,
            models: 0,
            passed: 0,
            failed: 0,
            unsupported: 0,
            classes: BTreeMap::new(),
            executions: 0,
            inapplicable: 0,
            rounded_otherwise: 0,
            rewoven: BTreeMap::new(),
            retaken: 0,
            forms: Forms::all(),
            variants: Variants::new(),
            findings: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        class: Class,
        operations: usize,
        came: Result<Passed, RandomFinding>,
    ) {
        self.models += 1;
        let counts = self.classes.entry(class).or_default();
        counts.operations += operations as u64;
        let passed = match came {
            Ok(passed) => passed,
            Err(finding) => {
                counts.failed += 1;
                self.failed += 1;
                self.findings.push(finding);
                return;
            }
        };
        self.executions += passed.lanes;
        self.inapplicable += passed.inapplicable;
        if passed.unsupported.is_some() {
            counts.unsupported += 1;
            self.unsupported += 1;
            return;
        }
        counts.passed += 1;
        self.passed += 1;
        self.rounded_otherwise += passed.rounded_otherwise;
        if let Some(op) = passed.tally.rewoven {
            *self.rewoven.entry(op.name()).or_default() += 1;
        }
        self.retaken += passed.tally.retaken;
        self.forms.merge(&passed.tally.forms);
        for (variant, count) in passed.tally.variants {
            *self.variants.entry(variant).or_default() += count;
        }
    }

    /// Forms of which more elements were skipped than may be.
    pub fn skipping(&self) -> impl Iterator<Item = &str> {
        self.forms.iter().filter(|(_, counts)| counts.skips_too_many()).map(|(name, _)| name)
    }

    /// Forms that did not occur often enough.
    pub fn rare(&self) -> impl Iterator<Item = (&str, u64)> {
        let forms = self.forms.iter().map(|(name, counts)| (name, counts.occurrences));
        forms.filter(|(_, occurrences)| *occurrences < MIN_OCCURRENCES)
    }

    /// Whether every class had so many models that each form has to have occurred.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let models = |class| {
            let counts = self.classes.get(class).copied().unwrap_or_default();
            counts.passed + counts.failed + counts.unsupported
        };
        Class::ALL.iter().all(|class| models(class) >= Self::FULL_RUN)
    }

    /// Whether nothing was wrong. In a [full run](Self::is_full) also enough was compared of each form; in
    /// fewer models one that skips everything may be half of what there is.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let is_enough = !self.is_full() || self.skipping().next().is_none();
        self.models > 0 && self.failed == 0 && is_enough
    }
}
