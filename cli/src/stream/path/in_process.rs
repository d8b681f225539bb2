//! The CPU device in this process: what the same work costs without any transport.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use burst_hal::{
    Burst, DataLocation, Device, Dimensions, ErrorStatus, ExecutionOptions, ExecutionResult,
    HeapMemory, Memory, OperandType, PrepareOptions, Request, RequestArgument, RequestPool,
    TimePoint,
};
use burst_tflite::{Imported, TensorInfo};

use crate::threads::Threads;

/// A model in this process.
pub(crate) struct InProcess {
    burst: Box<dyn Burst>,
    /// The only request, or one for each turn of the states.
    requests: Vec<Request>,
    turn: usize,
    result: ExecutionResult,
    input: Vec<u8>,
    input_pool: Arc<HeapMemory>,
    /// The bytes of an output, as last asked for.
    output: Vec<u8>,
    output_pool: Arc<HeapMemory>,
}

impl InProcess {
    /// Prepares a model; its first input is the caller's, the others are states.
    pub(crate) fn new(imported: &Imported, threads: Threads) -> Result<Self> {
        let model = threads
            .device()
            .prepare_model(&imported.model, &PrepareOptions::default())
            .context("the model cannot be prepared")?;
        let burst = model.open_burst().context("no burst on the prepared model")?;
        let inputs = layout(&imported.inputs)?;
        let mut outputs = layout(&imported.outputs)?;
        let first = Request {
            inputs: inputs.arguments(INPUTS),
            outputs: outputs.arguments(OUTPUTS),
            pools: Vec::new(),
        };
        let mut requests = turns(imported, first, &mut outputs)?;
        let input_pool = Arc::new(HeapMemory::new(beginning(imported, &inputs)));
        let output_pool = Arc::new(HeapMemory::new(vec![0; outputs.bytes]));
        for request in &mut requests {
            request.pools = vec![
                RequestPool::Memory(input_pool.clone()),
                RequestPool::Memory(output_pool.clone()),
            ];
        }
        Ok(InProcess {
            burst,
            requests,
            turn: 0,
            result: ExecutionResult::of(ErrorStatus::None),
            input: vec![0; inputs.lengths.first().copied().unwrap_or(0)],
            input_pool,
            output: Vec::new(),
            output_pool,
        })
    }

    /// The request whose outputs are the last ones.
    fn last(&self) -> &Request {
        // The first turn and the third write the same places.
        let at = match (self.requests.len(), self.turn) {
            (1, _) | (_, 0) => 0,
            (_, 1) => 2,
            _ => 1,
        };
        &self.requests[at]
    }
}

/// The pool of the inputs.
const INPUTS: u32 = 0;
/// The pool of the outputs and states.
const OUTPUTS: u32 = 1;

/// The memory of all inputs, with states that stand for real 0.
fn beginning(imported: &Imported, inputs: &Layout) -> Vec<u8> {
    let mut bytes = vec![0; inputs.bytes];
    for pair in &imported.states {
        let state = &imported.inputs[pair.input_index];
        let zero = state.zero_point.to_le_bytes()[0];
        if matches!(state.ty, OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned)
        {
            let offset = inputs.offsets[pair.input_index] as usize;
            bytes[offset..offset + inputs.lengths[pair.input_index]].fill(zero);
        }
    }
    bytes
}

/// With states three requests: from where they begin to the first places, from there to the second,
/// and back.
fn turns(imported: &Imported, first: Request, outputs: &mut Layout) -> Result<Vec<Request>> {
    let mut requests = vec![first];
    if imported.states.is_empty() {
        return Ok(requests);
    }
    requests.extend([requests[0].clone(), requests[0].clone()]);
    for pair in &imported.states {
        let place = requests[0].outputs[pair.output_index].clone();
        let length = place.location.length as usize;
        let second = outputs.add(length)?;
        let at = |offset| RequestArgument {
            location: DataLocation { offset, ..place.location },
            ..place.clone()
        };
        requests[1].inputs[pair.input_index] = place.clone();
        requests[1].outputs[pair.output_index] = at(second);
        requests[2].inputs[pair.input_index] = at(second);
    }
    Ok(requests)
}

impl super::Path for InProcess {
    fn input(&mut self) -> &mut [u8] {
        &mut self.input
    }

    fn execute(&mut self, deadline: Duration) -> Result<(ErrorStatus, Option<Duration>)> {
        self.input_pool.write(0, &self.input)?;
        let options = ExecutionOptions {
            measure_timing: true,
            deadline: Some(TimePoint::after(deadline)),
            loop_timeout: None,
        };
        self.burst.execute(&self.requests[self.turn], &options, &mut self.result);
        if self.result.status == ErrorStatus::None && self.requests.len() > 1 {
            self.turn = if self.turn == 1 { 2 } else { 1 };
        }
        let micros = self.result.timing.time_in_driver_us;
        let driver = (micros != u64::MAX).then(|| Duration::from_micros(micros));
        Ok((self.result.status, driver))
    }

    fn reset_states(&mut self) {
        self.turn = 0;
    }

    fn output(&mut self, index: usize) -> Result<&[u8]> {
        let location = self.last().outputs[index].location;
        self.output.resize(location.length as usize, 0);
        self.output_pool.read(location.offset.into(), &mut self.output)?;
        Ok(&self.output)
    }

    fn driver_pid(&self) -> u32 {
        std::process::id()
    }
}

/// Tensors one behind the other in one pool.
#[derive(Default)]
struct Layout {
    offsets: Vec<u32>,
    lengths: Vec<usize>,
    bytes: usize,
}

/// Where tensors start: on cache lines.
const ALIGNMENT: usize = 64;

fn layout(tensors: &[TensorInfo]) -> Result<Layout> {
    let mut layout = Layout::default();
    for tensor in tensors {
        let length = tensor
            .ty
            .byte_length(&tensor.dims)
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length > 0)
            .with_context(|| {
                format!("the tensor {} has the open shape {:?}", tensor.name, tensor.dims)
            })?;
        layout.add(length)?;
    }
    Ok(layout)
}

impl Layout {
    /// Makes room behind all others; where that is.
    fn add(&mut self, length: usize) -> Result<u32> {
        let offset = u32::try_from(self.bytes).context("tensors too large for one pool")?;
        u32::try_from(length).context("a tensor too large for a pool")?;
        self.offsets.push(offset);
        self.lengths.push(length);
        self.bytes = (self.bytes + length).next_multiple_of(ALIGNMENT);
        Ok(offset)
    }

    fn arguments(&self, pool_index: u32) -> Vec<RequestArgument> {
        let argument = |(offset, length): (&u32, &usize)| RequestArgument {
            has_no_value: false,
            location: DataLocation {
                pool_index,
                offset: *offset,
                length: u32::try_from(*length).unwrap_or(u32::MAX),
            },
            dimensions: Dimensions::new(),
        };
        self.offsets.iter().zip(&self.lengths).map(argument).collect()
    }
}
