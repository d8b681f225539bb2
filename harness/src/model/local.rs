//! A driver in this process: what the work costs without any transport.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_client::ShmMemory;
use burst_hal::{
    Burst, DataLocation, Device, Dimensions, ErrorStatus, ExecutionOptions, ExecutionResult,
    HeapMemory, Memory, PrepareOptions, Request, RequestArgument, RequestPool,
};
use burst_tflite::TensorInfo;

use super::subject::{Label, Lane, Length, Runs, Turn, nanos, take_turn};
use super::workload::Subject;
use crate::engine::times::Times;
use crate::error::HarnessError;

/// Bytes set aside for an output whose shape only an execution shows.
pub(super) const UNKNOWN_OUTPUT_BYTES: u32 = 64 << 10;

/// Inputs and outputs begin at multiples of this.
const ALIGNMENT: usize = 64;

/// Most copies of the inputs that are timed in one turn.
const COPIES_MAX: u32 = 50;

/// A request for a subject, with the memory it names: pool 0 for the inputs, pool 1 for the
/// outputs.
#[derive(Debug)]
pub struct Memories {
    /// The request.
    pub request: Request,
    inputs: Arc<HeapMemory>,
    input_places: Vec<Range<usize>>,
    outputs: Arc<HeapMemory>,
    output_places: Vec<Range<usize>>,
}

impl Memories {
    /// Memory in this process; the inputs are there already.
    ///
    /// # Errors
    /// Pools that are too long for 32-bit offsets.
    pub fn new(subject: &Subject) -> Result<Memories, HarnessError> {
        let length = |tensor: &TensorInfo| {
            let known = tensor.ty.byte_length(&tensor.dims).filter(|bytes| *bytes > 0);
            known.unwrap_or(u64::from(UNKNOWN_OUTPUT_BYTES))
        };
        let input_places = places(subject.inputs.iter().map(|input| input.len() as u64))?;
        let output_places = places(subject.imported.outputs.iter().map(length))?;
        let pool = |places: &[Range<usize>]| {
            Arc::new(HeapMemory::new(vec![0; places.last().map_or(1, |last| last.end)]))
        };
        let (inputs, outputs) = (pool(&input_places), pool(&output_places));
        let request = Request {
            inputs: input_places.iter().map(|place| argument(0, place)).collect(),
            outputs: output_places.iter().map(|place| argument(1, place)).collect(),
            pools: vec![RequestPool::Memory(inputs.clone()), RequestPool::Memory(outputs.clone())],
        };
        let memories = Memories { request, inputs, input_places, outputs, output_places };
        memories.write(&*memories.inputs, subject)?;
        Ok(memories)
    }

    fn write(&self, pool: &dyn Memory, subject: &Subject) -> Result<(), HarnessError> {
        for (place, bytes) in self.input_places.iter().zip(&subject.inputs) {
            pool.write(place.start as u64, bytes).map_err(HarnessError::peer)?;
        }
        Ok(())
    }

    /// Output `index`, as long as this shape needs.
    fn output(
        &self,
        subject: &Subject,
        index: usize,
        shape: Option<&Dimensions>,
    ) -> Result<Vec<u8>, HarnessError> {
        let place = self.output_places[index].clone();
        let needed = shape.and_then(|dims| subject.imported.outputs[index].ty.byte_length(dims));
        let needed = needed.and_then(|bytes| usize::try_from(bytes).ok());
        let mut bytes = vec![0; needed.unwrap_or(place.len()).min(place.len())];
        self.outputs.read(place.start as u64, &mut bytes).map_err(HarnessError::peer)?;
        Ok(bytes)
    }
}

fn places(lengths: impl Iterator<Item = u64>) -> Result<Vec<Range<usize>>, HarnessError> {
    let mut end = 0_usize;
    let mut places = Vec::new();
    for length in lengths {
        let place = usize::try_from(length).ok().and_then(|length| {
            let start = end.next_multiple_of(ALIGNMENT);
            Some(start..start.checked_add(length).filter(|end| u32::try_from(*end).is_ok())?)
        });
        let place = place.ok_or_else(|| {
            HarnessError::peer(format!("a tensor of {length} bytes is out of reach of 32 bits"))
        })?;
        end = place.end;
        places.push(place);
    }
    Ok(places)
}

fn argument(pool_index: u32, place: &Range<usize>) -> RequestArgument {
    let bits = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX); // `places` checked
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index, offset: bits(place.start), length: bits(place.len()) },
        dimensions: Dimensions::new(),
    }
}

/// A device in this process.
pub struct InProcess<'s> {
    label: Label,
    device: Arc<dyn Device>,
    subject: &'s Subject,
    memories: Memories,
    /// The inputs where a client's would lie.
    shared: Option<ShmMemory>,
}

impl<'s> InProcess<'s> {
    /// A lane for this device.
    ///
    /// # Errors
    /// No memory for inputs and outputs.
    pub fn new(
        label: Label,
        device: Arc<dyn Device>,
        subject: &'s Subject,
    ) -> Result<Self, HarnessError> {
        Ok(InProcess { label, device, subject, memories: Memories::new(subject)?, shared: None })
    }

    /// The same lane, which also times what a service does first with a request: copying the bytes
    /// of the inputs out of the client's memory.
    ///
    /// # Errors
    /// The system has no shared memory left.
    pub fn with_copies(mut self) -> Result<Self, HarnessError> {
        let bytes = self.memories.inputs.len();
        let bytes = usize::try_from(bytes).map_err(HarnessError::peer)?;
        self.shared = Some(ShmMemory::create(bytes).map_err(HarnessError::peer)?);
        Ok(self)
    }

    /// Copies between executions, when the caches hold what an execution leaves there.
    fn copies(&self, runs: &mut Local<'_>, count: u32) -> Result<Times, HarnessError> {
        let Some(shared) = &self.shared else { return Ok(Times::default()) };
        let mut targets: Vec<Vec<u8>> =
            self.subject.inputs.iter().map(|input| vec![0; input.len()]).collect();
        let mut times = Vec::new();
        for _ in 0..count {
            runs.run()?;
            self.memories.write(shared, self.subject)?;
            let started = Instant::now();
            for (place, target) in self.memories.input_places.iter().zip(&mut targets) {
                shared.read(place.start as u64, target).map_err(HarnessError::peer)?;
            }
            times.push(nanos(started.elapsed()));
        }
        Ok(Times::new(times))
    }
}

impl Lane for InProcess<'_> {
    fn label(&self) -> &Label {
        &self.label
    }

    fn turn(&mut self, length: Length) -> Result<Turn, HarnessError> {
        let started = Instant::now();
        let model = self
            .device
            .prepare_model(&self.subject.imported.model, &PrepareOptions::default())
            .map_err(HarnessError::peer)?;
        let burst = model.open_burst().map_err(HarnessError::peer)?;
        let prepare = started.elapsed();
        let result = ExecutionResult::of(ErrorStatus::None);
        let mut runs = Local { burst, result, subject: self.subject, memories: &self.memories };
        let mut turn = take_turn(&mut runs, prepare, length)?;
        turn.copies = self.copies(&mut runs, length.executions.min(COPIES_MAX))?;
        Ok(turn)
    }
}

struct Local<'a> {
    burst: Box<dyn Burst>,
    result: ExecutionResult,
    subject: &'a Subject,
    memories: &'a Memories,
}

impl Runs for Local<'_> {
    fn fill(&mut self) -> Result<(), HarnessError> {
        self.memories.write(&*self.memories.inputs, self.subject)
    }

    fn run(&mut self) -> Result<Option<Duration>, HarnessError> {
        let options = ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() };
        self.burst.execute(&self.memories.request, &options, &mut self.result);
        match self.result.status {
            ErrorStatus::None => Ok(None),
            status => Err(HarnessError::peer(format!("an execution ended with {status}"))),
        }
    }

    fn outputs(&mut self) -> Result<Vec<Vec<u8>>, HarnessError> {
        let shape =
            |index: usize| self.result.output_shapes.get(index).map(|shape| &shape.dimensions);
        (0..self.subject.given_outputs())
            .map(|index| self.memories.output(self.subject, index, shape(index)))
            .collect()
    }
}
