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

/// What the one model of a trial is called.
const SESSION: &str = "trial";

/// LiteRT as a subject.
pub struct LiteRt<'s> {
    label: Label,
    python: Rc<RefCell<Python>>,
    workload: &'s Workload,
    file: PathBuf,
}

impl<'s> LiteRt<'s> {
    /// A subject with so many threads.
    ///
    /// # Errors
    /// A workload without a file.
    pub fn new(
        python: &Rc<RefCell<Python>>,
        workload: &'s Workload,
        threads: u32,
    ) -> Result<Self, HarnessError> {
        let file = workload.file.clone().ok_or_else(|| HarnessError::peer("it has no file"))?;
        let (label, python) = (Label::new(PATH, threads), Rc::clone(python));
        Ok(LiteRt { label, python, workload, file })
    }

    /// Whether this model, or its part, can be run: one execution.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&mut self) -> Result<(), HarnessError> {
        self.trial(Length { warm_up: 0, counted: 0 }).map(|_| ())
    }

    fn load(&self, python: &mut Python) -> Result<Duration, HarnessError> {
        let workload = self.workload;
        let load = Load {
            file: self.file.clone(),
            cut: workload.cut.as_ref(),
            threads: self.label.threads,
            kernels: Kernels::Default,
            outputs: &workload.imported.outputs[..workload.given_outputs()],
        };
        let took = python.load(SESSION, &load)?;
        let given = workload.given_inputs().map(|index| {
            (workload.imported.inputs[index].name.as_str(), workload.inputs[index].as_slice())
        });
        python.give(SESSION, &given.collect::<Vec<_>>(), true)?;
        Ok(took)
    }
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
        let first = python.run(SESSION, 1)?;
        let outputs = python.outputs(SESSION)?;
        python.run(SESSION, length.warm_up)?;
        let times = python.run(SESSION, length.counted)?;
        python.unload(SESSION)?;
        Ok(Executions {
            prepare,
            first: Duration::from_nanos(first.first().copied().unwrap_or(0)),
            times: Times::new(times),
            outputs,
            ..Executions::default()
        })
    }
}
