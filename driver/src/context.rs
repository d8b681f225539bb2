//! One execution of a plan: its working memory, and the walk over the steps.

use std::ops::Range;

use burst_hal::Dimensions;
use smallvec::SmallVec;

use crate::OpError;
use crate::aligned::AlignedBytes;
use crate::arena;
use crate::error::DriverError;
use crate::op::{Inferred, Run, Stop};
use crate::plan::{Place, Plan, Step, check_declared};
use crate::scratch::Scratch;
use crate::tensor::{Arg, Args, Storage, TensorMut, TensorRef, Value, byte_count};

/// Working memory of one execution at a time; used again by the next one.
#[derive(Debug, Default)]
pub struct Context {
    arena: AlignedBytes,
    /// Memory of operands whose shape is not planned, by operand.
    growing: Vec<AlignedBytes>,
    /// The shape of every operand in this execution.
    dims: Vec<Dimensions>,
    /// Graph inputs that this execution leaves out, by operand.
    omitted: Vec<bool>,
    scratch: Scratch,
}

impl Context {
    /// Working memory for executions of `plan`.
    ///
    /// # Errors
    /// [`OpError::Range`] when the system has no such memory.
    pub(crate) fn new(plan: &Plan) -> Result<Self, OpError> {
        let mut growing = Vec::new();
        growing.resize_with(plan.operands.len(), AlignedBytes::default);
        Ok(Context {
            arena: AlignedBytes::zeroed(plan.arena_bytes)?,
            growing,
            dims: plan
                .operands
                .iter()
                .map(|operand| operand.dims.clone().unwrap_or_default())
                .collect(),
            omitted: vec![false; plan.operands.len()],
            scratch: Scratch::default(),
        })
    }

    /// Bytes held between executions.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let growing: usize = self.growing.iter().map(AlignedBytes::held_bytes).sum();
        self.arena.held_bytes() + growing + self.scratch.held_bytes()
    }

    /// Marks graph input `position` as left out.
    pub(crate) fn omit_input(&mut self, plan: &Plan, position: usize) {
        self.omitted[plan.inputs[position]] = true;
    }

    /// Memory for graph input `position` with this shape (empty: the planned one), to be filled.
    pub(crate) fn input(
        &mut self,
        plan: &Plan,
        position: usize,
        dims: &[u32],
    ) -> Result<&mut [u8], OpError> {
        let operand = plan.inputs[position];
        self.omitted[operand] = false;
        let planned = &plan.operands[operand];
        match &planned.place {
            Place::Arena(range) => {
                if let Some(fixed) = &planned.dims
                    && !dims.is_empty()
                    && fixed.as_slice() != dims
                {
                    return Err(OpError::shape("shape of an input", fixed, dims));
                }
                Ok(&mut self.arena.as_mut_slice()[range.clone()])
            }
            Place::Growing => {
                let dims = if dims.is_empty() { planned.declared.as_slice() } else { dims };
                self.dims[operand].clear();
                self.dims[operand].extend_from_slice(dims);
                let bytes = byte_count(planned.info.ty, dims)?;
                self.growing[operand].resize(bytes)?;
                Ok(self.growing[operand].as_mut_slice())
            }
            _ => Ok(&mut []),
        }
    }

    /// Shape and bytes of graph output `position` after a run.
    pub(crate) fn output<'a>(&'a self, plan: &'a Plan, position: usize) -> (&'a [u32], &'a [u8]) {
        let operand = plan.outputs[position];
        let bytes = match &plan.operands[operand].place {
            Place::Arena(range) => &self.arena.as_slice()[range.clone()],
            Place::Growing => self.growing[operand].as_slice(),
            Place::Constant(bytes) => bytes.as_slice(),
            Place::None | Place::Graph(_) => &[],
        };
        (&self.dims[operand], bytes)
    }

    /// Runs every step. Inputs must have been filled or omitted.
    pub(crate) fn run(&mut self, plan: &Plan, stop: Stop) -> Result<(), DriverError> {
        crate::compute::enter();
        for step in &plan.steps {
            stop.check().map_err(|_| DriverError::Deadline)?;
            self.step(plan, step, stop).map_err(|cause| plan.error(step, cause))?;
        }
        Ok(())
    }

    fn step(&mut self, plan: &Plan, step: &Step, stop: Stop) -> Result<(), OpError> {
        let shapes_known = step.fixed_shapes || self.infer(plan, step)?;
        if shapes_known && self.writes_nothing(step) {
            return Ok(());
        }
        // Outputs leave the context while the kernel runs, so that inputs can be borrowed from it.
        let mut outputs = OutputParts::take(self, step);
        let result = self.execute(plan, step, stop, &mut outputs);
        outputs.put_back(self, step);
        result
    }

    /// Infers this execution's output shapes and makes room. Says whether they are known now.
    fn infer(&mut self, plan: &Plan, step: &Step) -> Result<bool, OpError> {
        let shapes = {
            let inputs: SmallVec<[Arg<'_>; 32]> = step
                .inputs
                .iter()
                .enumerate()
                .map(|(position, operand)| {
                    let tensor = self.tensor(plan, *operand, |range| {
                        Ok(&self.arena.as_slice()[range.clone()])
                    })?;
                    let value = match tensor.bytes {
                        Some(bytes) => Value::Bytes(bytes),
                        // Not left out, but held by the kernel alone.
                        None if step.packed_inputs.contains(&position) => Value::Unknown,
                        None => Value::Omitted,
                    };
                    Ok(Arg { info: tensor.info, dims: Some(tensor.dims), value })
                })
                .collect::<Result<_, OpError>>()?;
            let outputs: SmallVec<[_; 2]> = step
                .outputs
                .iter()
                .map(|operand| {
                    let planned = &plan.operands[*operand];
                    (&planned.info, planned.declared.as_slice())
                })
                .collect();
            match (step.def.infer)(&Args { inputs: &inputs, outputs: &outputs })? {
                Inferred::WhileRunning => return Ok(false),
                Inferred::Shapes(shapes) => shapes,
            }
        };
        if shapes.len() != step.outputs.len() {
            return Err(OpError::Arity { want: shapes.len(), got: step.outputs.len() });
        }
        for (operand, shape) in step.outputs.iter().zip(shapes) {
            let planned = &plan.operands[*operand];
            check_declared(&planned.declared, &shape)?;
            self.growing[*operand].resize(byte_count(planned.info.ty, &shape)?)?;
            self.dims[*operand] = shape;
        }
        Ok(true)
    }

    fn writes_nothing(&self, step: &Step) -> bool {
        step.outputs.iter().all(|operand| self.dims[*operand].contains(&0))
    }

    /// An operand to read; `arena` gives the bytes of an arena range.
    fn tensor<'a>(
        &'a self,
        plan: &'a Plan,
        operand: usize,
        arena: impl FnOnce(&Range<usize>) -> Result<&'a [u8], OpError>,
    ) -> Result<TensorRef<'a>, OpError> {
        read_operand(plan, &self.growing, &self.dims, &self.omitted, operand, arena)
    }

    fn execute(
        &mut self,
        plan: &Plan,
        step: &Step,
        stop: Stop,
        parts: &mut OutputParts,
    ) -> Result<(), OpError> {
        let Context { arena, growing, dims, omitted, scratch } = self;
        let ranges = step.arena_order.iter().map(|position| {
            match &plan.operands[step.outputs[*position]].place {
                Place::Arena(range) => range.clone(),
                _ => 0..0,
            }
        });
        let (written, gaps) = arena::split(arena.as_mut_slice(), ranges)?;
        let inputs: SmallVec<[TensorRef<'_>; 32]> = step
            .inputs
            .iter()
            .map(|operand| {
                read_operand(plan, growing, dims, omitted, *operand, |range| gaps.get(range))
            })
            .collect::<Result<_, OpError>>()?;
        if let Some(index) = inputs.iter().enumerate().position(|(index, input)| {
            !input.is_present()
                && !step.def.traits.allows_omitting(index)
                && !step.packed_inputs.contains(&index)
        }) {
            return Err(OpError::Omitted { index });
        }
        let mut outputs: SmallVec<[TensorMut<'_>; 4]> = parts
            .growing
            .iter_mut()
            .zip(&mut parts.dims)
            .zip(&*step.outputs)
            .map(|((growing, dims), operand)| TensorMut {
                info: &plan.operands[*operand].info,
                dims,
                storage: Storage::Growing(growing),
            })
            .collect();
        for (position, bytes) in step.arena_order.iter().zip(written) {
            outputs[*position].storage = Storage::Fixed(bytes);
        }
        let mut run = Run { inputs: &inputs, outputs: &mut outputs, scratch, stop };
        match &step.kernel {
            Some(kernel) => kernel.run(&mut run),
            None => (step.def.execute)(&mut run),
        }
    }
}

fn read_operand<'a>(
    plan: &'a Plan,
    growing: &'a [AlignedBytes],
    dims: &'a [Dimensions],
    omitted: &[bool],
    operand: usize,
    arena: impl FnOnce(&Range<usize>) -> Result<&'a [u8], OpError>,
) -> Result<TensorRef<'a>, OpError> {
    let planned = &plan.operands[operand];
    let bytes = match &planned.place {
        _ if omitted[operand] => None,
        Place::Constant(bytes) => Some(bytes.as_slice()),
        Place::Arena(range) => Some(arena(range)?),
        Place::Growing => Some(growing[operand].as_slice()),
        Place::None | Place::Graph(_) => None,
    };
    Ok(TensorRef { info: &planned.info, dims: &dims[operand], bytes })
}

/// The parts of a context that the outputs of one step own while it runs.
struct OutputParts {
    dims: SmallVec<[Dimensions; 4]>,
    growing: SmallVec<[AlignedBytes; 4]>,
}

impl OutputParts {
    fn take(context: &mut Context, step: &Step) -> Self {
        OutputParts {
            dims: step.outputs.iter().map(|o| std::mem::take(&mut context.dims[*o])).collect(),
            growing: step
                .outputs
                .iter()
                .map(|o| std::mem::take(&mut context.growing[*o]))
                .collect(),
        }
    }

    fn put_back(self, context: &mut Context, step: &Step) {
        for ((operand, dims), growing) in step.outputs.iter().zip(self.dims).zip(self.growing) {
            context.dims[*operand] = dims;
            context.growing[*operand] = growing;
        }
    }
}
