//! Who computes one model: a driver over each way to it, and LiteRT with both of its kinds of kernels.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use burst_driver::Variant;
use burst_hal::{ErrorStatus, ExecutionPreference, Priority};
use burst_harness::WaitKind;
use burst_harness::litert::{Kernels, Load, Python};
use burst_harness::machine::peak_memory_kib;
use burst_tflite::{Cut, Imported, TensorInfo};

use crate::route::RouteArg;
use crate::stream::{ModelPath, PathOptions, open_path};
use crate::threads::Threads;

/// Far above any execution; only turns a hang into an error.
const PATIENCE: Duration = Duration::from_secs(300);

/// A model as it is run, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup<'m> {
    pub(super) file: &'m PathBuf,
    /// What the driver runs of it.
    pub(super) imported: &'m Imported,
    /// Where that begins in the file, for LiteRT to begin there too.
    pub(super) cut: Option<&'m Cut>,
    /// The outputs that are no states.
    pub(super) outputs: &'m [TensorInfo],
    pub(super) wait: WaitKind,
    pub(super) threads: Threads,
}

impl<'m> Setup<'m> {
    /// The whole model with one thread, and none of its outputs.
    pub(super) fn plain(file: &'m PathBuf, imported: &'m Imported) -> Setup<'m> {
        let (cut, outputs, wait) = (None, &[][..], WaitKind::default());
        Setup { file, imported, cut, outputs, wait, threads: Threads { count: 1 } }
    }
}

/// A way to a driver, with the model prepared behind it.
pub(super) struct Way {
    pub(super) route: RouteArg,
    path: Box<dyn ModelPath>,
    outputs: usize,
    /// Until the driver's process was there and the model prepared.
    pub(super) prepare: Duration,
    /// Each execution over the data, in nanoseconds.
    pub(super) times: Vec<u64>,
    /// Inputs whose outputs were those of the first way.
    pub(super) equal: u64,
}

impl Way {
    /// Prepares the model in this process, or in a driver process of our own.
    pub(super) fn open(route: RouteArg, setup: &Setup<'_>) -> Result<Way> {
        Way::open_at(None, route, setup)
    }

    /// Prepares the model at a service where one is named, whose threads are its own.
    pub(super) fn open_at(
        socket: Option<&Path>,
        route: RouteArg,
        setup: &Setup<'_>,
    ) -> Result<Way> {
        let threads = socket.map_or(setup.threads, |_| Threads { count: 1 });
        let options = PathOptions {
            route,
            falls_back: false,
            wait: setup.wait,
            socket,
            device: Variant::CPU.name,
            devices: &[],
            preference: ExecutionPreference::FastSingleAnswer,
            priority: Priority::Medium,
            reconnect: false,
            deadline: PATIENCE,
            threads,
            tracing: None,
        };
        let started = Instant::now();
        let path = open_path(&options, setup.imported)
            .with_context(|| format!("over the path {}", route.name()))?;
        let (prepare, outputs) = (started.elapsed(), setup.outputs.len());
        Ok(Way { route, path, outputs, prepare, times: Vec::new(), equal: 0 })
    }

    /// Runs once on this input: how long that took.
    pub(super) fn run(&mut self, input: &[u8], begins: bool) -> Result<Duration> {
        let to = self.path.input();
        if to.len() != input.len() {
            bail!("its input has {} bytes, {} were made", to.len(), input.len());
        }
        to.copy_from_slice(input);
        if begins {
            self.path.reset_states();
        }
        let started = Instant::now();
        let (status, _) = self.path.execute(PATIENCE)?;
        let took = started.elapsed();
        if status != ErrorStatus::None {
            bail!("an execution over the path {} ended with {status}", self.route.name());
        }
        Ok(took)
    }

    /// The outputs of the last execution.
    pub(super) fn outputs(&mut self) -> Result<Vec<Vec<u8>>> {
        (0..self.outputs).map(|index| Ok(self.path.output(index)?.to_vec())).collect()
    }

    /// The most memory that the process which computes ever had, in KiB.
    pub(super) fn memory_kib(&self) -> Option<u64> {
        peak_memory_kib(self.path.driver_pid())
    }
}

/// A model in LiteRT.
pub(super) struct Other {
    python: Rc<RefCell<Python>>,
    session: &'static str,
    input: String,
    /// Loading.
    pub(super) prepare: Duration,
    /// Each execution over the data, in nanoseconds.
    pub(super) times: Vec<u64>,
}

impl Other {
    /// Loads the model; `input` is the name of what it is given.
    pub(super) fn load(
        python: &Rc<RefCell<Python>>,
        kernels: Kernels,
        setup: &Setup<'_>,
        input: &str,
    ) -> Result<Other> {
        let session = match kernels {
            Kernels::Default => "default",
            Kernels::Reference => "reference",
        };
        let load = Load {
            file: setup.file.clone(),
            cut: setup.cut,
            threads: setup.threads.count,
            kernels,
            outputs: setup.outputs,
        };
        let prepare = python.borrow_mut().load(session, &load)?;
        let (python, input) = (Rc::clone(python), input.to_owned());
        Ok(Other { python, session, input, prepare, times: Vec::new() })
    }

    /// Gives it an input.
    pub(super) fn give(&self, input: &[u8], begins: bool) -> Result<()> {
        let inputs = [(self.input.as_str(), input)];
        Ok(self.python.borrow_mut().give(self.session, &inputs, begins)?)
    }

    /// Runs so many times on what it was given: how long each took, in nanoseconds.
    pub(super) fn run(&self, count: u32) -> Result<Vec<u64>> {
        Ok(self.python.borrow_mut().run(self.session, count)?)
    }

    /// The outputs of the last execution.
    pub(super) fn outputs(&self) -> Result<Vec<Vec<u8>>> {
        Ok(self.python.borrow_mut().outputs(self.session)?)
    }

    /// The most memory that its process ever had, in KiB.
    pub(super) fn memory_kib(&self) -> Option<u64> {
        self.python.borrow_mut().memory_kib().ok()
    }
}

impl Drop for Other {
    /// The next model needs its room. Where the process is gone there is nothing to give back.
    fn drop(&mut self) {
        let _ = self.python.borrow_mut().unload(self.session);
    }
}

/// LiteRT's two ways to compute a model.
pub(super) struct LiteRtPair {
    pub(super) fast: Other,
    /// `None` where nothing is to be compared with it.
    pub(super) reference: Option<Other>,
}
