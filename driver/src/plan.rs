//! A graph made ready to run: every operation looked up, shapes inferred as far as they can be,
//! constants packed or folded, every value's place known.

use std::ops::Range;

use burst_hal::validate::GraphId;
use burst_hal::{Dimensions, HalVersion, Model, Operand, OperandLifeTime, Operation, Subgraph};
use smallvec::SmallVec;

use crate::aligned::AlignedBytes;
use crate::arena::{self, Need};
use crate::error::DriverError;
use crate::op::{Inferred, Kernel, OpDef, PrepareContext, Run, Signature, Stop};
use crate::scratch::Scratch;
use crate::tensor::{Arg, Args, Storage, TensorInfo, TensorMut, TensorRef, Value, byte_count};
use crate::{OpError, ops};

/// Most working memory one model may plan for, in bytes: a bound on what a client's model can
/// make the service allocate. The largest model we know of needs some 200 MiB.
pub const MAX_ARENA_BYTES: usize = 2 << 30;

/// A constant is folded only when the result is at most this large: folding must not turn a
/// small model into a large one.
const MAX_FOLDED_BYTES: usize = 64 << 20;

/// Where an operand's bytes are while the graph runs.
#[derive(Debug)]
pub(crate) enum Place {
    /// Nowhere: left out, never used, or packed into kernels.
    None,
    /// Here, for all executions.
    Constant(AlignedBytes),
    /// In the arena.
    Arena(Range<usize>),
    /// In memory of its own that follows its shape.
    Growing,
    /// It stands for a referenced graph.
    Graph(usize),
}

/// One operand of a planned graph.
#[derive(Debug)]
pub(crate) struct Planned {
    /// What its numbers mean.
    pub(crate) info: TensorInfo,
    /// The shape the model declares; 0 and an empty list: not known.
    pub(crate) declared: Dimensions,
    /// The shape, where it is the same in every execution.
    pub(crate) dims: Option<Dimensions>,
    /// Where its bytes are.
    pub(crate) place: Place,
}

/// One operation of a planned graph.
#[derive(Debug)]
pub(crate) struct Step {
    /// Position of the operation in the model's graph.
    pub(crate) index: usize,
    /// What it does.
    pub(crate) def: &'static OpDef,
    /// Operands it reads.
    pub(crate) inputs: Box<[usize]>,
    /// Operands it writes.
    pub(crate) outputs: Box<[usize]>,
    /// Positions in `outputs` that lie in the arena, by ascending address.
    pub(crate) arena_order: Box<[usize]>,
    /// A kernel with its constants packed, where there is one.
    pub(crate) kernel: Option<Box<dyn Kernel>>,
    /// Positions in `inputs` whose bytes the kernel holds itself.
    pub(crate) packed_inputs: SmallVec<[usize; 4]>,
    /// Whether every output's shape was known when the graph was planned and is known to hold.
    pub(crate) fixed_shapes: bool,
}

/// A graph ready to run, shared by all its executions.
#[derive(Debug)]
pub struct Plan {
    pub(crate) graph: GraphId,
    pub(crate) operands: Vec<Planned>,
    pub(crate) steps: Vec<Step>,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) arena_bytes: usize,
}

impl Plan {
    /// Bytes this plan holds between executions: constants, plain and packed.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let constants: usize = self
            .operands
            .iter()
            .map(|operand| match &operand.place {
                Place::Constant(bytes) => bytes.held_bytes(),
                _ => 0,
            })
            .sum();
        let packed: usize =
            self.steps.iter().filter_map(|step| step.kernel.as_ref()).map(|k| k.held_bytes()).sum();
        constants + packed
    }

    /// Bytes of working memory an execution needs, apart from values whose shape is not known.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// Positions of the graph's inputs that no execution may leave out: some operation reads them
    /// where it needs a value.
    pub(crate) fn required_inputs(&self) -> impl Iterator<Item = usize> {
        let mut needed = vec![false; self.operands.len()];
        for step in &self.steps {
            for (position, operand) in step.inputs.iter().enumerate() {
                needed[*operand] |= !step.def.traits.allows_omitting(position);
            }
        }
        (0..self.inputs.len()).filter(move |position| needed[self.inputs[*position]])
    }

    pub(crate) fn error(&self, step: &Step, cause: OpError) -> DriverError {
        match cause {
            OpError::Deadline => DriverError::Deadline,
            cause => DriverError::Operation {
                graph: self.graph,
                index: step.index,
                op: step.def.code,
                cause,
            },
        }
    }
}

/// What a survey found of one operation.
pub(crate) type Verdict = Result<(), DriverError>;

/// Plans a graph; fails at the first operation that cannot be planned.
pub(crate) fn plan(
    model: &Model,
    graph: GraphId,
    context: &PrepareContext,
) -> Result<Plan, DriverError> {
    let mut builder = Builder::new(model, graph, Some(*context))?;
    for index in 0..builder.subgraph.operations.len() {
        builder.operation(index)?;
    }
    builder.finish()
}

/// Says for each operation whether it can be planned. The outer error is a model that is not
/// legal at all.
pub(crate) fn survey(model: &Model, graph: GraphId) -> Result<Vec<Verdict>, DriverError> {
    let mut builder = Builder::new(model, graph, None)?;
    (0..builder.subgraph.operations.len())
        .map(|index| match builder.operation(index) {
            Err(error @ DriverError::Signature { .. }) => Err(error),
            verdict => {
                if verdict.is_err() {
                    builder.trust_declared_shapes(index);
                }
                Ok(verdict)
            }
        })
        .collect()
}

/// What is known of an operation's inputs.
type KnownInputs<'a> = SmallVec<[Arg<'a>; 16]>;
/// What the outputs' numbers mean, and their declared shapes.
type KnownOutputs<'a> = SmallVec<[(&'a TensorInfo, &'a [u32]); 2]>;

struct Builder<'m> {
    graph: GraphId,
    subgraph: &'m Subgraph,
    /// `None` in a survey, which chooses no kernels.
    context: Option<PrepareContext>,
    operands: Vec<Planned>,
    steps: Vec<Step>,
    /// Constants that some step reads as they are.
    needed: Vec<bool>,
    scratch: Scratch,
}

impl<'m> Builder<'m> {
    fn new(
        model: &'m Model,
        graph: GraphId,
        context: Option<PrepareContext>,
    ) -> Result<Self, DriverError> {
        let subgraph = match graph {
            GraphId::Main => &model.main,
            GraphId::Referenced(index) => &model.referenced[index as usize],
        };
        let operands = subgraph
            .operands
            .iter()
            .enumerate()
            .map(|(index, operand)| planned(model, index, operand))
            .collect::<Result<Vec<_>, _>>()?;
        let needed = vec![false; operands.len()];
        let scratch = Scratch::default();
        Ok(Builder { graph, subgraph, context, operands, steps: Vec::new(), needed, scratch })
    }

    fn operation(&mut self, index: usize) -> Result<(), DriverError> {
        let operation = &self.subgraph.operations[index];
        let (graph, op) = (self.graph, operation.ty);
        let Some(def) = ops::find(op) else {
            return Err(DriverError::Unsupported { graph, index, op });
        };
        let signature = Signature::new(&self.subgraph.operands, operation, HalVersion::LATEST);
        (def.validate)(&signature)
            .and_then(|()| signature.check_omitted(def.traits))
            .map_err(|cause| DriverError::Signature { graph, index, op, cause })?;
        self.plan_step(index, operation, def).map_err(|cause| DriverError::Operation {
            graph,
            index,
            op,
            cause,
        })
    }

    fn plan_step(
        &mut self,
        index: usize,
        operation: &Operation,
        def: &'static OpDef,
    ) -> Result<(), OpError> {
        let inputs: Box<[usize]> = operation.inputs.iter().map(|i| *i as usize).collect();
        let outputs: Box<[usize]> = operation.outputs.iter().map(|i| *i as usize).collect();
        let fixed_shapes = self.infer(def, &inputs, &outputs)?;
        if fixed_shapes && def.traits.pure && self.fold(def, &inputs, &outputs) {
            return Ok(());
        }
        let prepared = match (def.prepare, &self.context) {
            (Some(prepare), Some(context)) if context.fast_kernels => {
                let (inputs, outputs) = self.args(&inputs, &outputs);
                match prepare(&Args { inputs: &inputs, outputs: &outputs }, context) {
                    Err(OpError::NotYet) => None,
                    other => other?,
                }
            }
            _ => None,
        };
        let packed = prepared.as_ref().map(|p| p.packed_inputs.clone()).unwrap_or_default();
        for (position, operand) in inputs.iter().enumerate() {
            if !packed.contains(&position) {
                self.needed[*operand] = true;
            }
        }
        self.steps.push(Step {
            index,
            def,
            inputs,
            outputs,
            arena_order: Box::default(),
            kernel: prepared.map(|p| p.kernel),
            packed_inputs: packed,
            fixed_shapes,
        });
        Ok(())
    }

    /// Infers the outputs' shapes and writes down those that hold in every execution. Says
    /// whether all of them do.
    fn infer(&mut self, def: &OpDef, inputs: &[usize], outputs: &[usize]) -> Result<bool, OpError> {
        let inferred = {
            let (inputs, outputs) = self.args(inputs, outputs);
            (def.infer)(&Args { inputs: &inputs, outputs: &outputs })
        };
        match inferred {
            Ok(Inferred::Shapes(shapes)) => {
                if shapes.len() != outputs.len() {
                    return Err(OpError::Arity { want: shapes.len(), got: outputs.len() });
                }
                for (operand, shape) in outputs.iter().zip(shapes) {
                    let planned = &mut self.operands[*operand];
                    check_declared(&planned.declared, &shape)?;
                    byte_count(planned.info.ty, &shape)?;
                    planned.dims = Some(shape);
                }
                Ok(true)
            }
            Ok(Inferred::WhileRunning) | Err(OpError::NotYet) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Computes the operation now when all its inputs are constants. Says whether it did. An
    /// operation that fails now is left to fail when the model runs.
    fn fold(&mut self, def: &OpDef, inputs: &[usize], outputs: &[usize]) -> bool {
        let constant = |operand: &usize| match &self.operands[*operand].place {
            Place::Constant(_) => true,
            Place::None => self.subgraph.operands[*operand].lifetime == OperandLifeTime::NoValue,
            _ => false,
        };
        let is_output = |operand: &usize| {
            self.subgraph.operands[*operand].lifetime == OperandLifeTime::SubgraphOutput
        };
        if !inputs.iter().all(constant) || outputs.iter().any(is_output) {
            return false;
        }
        let Ok(results) = self.compute(def, inputs, outputs) else { return false };
        for (operand, bytes) in outputs.iter().zip(results) {
            self.operands[*operand].place = Place::Constant(bytes);
        }
        true
    }

    fn compute(
        &mut self,
        def: &OpDef,
        inputs: &[usize],
        outputs: &[usize],
    ) -> Result<Vec<AlignedBytes>, OpError> {
        let mut shapes = Vec::with_capacity(outputs.len());
        let mut results = Vec::with_capacity(outputs.len());
        let mut total = 0;
        for operand in outputs {
            let planned = &self.operands[*operand];
            let dims = planned.dims.clone().ok_or(OpError::NotYet)?;
            let bytes = byte_count(planned.info.ty, &dims)?;
            total += bytes;
            if total > MAX_FOLDED_BYTES {
                return Err(OpError::NotYet);
            }
            results.push(AlignedBytes::zeroed(bytes)?);
            shapes.push(dims);
        }
        let inputs: SmallVec<[TensorRef<'_>; 16]> = inputs
            .iter()
            .map(|operand| {
                let planned = &self.operands[*operand];
                let bytes = match &planned.place {
                    Place::Constant(bytes) => Some(bytes.as_slice()),
                    _ => None,
                };
                TensorRef { info: &planned.info, dims: planned.known_dims(), bytes }
            })
            .collect();
        let mut outputs: SmallVec<[TensorMut<'_>; 2]> = outputs
            .iter()
            .zip(shapes.iter_mut().zip(&mut results))
            .map(|(operand, (dims, bytes))| TensorMut {
                info: &self.operands[*operand].info,
                dims,
                storage: Storage::Fixed(bytes.as_mut_slice()),
            })
            .collect();
        (def.execute)(&mut Run {
            inputs: &inputs,
            outputs: &mut outputs,
            scratch: &mut self.scratch,
            stop: Stop::default(),
        })?;
        drop(outputs);
        Ok(results)
    }

    /// What is known of an operation's operands right now.
    fn args(
        &self,
        inputs: &[usize],
        outputs: &[usize],
    ) -> (KnownInputs<'_>, KnownOutputs<'_>) {
        let inputs = inputs
            .iter()
            .map(|operand| {
                let planned = &self.operands[*operand];
                let declared = &self.subgraph.operands[*operand];
                let value = match &planned.place {
                    Place::Constant(bytes) => Value::Bytes(bytes.as_slice()),
                    _ if declared.lifetime == OperandLifeTime::NoValue => Value::Omitted,
                    _ => Value::Unknown,
                };
                Arg { info: &planned.info, dims: planned.dims.as_deref(), value }
            })
            .collect();
        let outputs = outputs
            .iter()
            .map(|operand| {
                let planned = &self.operands[*operand];
                (&planned.info, planned.declared.as_slice())
            })
            .collect();
        (inputs, outputs)
    }

    /// After an operation that cannot be planned, a survey goes on with what the model says of
    /// its outputs.
    fn trust_declared_shapes(&mut self, index: usize) {
        for operand in &self.subgraph.operations[index].outputs {
            let planned = &mut self.operands[*operand as usize];
            planned.dims = fully_known(planned.info.ty, &planned.declared);
        }
    }

    fn finish(mut self) -> Result<Plan, DriverError> {
        let subgraph = self.subgraph;
        let inputs: Vec<usize> = subgraph.input_indexes.iter().map(|i| *i as usize).collect();
        let outputs: Vec<usize> = subgraph.output_indexes.iter().map(|i| *i as usize).collect();
        let too_large = |bytes: usize| DriverError::TooLarge {
            bytes: bytes as u64,
            limit: MAX_ARENA_BYTES as u64,
        };
        let (operands, needs) = self.lifetimes(&inputs, &outputs)?;
        let (ranges, arena_bytes) = arena::place(&needs).map_err(|_| too_large(usize::MAX))?;
        if arena_bytes > MAX_ARENA_BYTES {
            return Err(too_large(arena_bytes));
        }
        for (operand, range) in operands.into_iter().zip(ranges) {
            self.operands[operand].place = Place::Arena(range);
        }
        for (planned, needed) in self.operands.iter_mut().zip(&self.needed) {
            if matches!(planned.place, Place::Constant(_)) && !needed {
                planned.place = Place::None;
            }
        }
        for step in &mut self.steps {
            step.arena_order = arena_order(&self.operands, &step.outputs);
        }
        Ok(Plan {
            graph: self.graph,
            operands: self.operands,
            steps: self.steps,
            inputs,
            outputs,
            arena_bytes,
        })
    }

    /// The operands that need a place in the arena, and for which steps. Operands whose shape is
    /// not known get memory of their own.
    fn lifetimes(
        &mut self,
        inputs: &[usize],
        outputs: &[usize],
    ) -> Result<(Vec<usize>, Vec<Need>), DriverError> {
        // Step 0 is the copying in of inputs, step n + 1 the copying out of outputs.
        let mut spans: Vec<Option<(usize, usize)>> = vec![None; self.operands.len()];
        let mut touch = |operand: usize, step: usize| match &mut spans[operand] {
            Some((_, last)) => *last = step,
            span @ None => *span = Some((step, step)),
        };
        for operand in inputs {
            touch(*operand, 0);
        }
        for (step, planned) in self.steps.iter().enumerate() {
            for operand in planned.inputs.iter().chain(&*planned.outputs) {
                touch(*operand, step + 1);
            }
        }
        for operand in outputs {
            touch(*operand, self.steps.len() + 1);
        }
        let mut operands = Vec::new();
        let mut needs = Vec::new();
        for (operand, span) in spans.into_iter().enumerate() {
            let planned = &mut self.operands[operand];
            let (Some((first, last)), Place::None) = (span, &planned.place) else { continue };
            if self.subgraph.operands[operand].lifetime == OperandLifeTime::NoValue {
                continue;
            }
            let size = match &planned.dims {
                Some(dims) => byte_count(planned.info.ty, dims).ok(),
                None => None,
            };
            match size {
                Some(size) => {
                    operands.push(operand);
                    needs.push(Need { size, first, last });
                }
                None => planned.place = Place::Growing,
            }
        }
        Ok((operands, needs))
    }
}

impl Planned {
    /// The shape as far as it is the same in every execution; empty otherwise.
    fn known_dims(&self) -> &[u32] {
        self.dims.as_deref().unwrap_or_default()
    }
}

fn planned(model: &Model, index: usize, operand: &Operand) -> Result<Planned, DriverError> {
    let memory = |cause| DriverError::Memory { what: "constant operand", index, cause };
    let too_large = |bytes: u32| DriverError::TooLarge {
        bytes: u64::from(bytes),
        limit: crate::aligned::MAX_ALLOCATION_BYTES as u64,
    };
    let location = operand.location;
    let (offset, length) = (location.offset as usize, location.length as usize);
    let place = match operand.lifetime {
        OperandLifeTime::ConstantCopy => {
            let bytes = offset
                .checked_add(length)
                .and_then(|end| model.operand_values.get(offset..end))
                .ok_or(memory(burst_hal::MemoryError::OutOfRange {
                    offset: u64::from(location.offset),
                    len: u64::from(location.length),
                    size: model.operand_values.len() as u64,
                }))?;
            Place::Constant(AlignedBytes::copy_of(bytes).map_err(|_| too_large(location.length))?)
        }
        OperandLifeTime::ConstantReference => {
            let mut bytes = AlignedBytes::zeroed(length).map_err(|_| too_large(location.length))?;
            model.pools[location.pool_index as usize]
                .read(u64::from(location.offset), bytes.as_mut_slice())
                .map_err(memory)?;
            Place::Constant(bytes)
        }
        OperandLifeTime::Subgraph => Place::Graph(location.offset as usize),
        _ => Place::None,
    };
    let dims = match operand.lifetime {
        OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput => None,
        OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference => {
            Some(operand.dimensions.clone())
        }
        _ => fully_known(operand.ty, &operand.dimensions),
    };
    Ok(Planned {
        info: TensorInfo::from(operand),
        declared: operand.dimensions.clone(),
        dims,
        place,
    })
}

/// The declared shape when nothing of it is left open.
fn fully_known(ty: burst_hal::OperandType, declared: &Dimensions) -> Option<Dimensions> {
    let open = ty.is_tensor() && declared.is_empty() || declared.contains(&0);
    (!open).then(|| declared.clone())
}

/// A shape must agree with what the model declares, wherever it declares something.
pub(crate) fn check_declared(declared: &[u32], shape: &[u32]) -> Result<(), OpError> {
    let agrees = declared.is_empty()
        || declared.len() == shape.len()
            && declared.iter().zip(shape).all(|(want, got)| *want == 0 || want == got);
    if agrees {
        return Ok(());
    }
    Err(OpError::shape("the declared shape of an output against the computed one", declared, shape))
}

fn arena_order(operands: &[Planned], outputs: &[usize]) -> Box<[usize]> {
    let start = |position: &usize| match &operands[outputs[*position]].place {
        Place::Arena(range) => Some((range.start, range.end)),
        _ => None,
    };
    let mut order: Vec<usize> = (0..outputs.len()).filter(|p| start(p).is_some()).collect();
    order.sort_by_key(start);
    order.into()
}
