//! A model in LiteRT, as a subject of the engine.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::PATH;
use super::python::{Kernels, Load, Python};
use crate::engine::{Length, Subject, Times};
use crate::error::HarnessError;
use crate::model::{Executions, Label, ModelSubject, Workload};

/// LiteRT as a subject.
pub struct LiteRt<'s> {
    label: Label,
    python: Rc<RefCell<Python>>,
    workload: &'s Workload,
}

impl<'s> LiteRt<'s> {
    /// What the one model of a trial is called.
    pub const SESSION: &'static str = "trial";

    /// A subject with so many threads.
    ///
    /// # Errors
    /// A workload without a file.
    pub fn new(
        python: &Rc<RefCell<Python>>,
        workload: &'s Workload,
        threads: u32,
    ) -> Result<Self, HarnessError> {
        file_of(workload)?;
        let (label, python) = (Label::new(PATH, threads), Rc::clone(python));
        Ok(LiteRt { label, python, workload })
    }

    /// Whether this model, or its part, can be run: one execution.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&mut self) -> Result<(), HarnessError> {
        self.trial(Length { warm_up: 0, counted: 0 }).map(|_| ())
    }

    /// Prepares a model there, and leaves it at that: how long it took.
    ///
    /// # Errors
    /// A workload without a file, or one that it cannot run.
    pub fn hold(
        python: &mut Python,
        workload: &Workload,
        threads: u32,
    ) -> Result<Duration, HarnessError> {
        let load = Load {
            file: file_of(workload)?,
            cut: workload.cut.as_ref(),
            threads,
            kernels: Kernels::Default,
            outputs: &workload.imported.outputs[..workload.given_outputs()],
        };
        python.load(Self::SESSION, &load)
    }

    fn load(&self, python: &mut Python) -> Result<Duration, HarnessError> {
        let workload = self.workload;
        let took = Self::hold(python, workload, self.label.threads)?;
        let given = workload.given_inputs().map(|index| {
            (workload.imported.inputs[index].name.as_str(), workload.inputs[index].as_slice())
        });
        python.give(Self::SESSION, &given.collect::<Vec<_>>(), true)?;
        Ok(took)
    }
}

fn file_of(workload: &Workload) -> Result<PathBuf, HarnessError> {
    workload.file.clone().ok_or_else(|| HarnessError::peer("it has no file"))
}

impl ModelSubject for LiteRt<'_> {
    fn label(&self) -> &Label {
        &self.label
    }
}

impl Subject for LiteRt<'_> {
    type Trial = Executions;

    fn context(&self) -> String {
        self.label.to_string()
    }

    fn trial(&mut self, length: Length) -> Result<Executions, HarnessError> {
        let python = Rc::clone(&self.python);
        let mut python = python.borrow_mut();
        let prepare = self.load(&mut python)?;
        let first = python.run(Self::SESSION, 1)?;
        let outputs = python.outputs(Self::SESSION)?;
        python.run(Self::SESSION, length.warm_up)?;
        let times = python.run(Self::SESSION, length.counted)?;
        python.unload(Self::SESSION)?;
        Ok(Executions {
            prepare,
            first: Duration::from_nanos(first.first().copied().unwrap_or(0)),
            times: Times::new(times),
            outputs,
            ..Executions::default()
        })
    }
}
