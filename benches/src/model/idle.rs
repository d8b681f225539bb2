//! What a prepared model holds while nothing is executed: of the heap, and by how much a process grows that prepares it
//! and does nothing else, ours and LiteRT's alike.
//!
//! The heap is what our driver charges for it; that this is what the allocator has given is a test of its own
//! (`tests/tests/allocations.rs`). Both processes have an allocator that gives back what is free, and one other model
//! first, which is gone again: what a library takes once is not counted.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_hal::{Caller, Device, Failure, MemoryAccount, PrepareOptions};
use burst_harness::HarnessError;
use burst_harness::litert::{LiteRt, Python};
use burst_harness::machine::own_memory_bytes;
use burst_harness::model::Workload;
use serde::{Deserialize, Serialize};

use super::driver::device;

/// The argument with which this program is started to hold a model, whose file follows.
const ARGUMENT: &str = "--hold-model";

/// What glibc's allocator does with large and with free blocks: as it begins, and without a reserve.
const ALLOCATOR: [(&str, &str); 3] = [
    ("MALLOC_MMAP_THRESHOLD_", "131072"),
    ("MALLOC_TRIM_THRESHOLD_", "0"),
    ("MALLOC_TOP_PAD_", "0"),
];

/// What an idle model may hold whatever its weights: its plan.
const BESIDE_WEIGHTS: u64 = 64 << 10;

/// Memory of an idle prepared model, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Idle {
    /// The constants that executions read, each once, without what packing adds.
    pub weight_bytes: u64,
    /// The same as they are executed: packed for kernels, which widen some and keep the numbers for each channel with them.
    pub executed_bytes: u64,
    /// What it holds of the heap: weights as they are executed, and the plan.
    pub heap_bytes: u64,
    /// That without 64 KiB, over the weights as they are executed.
    pub heap_to_executed: f64,
    /// By how much our process grew.
    pub grown_bytes: u64,
    /// By how much LiteRT's process grew; `null` where it does not run the model.
    pub litert_grown_bytes: Option<u64>,
}

/// What the process that holds a model says of it.
#[derive(Debug, Serialize, Deserialize)]
struct Held {
    weight_bytes: u64,
    executed_bytes: u64,
    heap_bytes: u64,
    grown_bytes: u64,
}

impl Idle {
    /// Measures this model, which has a file, in LiteRT too where it is run there.
    pub(super) fn measure(
        workload: &Workload,
        python: Option<&Path>,
    ) -> Result<Idle, HarnessError> {
        let file = workload.file.as_deref().ok_or_else(|| HarnessError::peer("it has no file"))?;
        let Held { weight_bytes, executed_bytes, heap_bytes, grown_bytes } = ours(file)?;
        let litert_grown_bytes = python.map(|python| litert(python, workload)).transpose()?;
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let heap_to_executed =
            heap_bytes.saturating_sub(BESIDE_WEIGHTS) as f64 / executed_bytes.max(1) as f64;
        Ok(Idle {
            weight_bytes,
            executed_bytes,
            heap_bytes,
            heap_to_executed,
            grown_bytes,
            litert_grown_bytes,
        })
    }
}

fn ours(file: &Path) -> Result<Held, HarnessError> {
    let output = Command::new("/proc/self/exe").arg(ARGUMENT).arg(file).envs(ALLOCATOR).output()?;
    if !output.status.success() {
        return Err(HarnessError::peer(String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn litert(python: &Path, workload: &Workload) -> Result<u64, HarnessError> {
    let mut python = Python::start_with(python, &ALLOCATOR)?;
    let pid = python.pid();
    let first = Workload::read(Path::new(super::OWN_MODEL))?;
    LiteRt::hold(&mut python, &first, 1)?;
    python.unload(LiteRt::SESSION)?;
    let before = own_memory(pid)?;
    LiteRt::hold(&mut python, workload, 1)?;
    Ok(own_memory(pid)?.saturating_sub(before))
}

fn own_memory(pid: u32) -> Result<u64, HarnessError> {
    own_memory_bytes(pid)
        .ok_or_else(|| HarnessError::peer("cannot read how much memory a process has"))
}

/// Holds a model, where this process was started for that: the program must do nothing else before.
#[must_use]
pub fn hold_model_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let is_asked = arguments.next().is_some_and(|argument| argument == ARGUMENT);
    let file = arguments.next().filter(|_| is_asked)?;
    let said = hold(Path::new(&file)).and_then(|held| Ok(serde_json::to_string(&held)?));
    Some(match said {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    })
}

/// An account that only counts.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl MemoryAccount for Count {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn hold(file: &Path) -> Result<Held, HarnessError> {
    let (device, count) = (device(1, true), Arc::new(Count::default()));
    let caller = Caller::default().with_account(Arc::clone(&count) as _);
    let prepare = |file| {
        // What was read is gone when the model is prepared, as it is in a service.
        let workload = Workload::read(file)?;
        let (model, options) = (&workload.imported.model, PrepareOptions::default());
        device.prepare_model_for(model, &options, &caller).map_err(HarnessError::peer)
    };
    drop(prepare(Path::new(super::OWN_MODEL))?);
    let pid = std::process::id();
    let before = own_memory(pid)?;
    let prepared = prepare(file)?;
    let grown_bytes = own_memory(pid)?.saturating_sub(before);
    let heap_bytes = count.0.load(Ordering::Relaxed);
    drop(prepared);
    let again =
        device.prepare(&Workload::read(file)?.imported.model).map_err(HarnessError::peer)?;
    let plan = again.plan();
    let [weight_bytes, executed_bytes] = [plan.weight_bytes(), plan.held_bytes()].map(|n| n as u64);
    Ok(Held { weight_bytes, executed_bytes, heap_bytes, grown_bytes })
}
