//! The short way: a model, memory for its inputs and outputs, and a way to run it often.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use burst_hal::{
    DataLocation, Dimensions, ErrorStatus, ExecutionOptions, ExecutionResult, Model, Operand, Pool,
    PrepareOptions, Request, RequestArgument, RequestPool,
};
use burst_shm::SoleWriter;
use fmq::{Deadline, Wait};

use crate::carried::{self, Carried, States, Turn};
use crate::retry::Retries;
use crate::{Burst, BurstOptions, ClientError, RemotePreparedModel, RetryPolicy, ShmMemory};

/// Inputs and outputs begin at multiples of this, so that no two share a cache line.
const ALIGNMENT: u64 = 64;

/// Which way requests take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamPath {
    /// Through the queues of a burst.
    #[default]
    Burst,
    /// Over the control socket, one call per request; for comparison.
    Synchronous,
}

/// How a stream is set up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StreamOptions {
    /// Which way requests take.
    pub path: StreamPath,
    /// How this end, and on request the service, waits.
    pub wait: Wait,
    /// Frames that there is room for, so that one can be filled while another waits.
    pub frames: usize,
    /// Datums of the burst's queues; see [`BurstOptions::queue_datums`].
    pub queue_datums: Option<usize>,
    /// Whether to measure the time in the driver.
    pub measure_timing: bool,
    /// Bytes set aside for each output whose size the model does not know.
    pub unknown_output_bytes: Option<u32>,
    /// Whether the service makes the memory for the outputs, so that it need not copy them.
    pub service_outputs: bool,
    /// States: outputs that are inputs of the next run. They stay where the driver wrote them;
    /// nothing of them is copied between runs.
    pub carried: Vec<Carried>,
    /// What is done when the service is short of something. By default nothing: every failure is
    /// the caller's.
    pub retry: RetryPolicy,
    /// How the model is prepared.
    pub prepare: PrepareOptions,
}

impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions {
            path: StreamPath::Burst,
            wait: Wait::default(),
            frames: 1,
            queue_datums: None,
            measure_timing: true,
            unknown_output_bytes: None,
            service_outputs: true,
            carried: Vec::new(),
            retry: RetryPolicy::NONE,
            prepare: PrepareOptions::default(),
        }
    }
}

/// A model that runs in the driver, with memory for its inputs and outputs.
///
/// Write the inputs, run, read the outputs:
/// [`input`](Stream::input), [`run`](Stream::run), [`output`](Stream::output). Inputs are written
/// where the driver reads them.
#[derive(Debug)]
pub struct Stream {
    way: Way,
    setup: Setup,
    input_memory: Option<SoleWriter>,
    output_memory: Pool,
    frames: Vec<Frame>,
    outputs: Vec<Output>,
    states: States,
    turn: Turn,
    options: ExecutionOptions,
    synchronous: ExecutionResult,
    driver_time: Option<Duration>,
    retries: u64,
    /// Inputs of a process that has none.
    stand_in: Vec<u8>,
}

/// What of the options is needed again when the stream moves to another connection.
#[derive(Debug, Clone, Copy)]
struct Setup {
    path: StreamPath,
    burst: BurstOptions,
    service_outputs: bool,
    retry: RetryPolicy,
}

#[derive(Debug)]
enum Way {
    Burst(Box<Burst>),
    Synchronous(Arc<RemotePreparedModel>),
}

/// One place for a set of inputs.
#[derive(Debug)]
struct Frame {
    inputs: Vec<Range<usize>>,
    /// One, or one for each turn of the states.
    requests: Vec<Request>,
}

#[derive(Debug)]
struct Output {
    offset: u64,
    length: u32,
    operand: Operand,
    bytes: Vec<u8>,
}

impl Stream {
    /// Sets everything up for a prepared model; `model` is the one it was prepared from.
    ///
    /// # Errors
    /// [`ClientError::UnknownSize`], or the service refuses something.
    pub fn new(
        prepared: &Arc<RemotePreparedModel>,
        model: &Model,
        options: &StreamOptions,
    ) -> Result<Self, ClientError> {
        carried::check(&options.carried, model)?;
        let frames = options.frames.max(1);
        let inputs = places(&input_lengths(model)?, frames)?;
        let mut output_lengths = output_lengths(model, options.unknown_output_bytes)?;
        let output_count = output_lengths.len();
        output_lengths.extend(States::extra_lengths(&options.carried, &output_lengths));
        let outputs = places(&output_lengths, 1)?;
        let states = States::new(&options.carried, &outputs.first, output_count);
        let (input_memory, input_pool) = input_memory(inputs.bytes)?;
        let setup = Setup::new(options);
        let output_memory = setup.output_memory(prepared, outputs.bytes)?;
        let pools = [Some(&output_memory), input_pool.as_ref()];
        let pools: Vec<RequestPool> = pools
            .into_iter()
            .flatten()
            .map(|pool| RequestPool::Memory(Pool::clone(pool)))
            .collect();
        let request = |number, turn| {
            let mut request = Request {
                inputs: inputs.of_frame(number).map(|location| argument(1, location)).collect(),
                outputs: outputs
                    .of_frame(0)
                    .take(output_count)
                    .map(|location| argument(0, location))
                    .collect(),
                pools: pools.clone(),
            };
            states.name_places(turn, 0, &mut request.inputs, &mut request.outputs);
            request
        };
        let turns = if states.is_empty() { &Turn::ALL[..1] } else { &Turn::ALL };
        let frame = |number| Frame {
            inputs: inputs.of_frame(number).map(|(at, length)| range(at, length)).collect(),
            requests: turns.iter().map(|turn| request(number, *turn)).collect(),
        };
        let mut stream = Stream {
            way: setup.way(prepared)?,
            setup,
            frames: (0..frames).map(frame).collect(),
            outputs: output_places(model, &outputs),
            states,
            turn: Turn::Fresh,
            input_memory,
            output_memory,
            options: ExecutionOptions {
                measure_timing: options.measure_timing,
                ..ExecutionOptions::default()
            },
            synchronous: ExecutionResult::of(ErrorStatus::None),
            driver_time: None,
            retries: 0,
            stand_in: Vec::new(),
        };
        stream.clear_states(&options.carried, model);
        Ok(stream)
    }

    /// Lets every frame begin with states of real 0.
    fn clear_states(&mut self, carried: &[Carried], model: &Model) {
        let states = operands(model, &model.main.input_indexes, "input").enumerate();
        for (index, operand) in
            states.filter(|(index, _)| carried.iter().any(|c| c.input == *index))
        {
            let Ok(operand) = operand else { continue };
            for frame in 0..self.frames.len() {
                carried::clear(self.input_of(frame, index), operand);
            }
        }
    }

    /// Goes on with the same model prepared again, over the same or another connection.
    ///
    /// Inputs keep their memory and what was written to it. Outputs are gone with the memory that
    /// the service before made for them, and so are carried states: they begin anew.
    ///
    /// # Errors
    /// The service refuses something, or is gone; the stream then is as it was.
    pub fn move_to(&mut self, prepared: &Arc<RemotePreparedModel>) -> Result<(), ClientError> {
        let output_memory = self.setup.output_memory(prepared, self.output_memory.len())?;
        self.way = self.setup.way(prepared)?;
        for request in self.frames.iter_mut().flat_map(|frame| &mut frame.requests) {
            request.pools[0] = RequestPool::Memory(Pool::clone(&output_memory));
        }
        self.output_memory = output_memory;
        self.turn = Turn::Fresh;
        Ok(())
    }

    /// Bytes of an input, to be written. With several frames this is the first one's.
    ///
    /// # Panics
    /// There is no such input.
    pub fn input(&mut self, index: usize) -> &mut [u8] {
        self.input_of(0, index)
    }

    /// Bytes of an input in one of the frames; of a carried one those that states begin with.
    ///
    /// # Panics
    /// There is no such frame or input.
    pub fn input_of(&mut self, frame: usize, index: usize) -> &mut [u8] {
        let range = self.frames[frame].inputs[index].clone();
        if !self.way.model().link().is_here() {
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
        self.frames.len()
    }

    /// How many inputs the model has.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.frames[0].inputs.len()
    }

    /// How many outputs the model has.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Runs on what was written to [`input`](Stream::input).
    ///
    /// # Errors
    /// [`ClientError::PeerDied`] as soon as it is known, [`ClientError::Timeout`],
    /// [`ClientError::Execution`] for an execution that failed.
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
                return Err(ClientError::Execution { status });
            };
            self.retries += 1;
            std::thread::sleep(pause);
        }
        if !self.states.is_empty() {
            self.turn = self.turn.next();
        }
        Ok(self.result())
    }

    fn run_once(&mut self, frame: usize, deadline: Deadline) -> Result<ErrorStatus, ClientError> {
        let request = &self.frames[frame].requests[self.turn as usize];
        self.driver_time = None;
        match &mut self.way {
            Way::Burst(burst) => {
                burst.run(request, &self.options, deadline)?;
                self.driver_time = burst.driver_time();
            }
            Way::Synchronous(model) => {
                let executed = model.execute(request, &self.options, deadline)?;
                self.driver_time = executed.driver_time;
                self.synchronous = executed.result;
            }
        }
        Ok(self.result().status)
    }

    /// How often a run was tried again because the service was short of something.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// Lets the next run begin with the states that the first one began with.
    pub fn reset_states(&mut self) {
        self.turn = Turn::Fresh;
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
        let shape = self.result().output_shapes.get(index);
        let shape: Option<Dimensions> = shape.map(|shape| shape.dimensions.clone());
        let state = self.states.offset(index, self.turn);
        let output = &mut self.outputs[index];
        let offset = state.map_or(output.offset, u64::from);
        let place = u64::from(output.length);
        let needed = shape.and_then(|dimensions| output.operand.ty.byte_length(&dimensions));
        let length = needed.unwrap_or(place).min(place);
        output.bytes.resize(usize::try_from(length).unwrap_or(0), 0);
        self.output_memory.read(offset, &mut output.bytes)?;
        Ok(&output.bytes)
    }

    /// The result of the last run.
    #[must_use]
    pub fn result(&self) -> &ExecutionResult {
        match &self.way {
            Way::Burst(burst) => burst.last_result(),
            Way::Synchronous(_) => &self.synchronous,
        }
    }

    /// How long the last run took in the driver.
    #[must_use]
    pub fn driver_time(&self) -> Option<Duration> {
        self.driver_time
    }

    /// Process id of the driver.
    #[must_use]
    pub fn driver_pid(&self) -> u32 {
        self.way.model().driver_pid()
    }

    /// Whether the service is still there, as far as is known.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let link = self.way.model().link();
        link.is_here() && !link.is_dead()
    }

    /// The burst below, where there is one.
    #[must_use]
    pub fn burst(&self) -> Option<&Burst> {
        match &self.way {
            Way::Burst(burst) => Some(burst),
            Way::Synchronous(_) => None,
        }
    }
}

impl Way {
    fn model(&self) -> &RemotePreparedModel {
        match self {
            Way::Burst(burst) => &burst.model,
            Way::Synchronous(model) => model,
        }
    }
}

impl Setup {
    fn new(options: &StreamOptions) -> Self {
        let mut burst = BurstOptions::default().waiting(options.wait);
        burst.queue_datums = options.queue_datums;
        let StreamOptions { path, service_outputs, retry, .. } = *options;
        Setup { path, burst, service_outputs, retry }
    }

    /// A burst, or the control socket where no burst can be had and the policy permits it.
    fn way(&self, prepared: &Arc<RemotePreparedModel>) -> Result<Way, ClientError> {
        if self.path == StreamPath::Synchronous {
            return Ok(Way::Synchronous(Arc::clone(prepared)));
        }
        let configure = || prepared.configure_burst(&self.burst);
        match self.retry.run(Deadline::never(), configure) {
            Ok(burst) => Ok(Way::Burst(Box::new(burst))),
            Err(error) if self.retry.falls_back(error.status()) => {
                tracing::info!(%error, "no burst; requests go over the control socket");
                Ok(Way::Synchronous(Arc::clone(prepared)))
            }
            Err(error) => Err(error),
        }
    }

    /// Memory for the outputs: the service's, or ours where it makes none.
    fn output_memory(
        &self,
        prepared: &RemotePreparedModel,
        bytes: u64,
    ) -> Result<Pool, ClientError> {
        let bytes = bytes.max(1); // an empty memory cannot be made
        if self.service_outputs {
            match prepared.allocate_outputs(bytes) {
                Err(ClientError::Refused { status, detail }) => {
                    tracing::debug!(%status, detail, "the service makes no memory for outputs");
                }
                other => return other,
            }
        }
        let length = usize::try_from(bytes).map_err(|_| ClientError::PoolTooLong { bytes })?;
        Ok(Arc::new(ShmMemory::create(length)?))
    }
}

/// Where things lie in a pool.
struct Places {
    /// Offset and length of each thing of the first frame.
    first: Vec<(u32, u32)>,
    /// From one frame to the next.
    stride: u32,
    bytes: u64,
}

impl Places {
    fn of_frame(&self, frame: usize) -> impl Iterator<Item = (u32, u32)> {
        // Within the pool, which `places` found addressable with 32 bits.
        let start = self.stride.saturating_mul(u32::try_from(frame).unwrap_or(u32::MAX));
        self.first.iter().map(move |(at, length)| (start.saturating_add(*at), *length))
    }
}

/// Lays things out one after the other, `frames` times.
fn places(lengths: &[u32], frames: usize) -> Result<Places, ClientError> {
    let mut first = Vec::with_capacity(lengths.len());
    let mut end = 0_u64;
    for length in lengths {
        let at = u32::try_from(end).map_err(|_| ClientError::PoolTooLong { bytes: end })?;
        first.push((at, *length));
        end = (end + u64::from(*length)).next_multiple_of(ALIGNMENT);
    }
    let bytes = end.saturating_mul(frames as u64);
    match (u32::try_from(end), u32::try_from(bytes)) {
        (Ok(stride), Ok(_)) => Ok(Places { first, stride, bytes }),
        _ => Err(ClientError::PoolTooLong { bytes }),
    }
}

/// Bytes of an operand, where its dimensions are known.
fn byte_length(operand: &Operand) -> Option<u32> {
    let unknown_rank = operand.dimensions.is_empty() && operand.ty.is_tensor();
    if unknown_rank || operand.dimensions.contains(&0) {
        return None;
    }
    u32::try_from(operand.ty.byte_length(&operand.dimensions)?).ok()
}

fn operands<'a>(
    model: &'a Model,
    indexes: &'a [u32],
    what: &'static str,
) -> impl Iterator<Item = Result<&'a Operand, ClientError>> {
    indexes.iter().enumerate().map(move |(index, operand)| {
        let unknown = ClientError::UnknownSize { what, index };
        model.main.operands.get(*operand as usize).ok_or(unknown)
    })
}

fn input_lengths(model: &Model) -> Result<Vec<u32>, ClientError> {
    operands(model, &model.main.input_indexes, "input")
        .enumerate()
        .map(|(index, operand)| {
            byte_length(operand?).ok_or(ClientError::UnknownSize { what: "input", index })
        })
        .collect()
}

fn output_lengths(model: &Model, unknown: Option<u32>) -> Result<Vec<u32>, ClientError> {
    operands(model, &model.main.output_indexes, "output")
        .enumerate()
        .map(|(index, operand)| {
            let length = byte_length(operand?).or(unknown);
            length.ok_or(ClientError::UnknownSize { what: "output", index })
        })
        .collect()
}

fn output_places(model: &Model, places: &Places) -> Vec<Output> {
    operands(model, &model.main.output_indexes, "output")
        .flatten()
        .zip(&places.first)
        .map(|(operand, (offset, length))| Output {
            offset: u64::from(*offset),
            length: *length,
            operand: operand.clone(),
            bytes: Vec::new(),
        })
        .collect()
}

/// Memory that this process alone writes, and the same as a pool for requests.
fn input_memory(bytes: u64) -> Result<(Option<SoleWriter>, Option<Pool>), ClientError> {
    if bytes == 0 {
        return Ok((None, None)); // a model without inputs
    }
    let length = usize::try_from(bytes).map_err(|_| ClientError::PoolTooLong { bytes })?;
    let writer = SoleWriter::create("burst-input", length)?;
    let descriptor = writer
        .as_fd()
        .try_clone_to_owned()
        .map_err(|_| ClientError::System { call: "dup", errno: rustix::io::Errno::MFILE })?;
    let pool = ShmMemory::open(descriptor, bytes)?;
    Ok((Some(writer), Some(Arc::new(pool))))
}

fn argument(pool_index: u32, (offset, length): (u32, u32)) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index, offset, length },
        dimensions: Dimensions::new(),
    }
}

fn range(at: u32, length: u32) -> Range<usize> {
    let at = at as usize;
    at..at + length as usize
}
