//! A lane that computes on one CPU with one thread. This needs two CPUs to see a difference.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::cell::Cell;
use std::rc::Rc;

use burst_harness::HarnessError;
use burst_harness::machine::{Pins, usable_cpus};
use burst_harness::model::{Label, Lane, Length, Pinned, Turn};

/// Notes on how many CPUs it could have run.
struct CpuCount {
    label: Label,
    cpus: Rc<Cell<usize>>,
}

impl Lane for CpuCount {
    fn label(&self) -> &Label {
        &self.label
    }

    fn turn(&mut self, _: Length) -> Result<Turn, HarnessError> {
        self.cpus.set(usable_cpus()?.len());
        Ok(Turn::default())
    }
}

#[test]
fn a_pinned_lane_runs_on_one_cpu_and_leaves_its_thread_as_it_was() {
    let Ok(pins) = Pins::take() else {
        eprintln!("ignored: a_pinned_lane_runs_on_one_cpu_... needs two CPUs");
        return;
    };
    let before = usable_cpus().unwrap();
    let cpus = Rc::new(Cell::new(0));
    let lane = CpuCount { label: Label::new("here", 1), cpus: Rc::clone(&cpus) };
    Pinned::new(lane, pins).turn(Length { warm_up: 0, executions: 1 }).unwrap();
    assert_eq!(cpus.get(), 1);
    assert_eq!(usable_cpus().unwrap(), before);
}
