//! A driver in this process: what the work costs without any transport.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_client::ShmMemory;
use burst_hal::session::{
    HeapAllocator, ModelSession, PoolAllocator, SessionLayout, SessionOptions, SessionTensors,
};
use burst_hal::{Device, ExecutionOptions, Failure, Memory, Pool, Route};

use super::subject::{Clock, Executable, Executions, Label, ModelSubject, nanos, take_trial_by};
use super::workload::Workload;
use crate::engine::{Length, Subject, Times};
use crate::error::HarnessError;
use crate::machine::peak_memory_kib;

/// Most copies of the inputs that are timed in one trial.
const COPIES_MAX: u32 = 50;

/// Memory of this process for the tensors of a workload, with its inputs in it.
#[derive(Debug)]
pub struct LocalMemory {
    layout: SessionLayout,
    inputs: Pool,
    outputs: Pool,
}

impl LocalMemory {
    /// New memory.
    ///
    /// # Errors
    /// Tensors that cannot be laid out, or no memory.
    pub fn new(workload: &Workload) -> Result<LocalMemory, HarnessError> {
        let layout = SessionLayout::new(&workload.imported.model, &workload.layout());
        let layout = layout.map_err(HarnessError::peer)?;
        let inputs = allocate(layout.input_bytes())?;
        let outputs = allocate(layout.output_bytes())?;
        write_inputs(&*inputs, &layout, workload)?;
        Ok(LocalMemory { layout, inputs, outputs })
    }

    /// Requests that name it, with states as they begin.
    #[must_use]
    pub fn tensors(&self) -> SessionTensors {
        let has_inputs = self.layout.input_bytes() > 0;
        let inputs = has_inputs.then(|| Pool::clone(&self.inputs));
        SessionTensors::new(self.layout.clone(), inputs, Pool::clone(&self.outputs))
    }
}

fn allocate(bytes: u64) -> Result<Pool, HarnessError> {
    let bytes = usize::try_from(bytes.max(1)).map_err(HarnessError::peer)?;
    HeapAllocator.allocate(bytes).map_err(|failure: Failure| HarnessError::peer(failure))
}

/// Writes the inputs, and the values that states begin with, where the layout says.
fn write_inputs(
    pool: &dyn Memory,
    layout: &SessionLayout,
    workload: &Workload,
) -> Result<(), HarnessError> {
    for (index, bytes) in workload.inputs.iter().enumerate() {
        let offset = layout.input_slot(0, index).offset.into();
        pool.write(offset, bytes).map_err(HarnessError::peer)?;
    }
    Ok(())
}

/// A device in this process.
pub struct InProcess<'s> {
    label: Label,
    device: Arc<dyn Device>,
    workload: &'s Workload,
    clock: Arc<Clock<'static>>,
    /// Memory such as a client's, in which the inputs lie for timing copies of them.
    shared: Option<ShmMemory>,
}

impl<'s> InProcess<'s> {
    /// A subject for this device.
    #[must_use]
    pub fn new(label: Label, device: Arc<dyn Device>, workload: &'s Workload) -> Self {
        let begun = Instant::now();
        let clock = Arc::new(move || begun.elapsed());
        InProcess { label, device, workload, clock, shared: None }
    }

    /// The same subject, whose preparing and executions are timed by another clock: that of a device which moves it.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<Clock<'static>>) -> Self {
        self.clock = clock;
        self
    }

    /// The same subject, which also times what a service does first with a request: copying the bytes
    /// of the inputs out of the client's memory.
    ///
    /// # Errors
    /// Tensors that cannot be laid out; the system has no shared memory left.
    pub fn with_copies(mut self) -> Result<Self, HarnessError> {
        let layout = SessionLayout::new(&self.workload.imported.model, &self.workload.layout())
            .map_err(HarnessError::peer)?;
        let bytes = usize::try_from(layout.input_bytes().max(1)).map_err(HarnessError::peer)?;
        self.shared = Some(ShmMemory::create(bytes).map_err(HarnessError::peer)?);
        Ok(self)
    }

    /// Copies between executions, when the caches hold what an execution leaves there.
    fn copies(&self, local: &mut Local<'_>, count: u32) -> Result<Times, HarnessError> {
        let Some(shared) = &self.shared else { return Ok(Times::default()) };
        let layout = local.session.tensors().layout().clone();
        let mut targets: Vec<Vec<u8>> =
            self.workload.inputs.iter().map(|input| vec![0; input.len()]).collect();
        let mut times = Vec::new();
        for _ in 0..count {
            local.session.reset_states();
            local.run()?;
            write_inputs(shared, &layout, self.workload)?;
            let started = Instant::now();
            for (index, target) in targets.iter_mut().enumerate() {
                let offset = layout.input_slot(0, index).offset.into();
                shared.read(offset, target).map_err(HarnessError::peer)?;
            }
            times.push(nanos(started.elapsed()));
        }
        Ok(Times::new(times))
    }
}

impl Subject for InProcess<'_> {
    type Trial = Executions;

    fn context(&self) -> String {
        self.label.to_string()
    }

    fn trial(&mut self, length: Length) -> Result<Executions, HarnessError> {
        let started = (self.clock)();
        // As an application opens one, with memory of its own: what other libraries prepare has its tensors in it, too.
        let options = SessionOptions {
            route: Route::Burst,
            layout: self.workload.layout(),
            ..SessionOptions::default()
        };
        let model = &self.workload.imported.model;
        let session = ModelSession::open(&*self.device, model, &options, Arc::new(HeapAllocator));
        let prepare = (self.clock)().saturating_sub(started);
        let session = session.map_err(HarnessError::peer)?;
        let mut local = Local { session, workload: self.workload };
        let mut trial = take_trial_by(&*self.clock, &mut local, prepare, length)?;
        trial.copies = self.copies(&mut local, length.counted.min(COPIES_MAX))?;
        trial.memory_kib = peak_memory_kib(std::process::id());
        Ok(trial)
    }
}

impl ModelSubject for InProcess<'_> {
    fn label(&self) -> &Label {
        &self.label
    }
}

struct Local<'a> {
    session: ModelSession,
    workload: &'a Workload,
}

impl Executable for Local<'_> {
    /// Every execution begins with the same states.
    fn fill(&mut self) -> Result<(), HarnessError> {
        self.session.reset_states();
        for (index, bytes) in self.workload.inputs.iter().enumerate() {
            self.session.write_input(index, bytes).map_err(HarnessError::peer)?;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<Option<Duration>, HarnessError> {
        let options = ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() };
        self.session.run(&options).map_err(HarnessError::peer)?;
        Ok(None)
    }

    fn outputs(&mut self) -> Result<Vec<Vec<u8>>, HarnessError> {
        let output = |index| {
            let mut bytes = Vec::new();
            self.session.read_output(index, &mut bytes).map_err(HarnessError::peer)?;
            Ok(bytes)
        };
        (0..self.workload.given_outputs()).map(output).collect()
    }
}
