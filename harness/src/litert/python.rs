//! The process with LiteRT, and what is asked of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use burst_hal::OperandType;
use burst_tflite::{Cut, TensorInfo};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::HarnessError;

const SCRIPT: &str = include_str!("litert.py");

/// What to do where the package is not found.
const ADVICE: &str = "install Python 3 and in it the package ai-edge-litert (`python3 -m venv V && \
                      V/bin/pip install ai-edge-litert`), and name that Python with --python";

/// Most bytes of one output: beyond it the other end talks nonsense.
const MAX_OUTPUT_BYTES: usize = 2 << 30;

/// Which package computes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
}

/// Which of its kernels compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernels {
    /// Those that it takes by itself: XNNPACK, and its own fast ones for the rest.
    Default,
    /// Its reference kernels alone, slow and plain.
    Reference,
}

/// A model to load.
#[derive(Debug, Clone)]
pub struct Load<'l> {
    /// Its file.
    pub file: PathBuf,
    /// Where the part begins, when only a part of it is wanted.
    pub cut: Option<&'l Cut>,
    /// Threads that compute.
    pub threads: u32,
    /// With which kernels.
    pub kernels: Kernels,
    /// The outputs that are wanted, in the types that are wanted.
    pub outputs: &'l [TensorInfo],
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
        Python::start_with(program, &[])
    }

    /// Starts it with these variables in its environment, beside ours.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(
        program: &Path,
        environment: &[(&str, &str)],
    ) -> Result<Python, HarnessError> {
        let missing = |what: String| HarnessError::peer(format!("{what}: {ADVICE}"));
        let mut child = Command::new(program)
            .args(["-c", SCRIPT])
            .envs(environment.iter().copied())
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

    /// Loads a model under a name, in place of another one of that name: how long that took.
    ///
    /// # Errors
    /// It cannot run the model.
    pub fn load(&mut self, session: &str, load: &Load<'_>) -> Result<Duration, HarnessError> {
        let outputs: Result<Vec<Value>, HarnessError> = load.outputs.iter().map(wanted).collect();
        let cut = load
            .cut
            .map(|cut| json!({ "before": cut.operators_before, "from": cut.from, "to": cut.to }));
        let answer = self.ask(&json!({
            "do": "load", "session": session, "model": load.file, "threads": load.threads,
            "reference": load.kernels == Kernels::Reference, "cut": cut, "outputs": outputs?,
        }))?;
        Ok(Duration::from_secs_f64(answer["seconds"].as_f64().unwrap_or(0.0).max(0.0)))
    }

    /// Gives a model its inputs by name. Where a sequence begins, its states begin anew.
    ///
    /// # Errors
    /// They are not its inputs.
    pub fn give(
        &mut self,
        session: &str,
        inputs: &[(&str, &[u8])],
        begins: bool,
    ) -> Result<(), HarnessError> {
        let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
        let bytes: Vec<usize> = inputs.iter().map(|(_, bytes)| bytes.len()).collect();
        let request = json!({
            "do": "give", "session": session, "inputs": names, "bytes": bytes, "begins": begins,
        });
        let parts: Vec<&[u8]> = inputs.iter().map(|(_, bytes)| *bytes).collect();
        self.send(&request, &parts)?;
        self.answer().map(|_| ())
    }

    /// Runs a model so many times: how long each execution took, in nanoseconds.
    ///
    /// # Errors
    /// An execution failed.
    pub fn run(&mut self, session: &str, count: u32) -> Result<Vec<u64>, HarnessError> {
        let answer = self.ask(&json!({ "do": "run", "session": session, "count": count }))?;
        Ok(serde_json::from_value(answer["ns"].clone())?)
    }

    /// The outputs of a model's last execution.
    ///
    /// # Errors
    /// One of them is not of the type that was wanted.
    pub fn outputs(&mut self, session: &str) -> Result<Vec<Vec<u8>>, HarnessError> {
        let answer = self.ask(&json!({ "do": "outputs", "session": session }))?;
        let lengths: Vec<usize> = serde_json::from_value(answer["bytes"].clone())?;
        let mut outputs = Vec::with_capacity(lengths.len());
        for length in lengths {
            if length > MAX_OUTPUT_BYTES {
                return Err(HarnessError::Handshake { expected: "an output of a model" });
            }
            let mut bytes = vec![0; length];
            self.answers.read_exact(&mut bytes)?;
            outputs.push(bytes);
        }
        Ok(outputs)
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that the process ever had, in KiB.
    ///
    /// # Errors
    /// It is gone.
    pub fn memory_kib(&mut self) -> Result<u64, HarnessError> {
        let answer = self.ask(&json!({ "do": "memory" }))?;
        Ok(answer["kib"].as_u64().unwrap_or(0))
    }

    /// Gives back what a model holds.
    ///
    /// # Errors
    /// The process is gone.
    pub fn unload(&mut self, session: &str) -> Result<(), HarnessError> {
        self.ask(&json!({ "do": "unload", "session": session })).map(|_| ())
    }

    fn ask(&mut self, request: &Value) -> Result<Value, HarnessError> {
        self.send(request, &[])?;
        self.answer()
    }

    fn send(&mut self, request: &Value, parts: &[&[u8]]) -> Result<(), HarnessError> {
        let Some(to) = &mut self.requests else {
            return Err(HarnessError::Handshake { expected: "a request; Python ended" });
        };
        writeln!(to, "{request}")?;
        for part in parts {
            to.write_all(part)?;
        }
        Ok(to.flush()?)
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

/// An output as the script knows it.
fn wanted(output: &TensorInfo) -> Result<Value, HarnessError> {
    let ty = match output.ty {
        OperandType::TensorFloat32 => "float32",
        OperandType::TensorFloat16 => "float16",
        OperandType::TensorInt32 => "int32",
        OperandType::TensorBool8 => "bool",
        OperandType::TensorQuant8Asymm => "uint8",
        OperandType::TensorQuant8AsymmSigned | OperandType::TensorQuant8Symm => "int8",
        OperandType::TensorQuant16Symm => "int16",
        OperandType::TensorQuant16Asymm => "uint16",
        ty => {
            return Err(HarnessError::peer(format!("its output {} is of type {ty}", output.name)));
        }
    };
    Ok(json!({ "name": output.name, "type": ty }))
}
