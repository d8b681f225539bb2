//! LiteRT in a Python process of its own, asked line by line (`litert.py`).

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use burst_harness::HarnessError;
use burst_harness::engine::{Length, Subject, Times};
use burst_harness::model::{Executions, Label, ModelSubject, Workload};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

const SCRIPT: &str = include_str!("litert.py");

/// What to do where the package is not found.
const ADVICE: &str = "install Python 3 and in it the package ai-edge-litert (`python3 -m venv V && \
                      V/bin/pip install ai-edge-litert`), and name that Python with --python";

/// Which package computes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
}

/// A Python process with the interpreter. It never outlives this value.
#[derive(Debug)]
pub struct Python {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What it is.
    pub package: Package,
}

impl Python {
    /// Starts it.
    ///
    /// # Errors
    /// No such program, or one without the package: a sentence that says what to install.
    pub fn start(program: &Path) -> Result<Python, HarnessError> {
        let missing = |what: String| HarnessError::peer(format!("{what}: {ADVICE}"));
        let mut child = Command::new(program)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| missing(format!("cannot start {} ({error})", program.display())))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(HarnessError::Handshake { expected: "its standard streams" });
        };
        let nobody = Package { package: String::new(), version: String::new() };
        let mut python = Python {
            child,
            requests: Some(requests),
            answers: BufReader::new(answers),
            package: nobody,
        };
        let absent = |error: HarnessError| {
            missing(format!("{} cannot run LiteRT models ({error})", program.display()))
        };
        let hello = python.answer().map_err(absent)?;
        python.package = serde_json::from_value(hello)?;
        Ok(python)
    }

    fn ask(&mut self, request: &Value) -> Result<Value, HarnessError> {
        if let Some(requests) = &mut self.requests {
            writeln!(requests, "{request}")?;
        }
        self.answer()
    }

    fn answer(&mut self) -> Result<Value, HarnessError> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(HarnessError::Handshake { expected: "an answer; Python ended" });
        }
        let answer: Value = serde_json::from_str(&line)?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(HarnessError::peer(error)),
            None => Ok(answer),
        }
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        self.requests = None; // its loop ends with its input
        if self.child.wait().is_err() {
            let _ = self.child.kill();
        }
    }
}

/// LiteRT as a subject.
pub struct LiteRt<'s> {
    label: Label,
    python: Rc<RefCell<Python>>,
    workload: &'s Workload,
    file: PathBuf,
    folder: TempDir,
}

/// The name of its path.
pub(super) const PATH: &str = "litert";

impl<'s> LiteRt<'s> {
    /// A subject with so many threads; the inputs are written where Python finds them.
    ///
    /// # Errors
    /// A workload without a file, or no room for the inputs.
    pub fn new(
        python: &Rc<RefCell<Python>>,
        workload: &'s Workload,
        threads: u32,
    ) -> Result<Self, HarnessError> {
        let file = workload.file.clone().ok_or_else(|| HarnessError::peer("it has no file"))?;
        let folder = tempfile::tempdir()?;
        for index in workload.given_inputs() {
            std::fs::write(input_file(&folder, index), &workload.inputs[index])?;
        }
        let (label, python) = (Label::new(PATH, threads), Rc::clone(python));
        Ok(LiteRt { label, python, workload, file, folder })
    }

    /// Whether this model, or its part, can be run: one execution.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&mut self) -> Result<(), HarnessError> {
        self.trial(Length { warm_up: 0, counted: 0 }).map(|_| ())
    }

    fn load(&self) -> Value {
        let workload = self.workload;
        let inputs: Vec<Value> = workload
            .given_inputs()
            .map(|index| {
                let name = &workload.imported.inputs[index].name;
                json!({ "name": name, "file": input_file(&self.folder, index) })
            })
            .collect();
        let cut = workload
            .cut
            .as_ref()
            .map(|cut| json!({ "before": cut.operators_before, "from": cut.from, "to": cut.to }));
        json!({
            "do": "load", "model": self.file, "threads": self.label.threads, "cut": cut,
            "inputs": inputs,
        })
    }

    fn outputs(&self, python: &mut Python) -> Result<Vec<Vec<u8>>, HarnessError> {
        let outputs = &self.workload.imported.outputs[..self.workload.given_outputs()];
        let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        let request = json!({ "do": "outputs", "names": names, "folder": self.folder.path() });
        let answer = python.ask(&request)?;
        let files: Vec<PathBuf> = serde_json::from_value(answer["files"].clone())?;
        files.iter().map(|file| Ok(std::fs::read(file)?)).collect()
    }
}

fn input_file(folder: &TempDir, index: usize) -> PathBuf {
    folder.path().join(format!("input-{index}"))
}

fn run(python: &mut Python, count: u32) -> Result<Vec<u64>, HarnessError> {
    let answer = python.ask(&json!({ "do": "run", "count": count }))?;
    Ok(serde_json::from_value(answer["ns"].clone())?)
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
        let loaded = python.ask(&self.load())?;
        let first = run(&mut python, 1)?;
        let outputs = self.outputs(&mut python)?;
        run(&mut python, length.warm_up)?;
        let times = run(&mut python, length.counted)?;
        python.ask(&json!({ "do": "unload" }))?;
        Ok(Executions {
            prepare: Duration::from_secs_f64(loaded["seconds"].as_f64().unwrap_or(0.0).max(0.0)),
            first: Duration::from_nanos(first.first().copied().unwrap_or(0)),
            times: Times::new(times),
            outputs,
            ..Executions::default()
        })
    }
}
