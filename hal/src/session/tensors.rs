//! The pools of a session, and every request that it can make of them.

use super::allocator::PoolAllocator;
use super::error::SessionError;
use super::layout::SessionLayout;
use super::state::StatePhase;
use crate::{
    ExecutionResult, MemoryError, OutputShape, Pool, Request, RequestArgument, RequestPool,
};

/// The pool of the outputs in each request.
const OUTPUTS: u32 = 0;
/// The pool of the inputs, where the model has any.
const INPUTS: u32 = 1;

/// Inputs, outputs and states of a model in their pools, with the requests that name them.
///
/// A request for each frame and each phase of the states is made in advance, so that nothing is
/// allocated or copied from run to run.
#[derive(Debug)]
pub struct SessionTensors {
    layout: SessionLayout,
    /// Of the first frame one for each phase of the states, then of the second one, and so on.
    requests: Vec<Request>,
    phase: StatePhase,
    inputs: Option<Pool>,
    outputs: Pool,
}

impl SessionTensors {
    /// Tensors in these pools; `inputs` is left out where the model has none. The states' initial
    /// values are in `inputs` already: see [`SessionLayout::write_initial_states`].
    #[must_use]
    pub fn new(layout: SessionLayout, inputs: Option<Pool>, outputs: Pool) -> Self {
        let requests = requests(&layout, inputs.as_ref(), &outputs);
        SessionTensors { layout, requests, phase: StatePhase::Initial, inputs, outputs }
    }

    /// Tensors in new pools, with states of real 0.
    ///
    /// # Errors
    /// There is no memory.
    pub fn allocate(
        layout: SessionLayout,
        allocator: &dyn PoolAllocator,
    ) -> Result<Self, SessionError> {
        let mut inputs = None;
        if layout.input_bytes() > 0 {
            let pool = allocate(allocator, layout.input_bytes())?;
            if !layout.states().is_empty() {
                let mut bytes = vec![0; usize_of(layout.input_bytes())];
                layout.write_initial_states(&mut bytes);
                pool.write(0, &bytes)?;
            }
            inputs = Some(pool);
        }
        let outputs = allocate(allocator, layout.output_bytes())?;
        Ok(SessionTensors::new(layout, inputs, outputs))
    }

    /// Where everything lies.
    #[must_use]
    pub fn layout(&self) -> &SessionLayout {
        &self.layout
    }

    /// The pool of the outputs.
    #[must_use]
    pub fn outputs(&self) -> &Pool {
        &self.outputs
    }

    /// The pools that its requests name.
    pub fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.inputs.iter().chain([&self.outputs])
    }

    /// The request that runs a frame with the states as they are now.
    ///
    /// # Panics
    /// There is no such frame.
    #[must_use]
    pub fn request(&self, frame: usize) -> &Request {
        &self.requests[frame * self.layout.phases().len() + self.phase as usize]
    }

    /// To be called after [`SessionTensors::request`] was run with success: the next run begins with
    /// the states that this one wrote.
    pub fn advance_states(&mut self) {
        if !self.layout.states().is_empty() {
            self.phase = self.phase.next();
        }
    }

    /// Lets the next run begin with the states that the first one began with.
    pub fn reset_states(&mut self) {
        self.phase = StatePhase::Initial;
    }

    /// Writes an input of a frame; of a state the value that it begins with.
    ///
    /// # Errors
    /// The model has no such input, or one of another size; the pool cannot be written.
    ///
    /// # Panics
    /// There is no such frame.
    pub fn write_input(
        &self,
        frame: usize,
        index: usize,
        bytes: &[u8],
    ) -> Result<(), SessionError> {
        let known = index < self.layout.inputs().len();
        let slot = known.then(|| self.layout.input_slot(frame, index));
        let wanted = slot.map_or(0, |slot| slot.length as usize);
        match slot.zip(self.inputs.as_ref()) {
            Some((slot, pool)) if bytes.len() == wanted => {
                Ok(pool.write(slot.offset.into(), bytes)?)
            }
            _ => Err(SessionError::InputSize { index, found: bytes.len(), wanted }),
        }
    }

    /// Copies the value of an output out, after a run that came to `result`. `bytes` gets the
    /// length of [`SessionLayout::output_length`].
    ///
    /// # Errors
    /// The pool cannot be read.
    ///
    /// # Panics
    /// There is no such output.
    pub fn read_output(
        &self,
        index: usize,
        result: &ExecutionResult,
        bytes: &mut Vec<u8>,
    ) -> Result<(), MemoryError> {
        let slot = self.layout.output_slot(index, self.phase);
        let length = self.layout.output_length(index, result.output_shapes.get(index));
        bytes.resize(length as usize, 0);
        self.outputs.read(slot.offset.into(), bytes)
    }

    /// Copies a state out as it is now; of several frames the first one's.
    ///
    /// # Errors
    /// The pool cannot be read.
    ///
    /// # Panics
    /// There is no such state.
    pub fn read_state(&self, index: usize, bytes: &mut Vec<u8>) -> Result<(), MemoryError> {
        let state = self.layout.states()[index];
        let (pool, slot) = match (self.phase, &self.inputs) {
            (StatePhase::Initial, Some(inputs)) => (inputs, self.layout.input_slot(0, state.input)),
            (phase, _) => (&self.outputs, self.layout.output_slot(state.output, phase)),
        };
        bytes.resize(slot.length as usize, 0);
        pool.read(slot.offset.into(), bytes)
    }

    /// Replaces the pool of the outputs by another one, of the same length or longer. The values in
    /// the old pool are lost, and the states begin again with their initial values.
    pub fn replace_outputs(&mut self, outputs: Pool) {
        for request in &mut self.requests {
            request.pools[OUTPUTS as usize] = RequestPool::Memory(Pool::clone(&outputs));
        }
        self.outputs = outputs;
        self.phase = StatePhase::Initial;
    }

    /// Makes room for outputs of these shapes, as reported by an execution that had too little;
    /// `false` where it asked for no more than there is. The states stay.
    ///
    /// # Errors
    /// More room than there may be, or no memory.
    pub fn grow_outputs(
        &mut self,
        shapes: &[OutputShape],
        allocator: &dyn PoolAllocator,
    ) -> Result<bool, SessionError> {
        let Some(layout) = self.layout.grown(shapes)? else { return Ok(false) };
        let outputs = allocate(allocator, layout.output_bytes())?;
        if self.phase != StatePhase::Initial {
            let mut value = Vec::new();
            for (index, state) in self.layout.states().iter().enumerate() {
                self.read_state(index, &mut value)?;
                let slot = layout.output_slot(state.output, self.phase);
                outputs.write(slot.offset.into(), &value)?;
            }
        }
        self.requests = requests(&layout, self.inputs.as_ref(), &outputs);
        (self.layout, self.outputs) = (layout, outputs);
        Ok(true)
    }
}

/// A request for each frame and each phase of the states.
fn requests(layout: &SessionLayout, inputs: Option<&Pool>, outputs: &Pool) -> Vec<Request> {
    let pools: Vec<RequestPool> = [Some(outputs), inputs]
        .into_iter()
        .flatten()
        .map(|pool| RequestPool::Memory(Pool::clone(pool)))
        .collect();
    let request = |frame, phase: StatePhase| Request {
        inputs: (0..layout.inputs().len()).map(|at| input(layout, frame, at, phase)).collect(),
        outputs: (0..layout.outputs().len())
            .map(|at| layout.output_slot(at, phase.next()).argument(OUTPUTS))
            .collect(),
        pools: pools.clone(),
    };
    let frames = 0..layout.frames();
    frames
        .flat_map(|frame| layout.phases().iter().map(move |phase| (frame, *phase)))
        .map(|(frame, phase)| request(frame, phase))
        .collect()
}

/// The location of an input in a request: its own memory or, for a state, the slot that holds
/// its current value.
fn input(layout: &SessionLayout, frame: usize, at: usize, phase: StatePhase) -> RequestArgument {
    let state = layout.states().iter().find(|state| state.input == at);
    match state.filter(|_| phase != StatePhase::Initial) {
        Some(state) => layout.output_slot(state.output, phase).argument(OUTPUTS),
        None => layout.input_slot(frame, at).argument(INPUTS),
    }
}

/// A pool of at least one byte, as shared memory cannot be empty.
fn allocate(allocator: &dyn PoolAllocator, bytes: u64) -> Result<Pool, SessionError> {
    let made = allocator.allocate(usize_of(bytes.max(1)));
    made.map_err(|cause| SessionError::Memory { bytes, cause })
}

/// Bytes of a pool, which a layout keeps within 32 bits.
fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
