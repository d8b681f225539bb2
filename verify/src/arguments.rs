//! The request of a test and the memory behind it, laid out as the original suites lay it out.

use std::sync::Arc;

use burst_hal::session::PoolAllocator;
use burst_hal::{
    Buffer, DataLocation, Dimensions, MemoryError, Pool, Request, RequestArgument, RequestPool,
};

use crate::model::{ALIGNMENT, Built, location, pad};

/// What an output's memory is filled with before an execution.
const UNTOUCHED: u8 = 0xA5;

/// A request with the memory behind it, which serves one execution after the other.
pub(crate) struct Arguments {
    request: Request,
    outputs: Pool,
    /// Length of the output pool.
    size: usize,
    /// Where each output's own memory lies, also when it is in a buffer instead.
    places: Vec<DataLocation>,
    /// Buffers of inputs, which keep their values.
    inputs_in_buffers: Vec<Arc<dyn Buffer>>,
    /// Buffers of outputs, by position.
    outputs_in_buffers: Vec<Option<Held>>,
}

/// A buffer of an output, and memory to copy its value to.
pub(crate) struct Held {
    pub(crate) buffer: Arc<dyn Buffer>,
    pub(crate) copy: Pool,
}

impl Arguments {
    /// Inputs one behind the other in pool 0, room for the outputs in pool 1.
    pub(crate) fn new(built: &Built, memory: &dyn PoolAllocator) -> Result<Self, String> {
        let mut bytes = Vec::new();
        let inputs = built.inputs.iter().map(|input| append_input(input.as_deref(), &mut bytes));
        let inputs = inputs.collect();
        bytes.resize(bytes.len().max(1), 0);
        let mut size = 0;
        let outputs = built.outputs.iter().map(|want| {
            let length = want.len().max(1);
            let argument = argument(1, size, length);
            size = (size + length).next_multiple_of(ALIGNMENT);
            argument
        });
        let outputs: Vec<RequestArgument> = outputs.collect();
        let size = size.max(1);
        let make =
            |bytes| memory.allocate(bytes).map_err(|failure| format!("no memory: {failure}"));
        let input_pool = make(bytes.len())?;
        input_pool.write(0, &bytes).map_err(lost)?;
        let output_pool = make(size)?;
        let pools =
            vec![RequestPool::Memory(input_pool), RequestPool::Memory(Pool::clone(&output_pool))];
        let places: Vec<_> = outputs.iter().map(|argument| argument.location).collect();
        Ok(Arguments {
            outputs_in_buffers: places.iter().map(|_| None).collect(),
            places,
            request: Request { inputs, outputs, pools },
            outputs: output_pool,
            size,
            inputs_in_buffers: Vec::new(),
        })
    }

    /// From now on an input is what this buffer holds.
    pub(crate) fn put_input(&mut self, position: usize, buffer: Arc<dyn Buffer>) {
        self.request.inputs[position] = self.in_buffer(&*buffer);
        self.inputs_in_buffers.push(buffer);
    }

    /// From now on an output goes into this buffer.
    pub(crate) fn put_output(&mut self, position: usize, held: Held) {
        self.request.outputs[position] = self.in_buffer(&*held.buffer);
        self.outputs_in_buffers[position] = Some(held);
    }

    /// The argument that is all of a buffer.
    fn in_buffer(&mut self, buffer: &dyn Buffer) -> RequestArgument {
        let argument = argument(0, 0, 0);
        let pool_index = u32::try_from(self.request.pools.len()).unwrap_or(u32::MAX);
        self.request.pools.push(RequestPool::Token(buffer.token()));
        RequestArgument { location: DataLocation { pool_index, ..argument.location }, ..argument }
    }

    /// How many arguments are in buffers.
    pub(crate) fn buffers(&self) -> usize {
        self.inputs_in_buffers.len() + self.outputs_in_buffers.iter().flatten().count()
    }

    /// Whether a buffer that is in use has this token.
    pub(crate) fn has_token(&self, token: u32) -> bool {
        let has = |pool: &RequestPool| matches!(pool, RequestPool::Token(one) if *one == token);
        self.request.pools.iter().any(has)
    }

    /// The request, with output 0 `short` bytes shorter than it needs to be, and memory that no
    /// execution has written yet.
    pub(crate) fn request(&self, short: u32) -> Result<Request, String> {
        self.outputs.write(0, &vec![UNTOUCHED; self.size]).map_err(lost)?;
        let mut request = self.request.clone();
        if let Some(first) = request.outputs.first_mut() {
            first.location.length = first.location.length.saturating_sub(short);
        }
        Ok(request)
    }

    /// The bytes of output `index` after an execution.
    pub(crate) fn output(&self, index: usize) -> Result<Vec<u8>, String> {
        let location = self.places[index];
        let mut bytes = vec![0; location.length as usize];
        if let Some(Held { buffer, copy }) = &self.outputs_in_buffers[index] {
            let copied = buffer.copy_to(copy);
            copied.map_err(|failure| format!("copy_to of output {index}: {failure}"))?;
            copy.read(0, &mut bytes).map_err(lost)?;
            return Ok(bytes);
        }
        self.outputs.read(location.offset.into(), &mut bytes).map_err(lost)?;
        Ok(bytes)
    }

    /// Fails where an execution wrote to memory that belongs to none of the outputs: between
    /// them, and behind an output that is `short` bytes too short. An output without elements
    /// owns nothing of its memory.
    pub(crate) fn check_untouched(&self, built: &Built, short: u32) -> Result<(), String> {
        let mut bytes = vec![0; self.size];
        self.outputs.read(0, &mut bytes).map_err(lost)?;
        for (index, (place, want)) in self.places.iter().zip(&built.outputs).enumerate() {
            if self.outputs_in_buffers[index].is_some() {
                continue; // its place in memory is not used
            }
            let short = if index == 0 { short as usize } else { 0 };
            let start = place.offset as usize;
            bytes[start..start + want.len().saturating_sub(short)].fill(UNTOUCHED);
        }
        match bytes.iter().position(|byte| *byte != UNTOUCHED) {
            Some(at) => {
                Err(format!("byte {at} of the outputs' memory is no output's, but written"))
            }
            None => Ok(()),
        }
    }
}

impl Arguments {
    /// Fails where anything was written to the memory of the outputs.
    pub(crate) fn check_unwritten(&self, when: &str) -> Result<(), String> {
        let mut bytes = vec![0; self.size];
        self.outputs.read(0, &mut bytes).map_err(lost)?;
        match bytes.iter().all(|byte| *byte == UNTOUCHED) {
            true => Ok(()),
            false => Err(format!("outputs are written {when}")),
        }
    }
}

fn append_input(value: Option<&[u8]>, bytes: &mut Vec<u8>) -> RequestArgument {
    let Some(value) = value else {
        return RequestArgument { has_no_value: true, ..RequestArgument::default() };
    };
    let argument = argument(0, bytes.len(), value.len());
    bytes.extend_from_slice(value);
    pad(bytes);
    argument
}

fn argument(pool_index: u32, offset: usize, length: usize) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: location(pool_index, offset, length),
        dimensions: Dimensions::new(),
    }
}

fn lost(error: MemoryError) -> String {
    format!("the request's memory: {error}")
}
