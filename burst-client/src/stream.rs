//! The short way: a model, memory for its inputs and outputs, and a way to run it often.
//!
//! Where tensors lie, states and requests are [`burst_hal::session`]'s. A stream adds what a client
//! in another process needs: inputs in memory that this process alone can write, outputs in memory
//! of the service, another attempt when the service is short of something, and moving to another
//! connection.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use burst_hal::session::{SessionLayout, SessionTensors};
use burst_hal::{ErrorStatus, ExecutionOptions, ExecutionResult, Model, Pool, TimePoint};
use burst_shm::SoleWriter;
use fmq::Deadline;

use crate::retry::Retries;
use crate::{Burst, ClientError, RemotePreparedModel, ShmMemory};

mod executor;
mod options;

use executor::{Executor, Setup};

pub use options::StreamOptions;

/// A model that runs in the driver, with memory for its inputs and outputs.
///
/// Write the inputs, run, read the outputs:
/// [`input`](Stream::input), [`run`](Stream::run), [`output`](Stream::output). Inputs are written
/// where the driver reads them.
#[derive(Debug)]
pub struct Stream {
    executor: Executor,
    setup: Setup,
    /// The inputs' pool of `tensors`, for writing; `None` for a model without inputs.
    input_memory: Option<SoleWriter>,
    tensors: SessionTensors,
    /// Copies of the outputs, as last asked for.
    outputs: Vec<Vec<u8>>,
    options: ExecutionOptions,
    driver_time: Option<Duration>,
    retries: u64,
    /// Inputs of a process that has none.
    stand_in: Vec<u8>,
}

impl Stream {
    /// Sets everything up for a prepared model; `model` is the one it was prepared from.
    ///
    /// # Errors
    /// [`ClientError::Layout`], or the service refuses something.
    pub fn new(
        prepared: &Arc<RemotePreparedModel>,
        model: &Model,
        options: &StreamOptions,
    ) -> Result<Self, ClientError> {
        let layout = SessionLayout::new(model, &options.layout(prepared.extensions()))?;
        let (input_memory, input_pool) = input_memory(&layout)?;
        let setup = Setup::new(options);
        let output_memory = setup.output_memory(prepared, layout.output_bytes())?;
        let mut executor = setup.open(prepared)?;
        let outputs = vec![Vec::new(); layout.outputs().len()];
        let tensors = SessionTensors::new(layout, input_pool, output_memory);
        tensors.pools().for_each(|pool| executor.cache_memory(pool));
        Ok(Stream {
            executor,
            setup,
            outputs,
            input_memory,
            tensors,
            options: ExecutionOptions {
                measure_timing: options.measure_timing,
                ..ExecutionOptions::default()
            },
            driver_time: None,
            retries: 0,
            stand_in: Vec::new(),
        })
    }

    /// Goes on with the same model prepared again, over the same or another connection.
    ///
    /// Inputs keep their memory and what was written to it. Outputs are gone with the memory that
    /// the service before made for them, and so are the states: they begin anew.
    ///
    /// # Errors
    /// The service refuses something, or is gone; the stream then is as it was.
    pub fn move_to(&mut self, prepared: &Arc<RemotePreparedModel>) -> Result<(), ClientError> {
        let bytes = self.tensors.outputs().len();
        let output_memory = self.setup.output_memory(prepared, bytes)?;
        self.executor = self.setup.open(prepared)?;
        self.tensors.replace_outputs(output_memory);
        self.tensors.pools().for_each(|pool| self.executor.cache_memory(pool));
        Ok(())
    }

    /// Bytes of an input, to be written. With several frames this is the first one's.
    ///
    /// # Panics
    /// There is no such input.
    pub fn input(&mut self, index: usize) -> &mut [u8] {
        self.input_of(0, index)
    }

    /// Bytes of an input in one of the frames; of a state those that it begins with.
    ///
    /// # Panics
    /// There is no such frame or input.
    pub fn input_of(&mut self, frame: usize, index: usize) -> &mut [u8] {
        let range = self.tensors.layout().input_slot(frame, index).range();
        if self.executor.link().is_forked() {
            // A forked child does not have the mapping; what it writes goes nowhere, and its run
            // is refused.
            self.stand_in.resize(range.len(), 0);
            return &mut self.stand_in;
        }
        self.input_memory.as_mut().map_or(&mut [], |memory| &mut memory.bytes_mut()[range])
    }

    /// How many frames there is room for.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.tensors.layout().frames()
    }

    /// How many inputs the model has.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.tensors.layout().inputs().len()
    }

    /// How many outputs the model has.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Runs on what was written to [`input`](Stream::input). The driver is told the deadline too, and
    /// gives up what nobody waits for any more.
    ///
    /// # Errors
    /// [`ClientError::PeerDied`] as soon as it is known; [`ClientError::Timeout`], whichever end saw
    /// the deadline pass; [`ClientError::Execution`] for an execution that failed.
    pub fn run(&mut self, deadline: Deadline) -> Result<&ExecutionResult, ClientError> {
        self.run_frame(0, deadline)
    }

    /// Runs on what was written to one of the frames.
    ///
    /// # Errors
    /// As [`Stream::run`].
    ///
    /// # Panics
    /// There is no such frame.
    pub fn run_frame(
        &mut self,
        frame: usize,
        deadline: Deadline,
    ) -> Result<&ExecutionResult, ClientError> {
        let mut retries = Retries::new(self.setup.retry, deadline);
        loop {
            let status = self.run_once(frame, deadline)?;
            if status == ErrorStatus::None {
                break;
            }
            let Some(pause) = retries.next(status, fmq::clock::now_ns()) else {
                return Err(self.failed(status));
            };
            self.retries += 1;
            std::thread::sleep(pause);
        }
        self.tensors.advance_states();
        Ok(self.result())
    }

    fn run_once(&mut self, frame: usize, deadline: Deadline) -> Result<ErrorStatus, ClientError> {
        self.driver_time = None;
        let request = self.tensors.request(frame);
        let until = deadline.as_ns().filter(|_| self.executor.takes_deadlines());
        self.options.deadline = until.map(|nanos| TimePoint { nanos });
        self.driver_time = self.executor.run(request, &self.options, deadline)?;
        Ok(self.result().status)
    }

    /// The error of an execution with this status. A deadline that the driver missed is the caller's,
    /// who learns of it as if the answer had not come in time.
    fn failed(&self, status: ErrorStatus) -> ClientError {
        use ErrorStatus::{MissedDeadlinePersistent, MissedDeadlineTransient};
        match status {
            MissedDeadlineTransient | MissedDeadlinePersistent
                if self.options.deadline.is_some() =>
            {
                ClientError::Timeout
            }
            _ => ClientError::Execution { status },
        }
    }

    /// How often a run was tried again because the service was short of something.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// Lets the next run begin with the states that the first one began with.
    pub fn reset_states(&mut self) {
        self.tensors.reset_states();
    }

    /// Bytes of an output of the last run, copied out. As long as its shape needs, where the
    /// driver told one; as long as its place otherwise.
    ///
    /// # Errors
    /// The memory cannot be read.
    ///
    /// # Panics
    /// There is no such output.
    pub fn output(&mut self, index: usize) -> Result<&[u8], ClientError> {
        let bytes = &mut self.outputs[index];
        self.tensors.read_output(index, self.executor.result(), bytes)?;
        Ok(bytes)
    }

    /// The result of the last run.
    #[must_use]
    pub fn result(&self) -> &ExecutionResult {
        self.executor.result()
    }

    /// How long the last run took in the driver.
    #[must_use]
    pub fn driver_time(&self) -> Option<Duration> {
        self.driver_time
    }

    /// Process id of the driver.
    #[must_use]
    pub fn driver_pid(&self) -> u32 {
        self.executor.link().peer.pid
    }

    /// Whether the service is still there, as far as is known.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.executor.link().is_usable()
    }

    /// The burst below, where there is one.
    #[must_use]
    pub fn burst(&self) -> Option<&Burst> {
        self.executor.burst()
    }
}

/// Memory that this process alone writes, with states of real 0 in it, and the same as a pool for
/// requests; neither for a model without inputs.
fn input_memory(layout: &SessionLayout) -> Result<(Option<SoleWriter>, Option<Pool>), ClientError> {
    let bytes = layout.input_bytes();
    if bytes == 0 {
        return Ok((None, None));
    }
    let length = usize::try_from(bytes).map_err(|_| ClientError::PoolTooLong { bytes })?;
    let mut writer = SoleWriter::create("burst-input", length)?;
    layout.write_initial_states(writer.bytes_mut());
    let descriptor = writer
        .as_fd()
        .try_clone_to_owned()
        .map_err(|_| ClientError::System { call: "dup", errno: rustix::io::Errno::MFILE })?;
    let pool = ShmMemory::open(descriptor, bytes)?;
    Ok((Some(writer), Some(Arc::new(pool))))
}
