//! A subject that computes on one CPU with one thread. This needs two CPUs to see a difference.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::cell::Cell;
use std::rc::Rc;

use burst_harness::HarnessError;
use burst_harness::engine::{Length, Subject};
use burst_harness::machine::{Pins, usable_cpus};
use burst_harness::model::{Executions, Label, ModelSubject, Pinned};
use burst_testing::{TwoCpus, two_cpus};

burst_testing::tests![
    a_pinned_subject_runs_on_one_cpu_and_leaves_its_thread_as_it_was(two_cpus()?),
];

/// Notes on how many CPUs it could have run.
struct CpuCount {
    label: Label,
    cpus: Rc<Cell<usize>>,
}

impl ModelSubject for CpuCount {
    fn label(&self) -> &Label {
        &self.label
    }
}

impl Subject for CpuCount {
    type Trial = Executions;

    fn context(&self) -> String {
        self.label.to_string()
    }

    fn trial(&mut self, _: Length) -> Result<Executions, HarnessError> {
        self.cpus.set(usable_cpus()?.len());
        Ok(Executions::default())
    }
}

fn a_pinned_subject_runs_on_one_cpu_and_leaves_its_thread_as_it_was(_: TwoCpus) {
    let pins = Pins::take().unwrap();
    let before = usable_cpus().unwrap();
    let cpus = Rc::new(Cell::new(0));
    let subject = CpuCount { label: Label::new("here", 1), cpus: Rc::clone(&cpus) };
    Pinned::new(subject, pins).trial(Length { warm_up: 0, counted: 1 }).unwrap();
    assert_eq!(cpus.get(), 1);
    assert_eq!(usable_cpus().unwrap(), before);
}
