//! The result of a run: counts per suite, mode and operation, and every failure.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::outcome::{Miss, Outcome};
use crate::suite::Suite;
use crate::vectors::Test;

/// The name in reports where no route is used because nothing is executed: broken models that the
/// device must refuse.
pub(crate) const MODEL: &str = "model";

/// What came of a run.
///
/// `passed`, `failed` and `skipped` count tests: one fails when anything in any of its suites and
/// modes was wrong, and is skipped when the device said that it does not support its model.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Tests that were run.
    pub tests: u64,
    /// Executions, over all suites and modes.
    pub executions: u64,
    /// Tests with nothing wrong.
    pub passed: u64,
    /// Tests with something wrong.
    pub failed: u64,
    /// Tests that the device does not support.
    pub skipped: u64,
    /// Executions per suite and mode. Under VALIDATION, `model` counts the broken models that were
    /// refused, which are no executions.
    pub per_suite: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// Tests per operation that they are about; a test can be about several.
    pub per_op: BTreeMap<String, Tally>,
    /// Every failure.
    pub failures: Vec<Finding>,
}

/// Tests of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// With nothing wrong.
    pub passed: u64,
    /// With something wrong.
    pub failed: u64,
    /// Not supported.
    pub skipped: u64,
}

/// One failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the test.
    pub test: String,
    /// In which suite.
    pub suite: &'static str,
    /// `sync`, `burst`, or `model` where a broken model was not refused.
    pub mode: &'static str,
    /// Operand, index, got, expected, tolerance; or whatever else there is to say.
    pub what: String,
}

/// What came of one test.
#[derive(Debug)]
pub(crate) struct TestResult {
    name: String,
    ops: Vec<String>,
    counts: Vec<(Suite, &'static str, u64)>,
    failures: Vec<Finding>,
    is_supported: bool,
}

impl TestResult {
    pub(crate) fn new(test: &Test) -> Self {
        TestResult {
            name: test.name.clone(),
            ops: test.ops().into_iter().map(str::to_owned).collect(),
            counts: Vec::new(),
            failures: Vec::new(),
            is_supported: true,
        }
    }

    pub(crate) fn add(&mut self, suite: Suite, mode: &'static str, outcome: Outcome) {
        match outcome {
            Ok(count) => self.counts.push((suite, mode, count)),
            Err(Miss::Unsupported(_)) => self.is_supported = false,
            Err(Miss::Wrong(what)) => {
                let test = self.name.clone();
                self.failures.push(Finding { test, suite: suite.name(), mode, what });
            }
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }

    fn tally(&self) -> Tally {
        match (self.has_failed(), self.is_supported) {
            (true, _) => Tally { failed: 1, ..Tally::default() },
            (false, false) => Tally { skipped: 1, ..Tally::default() },
            (false, true) => Tally { passed: 1, ..Tally::default() },
        }
    }
}

impl Tally {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.passed + self.failed + self.skipped
    }

    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Report {
    pub(crate) fn of(results: impl IntoIterator<Item = TestResult>) -> Self {
        let mut report = Report::default();
        let mut total = Tally::default();
        for result in results {
            let tally = result.tally();
            total.add(tally);
            report.tests += 1;
            for op in &result.ops {
                report.per_op.entry(op.clone()).or_default().add(tally);
            }
            for (suite, mode, count) in &result.counts {
                let modes = report.per_suite.entry(suite.name()).or_default();
                *modes.entry(mode).or_default() += count;
                report.executions += if *mode == MODEL { 0 } else { *count };
            }
            report.failures.extend(result.failures);
        }
        (report.passed, report.failed, report.skipped) =
            (total.passed, total.failed, total.skipped);
        report
    }

    /// Whether nothing was wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.failed == 0
    }
}
