//! The values of one graph during an execution, and the execution of one step.

use std::ops::Range;
use std::sync::Arc;

use burst_hal::{Dimensions, MemoryCharge};
use smallvec::SmallVec;

use crate::OpError;
use crate::aligned::AlignedBytes;
use crate::arena::Split;
use crate::op::{Inferred, Run};
use crate::plan::{Allocation, GraphPlan, Step, check_declared, spilled};
use crate::scratch::Scratch;
use crate::stop::Stop;
use crate::tensor::{Arg, Args, Storage, TensorMut, TensorRef, Value};
use crate::threads::Parallelism;

/// Working memory of one graph for one execution at a time; used again by the next one.
#[derive(Debug, Default)]
pub(crate) struct GraphMemory {
    arena: AlignedBytes,
    /// Memory of operands whose shape is not planned, by operand.
    dynamic: Vec<AlignedBytes>,
    /// The shape of every operand in this execution.
    dims: Vec<Dimensions>,
    /// Where each operand's value is in this execution.
    places: Vec<Place>,
}

/// Where an operand's value is in one execution.
#[derive(Debug, Default)]
enum Place {
    /// Where the plan says.
    #[default]
    Planned,
    /// Nowhere: a graph input that is left out.
    Omitted,
    /// In a buffer: a graph input, which others may read, too.
    Shared(Arc<AlignedBytes>),
    /// In memory of a buffer, which lies in `dynamic` meanwhile: a graph output.
    Lent,
}

/// Bytes that the lists of a graph's working memory take.
fn list_bytes(plan: &GraphPlan) -> usize {
    let entry = size_of::<AlignedBytes>() + size_of::<Dimensions>() + size_of::<Place>();
    let lists = plan.operands.iter().filter_map(|operand| operand.dims.as_ref()).map(spilled);
    plan.operands.len() * entry + lists.sum::<usize>()
}

impl GraphMemory {
    /// Working memory for executions of `plan`, charged to the account of `charge`, which pays for its
    /// lists.
    ///
    /// # Errors
    /// [`OpError::Refused`] when the account does not suffice, [`OpError::Range`] when the system has
    /// no such memory.
    pub(crate) fn new(plan: &GraphPlan, charge: &mut MemoryCharge) -> Result<Self, OpError> {
        charge.grow(list_bytes(plan) as u64).map_err(OpError::refused)?;
        let dynamic = plan.operands.iter().map(|_| AlignedBytes::paid_by(charge.same_account()));
        Ok(GraphMemory {
            arena: AlignedBytes::zeroed(plan.arena_bytes, charge.same_account())?,
            dynamic: dynamic.collect(),
            dims: plan
                .operands
                .iter()
                .map(|operand| operand.dims.clone().unwrap_or_default())
                .collect(),
            places: plan.operands.iter().map(|_| Place::default()).collect(),
        })
    }

    /// Marks graph input `position` as left out.
    pub(crate) fn omit_input(&mut self, plan: &GraphPlan, position: usize) {
        self.places[plan.inputs[position]] = Place::Omitted;
    }

    /// Has graph input `position` read where its value lies, which has this shape.
    pub(crate) fn lend_input(
        &mut self,
        plan: &GraphPlan,
        position: usize,
        dims: &[u32],
        value: Arc<AlignedBytes>,
    ) -> Result<(), OpError> {
        let operand = plan.inputs[position];
        let planned = &plan.operands[operand];
        match &planned.allocation {
            Allocation::Arena(_) => check_fixed(planned.dims.as_ref(), dims)?,
            Allocation::Dynamic => {
                check_declared(&planned.declared, dims)?;
                self.dims[operand].clear();
                self.dims[operand].extend_from_slice(dims);
            }
            // No operation reads it as it is.
            Allocation::None | Allocation::Constant(_) | Allocation::Graph => return Ok(()),
        }
        if planned.info.byte_count(dims)? != value.as_slice().len() {
            return Err(OpError::Internal { what: "a buffer of another size than its value" });
        }
        self.places[operand] = Place::Shared(value);
        Ok(())
    }

    /// Ends what `lend_input` began.
    pub(crate) fn return_input(&mut self, plan: &GraphPlan, position: usize) {
        self.places[plan.inputs[position]] = Place::Planned;
    }

    /// Has graph output `position` written to this memory, which is exchanged for some of this one's until
    /// [`GraphMemory::return_output`]. `false` where no step writes it there.
    ///
    /// # Errors
    /// As [`AlignedBytes::resize`]: memory that is empty, which is that of a buffer of open size, gets the
    /// length of the output where it is planned.
    pub(crate) fn lend_output(
        &mut self,
        plan: &GraphPlan,
        position: usize,
        memory: &mut AlignedBytes,
    ) -> Result<bool, OpError> {
        let operand = plan.outputs[position];
        let fits = match &plan.operands[operand].allocation {
            Allocation::Arena(range) => {
                if memory.as_slice().is_empty() {
                    memory.resize(range.len())?;
                }
                range.len() == memory.as_slice().len()
            }
            Allocation::Dynamic => true,
            Allocation::None | Allocation::Constant(_) | Allocation::Graph => false,
        };
        if fits {
            std::mem::swap(&mut self.dynamic[operand], memory);
            self.places[operand] = Place::Lent;
        }
        Ok(fits)
    }

    /// Exchanges the memory back.
    pub(crate) fn return_output(
        &mut self,
        plan: &GraphPlan,
        position: usize,
        memory: &mut AlignedBytes,
    ) {
        let operand = plan.outputs[position];
        std::mem::swap(&mut self.dynamic[operand], memory);
        self.places[operand] = Place::Planned;
    }

    /// Memory for graph input `position` with this shape (empty: the planned one), to be filled.
    pub(crate) fn input(
        &mut self,
        plan: &GraphPlan,
        position: usize,
        dims: &[u32],
    ) -> Result<&mut [u8], OpError> {
        let operand = plan.inputs[position];
        self.places[operand] = Place::Planned;
        let planned = &plan.operands[operand];
        let dims = match &planned.dims {
            Some(fixed) if dims.is_empty() => fixed.as_slice(),
            None if dims.is_empty() => planned.declared.as_slice(),
            _ => dims,
        };
        self.room(plan, operand, dims)
    }

    /// Memory for an operand that is going to have this shape, to be filled.
    pub(crate) fn room(
        &mut self,
        plan: &GraphPlan,
        operand: usize,
        dims: &[u32],
    ) -> Result<&mut [u8], OpError> {
        let planned = &plan.operands[operand];
        match &planned.allocation {
            Allocation::Arena(range) => {
                check_fixed(planned.dims.as_ref(), dims)?;
                match self.places[operand] {
                    Place::Lent => Ok(self.dynamic[operand].as_mut_slice()),
                    _ => Ok(&mut self.arena.as_mut_slice()[range.clone()]),
                }
            }
            Allocation::Dynamic => {
                check_declared(&planned.declared, dims)?;
                self.dims[operand].clear();
                self.dims[operand].extend_from_slice(dims);
                let bytes = planned.info.byte_count(dims)?;
                self.dynamic[operand].resize(bytes)?;
                Ok(self.dynamic[operand].as_mut_slice())
            }
            Allocation::None | Allocation::Constant(_) | Allocation::Graph => Ok(&mut []),
        }
    }

    /// Shape and bytes of an operand that has a value.
    ///
    /// # Errors
    /// [`OpError::Omitted`] where it has none.
    pub(crate) fn value<'a>(
        &'a self,
        plan: &'a GraphPlan,
        operand: usize,
    ) -> Result<(&'a [u32], &'a [u8]), OpError> {
        let tensor = self.tensor(plan, operand)?;
        Ok((tensor.dims, tensor.bytes.ok_or(OpError::Omitted { index: operand })?))
    }

    /// Shape and bytes of graph output `position` after a run.
    pub(crate) fn output<'a>(
        &'a self,
        plan: &'a GraphPlan,
        position: usize,
    ) -> (&'a [u32], &'a [u8]) {
        let operand = plan.outputs[position];
        let bytes = self.value(plan, operand).map_or(&[][..], |(_, bytes)| bytes);
        (&self.dims[operand], bytes)
    }

    /// Copies the value of another operand of the same graph into graph input `position`; the two have
    /// separate memory.
    pub(crate) fn copy_to_input(
        &mut self,
        plan: &GraphPlan,
        from: usize,
        position: usize,
    ) -> Result<(), OpError> {
        let to = plan.inputs[position];
        let dims = self.dims[from].clone();
        match (&plan.operands[from].allocation, &plan.operands[to].allocation) {
            (Allocation::Arena(source), Allocation::Arena(target)) => {
                self.input(plan, position, &dims)?;
                let (source, at) = (source.clone(), target.start);
                self.arena.as_mut_slice().copy_within(source, at);
            }
            (Allocation::Dynamic, _) => {
                let source = std::mem::take(&mut self.dynamic[from]);
                let copied = self
                    .input(plan, position, &dims)
                    .and_then(|target| fill(target, source.as_slice()));
                self.dynamic[from] = source;
                copied?;
            }
            (Allocation::Arena(source), _) => {
                let source = source.clone();
                let arena = std::mem::take(&mut self.arena);
                let copied = self
                    .input(plan, position, &dims)
                    .and_then(|target| fill(target, &arena.as_slice()[source]));
                self.arena = arena;
                copied?;
            }
            _ => return Err(OpError::Internal { what: "a state that is not computed" }),
        }
        Ok(())
    }

    /// Executes one step that runs no other graph.
    pub(crate) fn step(
        &mut self,
        plan: &GraphPlan,
        step: &Step,
        scratch: &mut Scratch,
        stop: Stop,
        parallelism: Parallelism<'_>,
    ) -> Result<(), OpError> {
        self.expect_elements(step)?;
        let shapes_known = step.fixed_shapes || self.infer(plan, step)?;
        if shapes_known && self.writes_nothing(step) {
            return Ok(());
        }
        // Outputs are moved out of `self` while the kernel runs, so that inputs can be borrowed from it.
        let mut outputs = OutputParts::default();
        outputs.take(self, step);
        let result = self.execute(plan, step, (scratch, stop, parallelism), &mut outputs);
        outputs.put_back(self, step);
        result?;
        if shapes_known { Ok(()) } else { self.check_computed(plan, step) }
    }

    /// Refuses shapes that only the values decided, where the model declares others.
    fn check_computed(&self, plan: &GraphPlan, step: &Step) -> Result<(), OpError> {
        step.outputs.iter().try_for_each(|output| {
            check_declared(&plan.operands[*output].declared, &self.dims[*output])
        })
    }

    /// Refuses inputs without elements where the operation does not take them.
    fn expect_elements(&self, step: &Step) -> Result<(), OpError> {
        if step.rules.traits.zero_sized_inputs {
            return Ok(());
        }
        let is_empty =
            |operand: &usize| !self.is_omitted(*operand) && self.dims[*operand].contains(&0);
        match step.inputs.iter().position(is_empty) {
            Some(index) => Err(OpError::ZeroSized { index }),
            None => Ok(()),
        }
    }

    fn is_omitted(&self, operand: usize) -> bool {
        matches!(self.places[operand], Place::Omitted)
    }

    /// Infers this execution's output shapes and makes room. Says whether they are known now.
    fn infer(&mut self, plan: &GraphPlan, step: &Step) -> Result<bool, OpError> {
        let shapes = {
            let mut inputs = SmallVec::<[Arg<'_>; 32]>::new();
            for (position, operand) in step.inputs.iter().enumerate() {
                let tensor = self.tensor(plan, *operand)?;
                let value = match tensor.bytes {
                    Some(bytes) => Value::Bytes(bytes),
                    // The kernel has them.
                    None if step.packed_inputs.contains(&position) => Value::Unknown,
                    None => Value::Omitted,
                };
                inputs.push(Arg { info: tensor.info, dims: Some(tensor.dims), value });
            }
            let mut outputs = SmallVec::<[_; 2]>::new();
            for operand in &step.outputs {
                let planned = &plan.operands[*operand];
                outputs.push((&planned.info, planned.declared.as_slice()));
            }
            match step.stages().infer(&Args { inputs: &inputs, outputs: &outputs })? {
                Inferred::DataDependent => return Ok(false),
                Inferred::Shapes(shapes) => shapes,
            }
        };
        if shapes.len() != step.outputs.len() {
            return Err(OpError::Arity { want: shapes.len(), got: step.outputs.len() });
        }
        for (operand, shape) in step.outputs.iter().zip(shapes) {
            let planned = &plan.operands[*operand];
            check_declared(&planned.declared, &shape)?;
            self.dynamic[*operand].resize(planned.info.byte_count(&shape)?)?;
            self.dims[*operand] = shape;
        }
        Ok(true)
    }

    fn writes_nothing(&self, step: &Step) -> bool {
        step.outputs.iter().all(|operand| self.dims[*operand].contains(&0))
    }

    /// An operand to read while nothing is written.
    fn tensor<'a>(&'a self, plan: &'a GraphPlan, operand: usize) -> Result<TensorRef<'a>, OpError> {
        let arena = |range: &Range<usize>| Ok(&self.arena.as_slice()[range.clone()]);
        let places = (&self.dynamic[..], &self.places[..]);
        read_operand(plan, places, &self.dims, operand, arena)
    }

    fn execute(
        &mut self,
        plan: &GraphPlan,
        step: &Step,
        (scratch, stop, parallelism): (&mut Scratch, Stop, Parallelism<'_>),
        parts: &mut OutputParts,
    ) -> Result<(), OpError> {
        let GraphMemory { arena, dynamic, dims, places } = self;
        let ranges = step.arena_order.iter().map(|position| {
            match &plan.operands[step.outputs[*position]].allocation {
                Allocation::Arena(range) => range.clone(),
                _ => 0..0,
            }
        });
        // Lists of a kilobyte are filled where they lie: collected, each would be copied several times.
        let mut split = Split::default();
        split.fill(arena.as_mut_slice(), ranges)?;
        let mut inputs = SmallVec::<[TensorRef<'_>; 32]>::new();
        for operand in &step.inputs {
            let places = (&dynamic[..], &places[..]);
            inputs.push(read_operand(plan, places, dims, *operand, |range| split.gaps.get(range))?);
        }
        if let Some(index) = inputs.iter().enumerate().position(|(index, input)| {
            !input.is_present()
                && !step.rules.traits.allows_omitting(index)
                && !step.packed_inputs.contains(&index)
        }) {
            return Err(OpError::Omitted { index });
        }
        let mut outputs = SmallVec::<[TensorMut<'_>; 4]>::new();
        let owned = parts.dynamic.iter_mut().zip(&mut parts.dims);
        for ((dynamic, dims), operand) in owned.zip(&step.outputs) {
            let info = &plan.operands[*operand].info;
            outputs.push(TensorMut { info, dims, storage: Storage::Dynamic(dynamic) });
        }
        for (position, bytes) in step.arena_order.iter().zip(&mut split.written) {
            // One that is lent a buffer's memory does without its range of the arena.
            if !matches!(places[step.outputs[*position]], Place::Lent) {
                outputs[*position].storage = Storage::Fixed(std::mem::take(bytes));
            }
        }
        let mut run = Run { inputs: &inputs, outputs: &mut outputs, scratch, stop, parallelism };
        match &step.kernel {
            Some(kernel) => kernel.run(&mut run),
            None => step.stages().execute(&mut run),
        }
    }
}

/// Copies a value into the memory that was made for it.
pub(crate) fn fill(target: &mut [u8], value: &[u8]) -> Result<(), OpError> {
    if target.len() != value.len() {
        return Err(OpError::Internal { what: "a value of another size than its allocation" });
    }
    target.copy_from_slice(value);
    Ok(())
}

/// A shape that is the same in every execution.
fn check_fixed(fixed: Option<&Dimensions>, dims: &[u32]) -> Result<(), OpError> {
    match fixed {
        Some(fixed) if fixed.as_slice() != dims => {
            Err(OpError::shape("planned shape against the given one", fixed, dims))
        }
        _ => Ok(()),
    }
}

fn read_operand<'a>(
    plan: &'a GraphPlan,
    (dynamic, places): (&'a [AlignedBytes], &'a [Place]),
    dims: &'a [Dimensions],
    operand: usize,
    arena: impl FnOnce(&Range<usize>) -> Result<&'a [u8], OpError>,
) -> Result<TensorRef<'a>, OpError> {
    let planned = &plan.operands[operand];
    let bytes = match (&places[operand], &planned.allocation) {
        (Place::Omitted, _) => None,
        (Place::Shared(value), _) => Some(value.as_slice()),
        (Place::Lent, _) | (Place::Planned, Allocation::Dynamic) => {
            Some(dynamic[operand].as_slice())
        }
        (Place::Planned, Allocation::Constant(bytes)) => Some(bytes.as_slice()),
        (Place::Planned, Allocation::Arena(range)) => Some(arena(range)?),
        (Place::Planned, Allocation::None | Allocation::Graph) => None,
    };
    Ok(TensorRef { info: &planned.info, dims: &dims[operand], bytes })
}

/// The parts of a memory that the outputs of one step own while it runs.
#[derive(Default)]
struct OutputParts {
    dims: SmallVec<[Dimensions; 4]>,
    dynamic: SmallVec<[AlignedBytes; 4]>,
}

impl OutputParts {
    fn take(&mut self, memory: &mut GraphMemory, step: &Step) {
        for operand in &step.outputs {
            self.dims.push(std::mem::take(&mut memory.dims[*operand]));
            self.dynamic.push(std::mem::take(&mut memory.dynamic[*operand]));
        }
    }

    fn put_back(&mut self, memory: &mut GraphMemory, step: &Step) {
        let owned = self.dims.iter_mut().zip(&mut self.dynamic);
        for (operand, (dims, dynamic)) in step.outputs.iter().zip(owned) {
            std::mem::swap(&mut memory.dims[*operand], dims);
            std::mem::swap(&mut memory.dynamic[*operand], dynamic);
        }
    }
}
