//! The result of a run: counts per suite, mode and operation, and every failure.

use std::collections::BTreeMap;

use burst_hal::Route;
use serde::Serialize;

use crate::outcome::{LeftOut, Miss, Outcome};
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
    /// Counts per suite.
    pub per_suite: BTreeMap<&'static str, SuiteCounts>,
    /// What each rule says by which something was left out, by its name.
    pub left_out: BTreeMap<&'static str, &'static str>,
    /// Tests per operation that they are about; a test can be about several.
    pub per_op: BTreeMap<String, Tally>,
    /// Every failure.
    pub failures: Vec<Finding>,
}

/// Counts of one suite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SuiteCounts {
    /// Tests that belong to it and were run.
    pub tests: u64,
    /// By mode; `None` where the suite has no such mode. `model` is the part that executes nothing: under
    /// VALIDATION broken models that were refused, under DEADLINE preparations.
    pub modes: BTreeMap<&'static str, Option<Cell>>,
}

/// Counts of one suite over one mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Tests of which it passed.
    pub passed: u64,
    /// Tests of which it failed.
    pub failed: u64,
    /// Executions of those that passed.
    pub executions: u64,
    /// How often something was left out, by the name of the rule.
    pub left_out: BTreeMap<&'static str, u64>,
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
    /// `sync`, `async`, `burst`, `fenced`, or `model` where nothing was executed.
    pub mode: &'static str,
    /// Operand, index, got, expected, tolerance; or whatever else there is to say.
    pub what: String,
}

/// What came of one test.
#[derive(Debug)]
pub(crate) struct TestResult {
    name: String,
    ops: Vec<String>,
    suites: Vec<Suite>,
    counts: Vec<(Suite, &'static str, Cell)>,
    rules: Vec<LeftOut>,
    failures: Vec<Finding>,
    is_supported: bool,
}

impl TestResult {
    pub(crate) fn new(test: &Test) -> Self {
        TestResult {
            name: test.name.clone(),
            ops: test.ops().into_iter().map(str::to_owned).collect(),
            suites: Vec::new(),
            counts: Vec::new(),
            rules: Vec::new(),
            failures: Vec::new(),
            is_supported: true,
        }
    }

    pub(crate) fn add_suite(&mut self, suite: Suite) {
        self.suites.push(suite);
    }

    pub(crate) fn add(&mut self, suite: Suite, mode: &'static str, outcome: Outcome) {
        let mut cell = Cell::default();
        match outcome {
            Ok(done) => {
                (cell.passed, cell.executions) = (1, done.count);
                for rule in &done.left_out {
                    *cell.left_out.entry(rule.name()).or_default() += 1;
                }
                self.rules.extend(done.left_out);
            }
            Err(Miss::Unsupported(_)) => self.is_supported = false,
            Err(Miss::LeftOut(rule)) => {
                cell.left_out.insert(rule.name(), 1);
                self.rules.push(rule);
            }
            Err(Miss::Wrong(what)) => {
                cell.failed = 1;
                let test = self.name.clone();
                self.failures.push(Finding { test, suite: suite.name(), mode, what });
            }
        }
        self.counts.push((suite, mode, cell));
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

impl Cell {
    fn add(&mut self, other: &Cell) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.executions += other.executions;
        for (rule, count) in &other.left_out {
            *self.left_out.entry(rule).or_default() += count;
        }
    }
}

impl SuiteCounts {
    /// Nothing yet: a cell where the suite has the mode.
    fn of(suite: Suite, routes: &[Route]) -> Self {
        let cell = |exists: bool| exists.then(Cell::default);
        let mut modes: BTreeMap<_, _> = routes
            .iter()
            .map(|route| (route.name(), cell(suite.routes().contains(route))))
            .collect();
        modes.insert(MODEL, cell(suite.has_models()));
        SuiteCounts { tests: 0, modes }
    }
}

impl Report {
    pub(crate) fn of(
        suites: &[Suite],
        routes: &[Route],
        results: impl IntoIterator<Item = TestResult>,
    ) -> Self {
        let empty = |suite: &Suite| (suite.name(), SuiteCounts::of(*suite, routes));
        let per_suite = suites.iter().map(empty).collect();
        let mut report = Report { per_suite, ..Report::default() };
        let mut total = Tally::default();
        for result in results {
            let tally = result.tally();
            total.add(tally);
            report.tests += 1;
            for op in &result.ops {
                report.per_op.entry(op.clone()).or_default().add(tally);
            }
            for suite in &result.suites {
                report.per_suite.entry(suite.name()).or_default().tests += 1;
            }
            for (suite, mode, cell) in &result.counts {
                let counts = report.per_suite.entry(suite.name()).or_default();
                counts.modes.entry(mode).or_default().get_or_insert_default().add(cell);
                report.executions += if *mode == MODEL { 0 } else { cell.executions };
            }
            report.left_out.extend(result.rules.iter().map(|rule| (rule.name(), rule.why())));
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
