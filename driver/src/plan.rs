//! A model made ready to run: every operation looked up, shapes inferred as far as they can be,
//! constants packed or folded, each value allocated. [`planner`](crate::planner) makes one.

use std::ops::Range;

use burst_hal::trace::{Span, SpanKind};
use burst_hal::validate::GraphId;
use burst_hal::{Dimensions, MemoryCharge, OperationType};

use crate::OpError;
use crate::aligned::AlignedBytes;
use crate::error::DriverError;
use crate::kept::KeptValue;
use crate::op::{Kernel, Rules, Stages};
use crate::tensor::TensorInfo;

/// Most working memory one model may plan for, in bytes: a bound on what a client's model can
/// make the service allocate. The largest model we know of needs some 200 MiB.
pub(crate) const MAX_ARENA_BYTES: usize = 2 << 30;

/// Where an operand's bytes are while the graph runs.
#[derive(Debug)]
pub(crate) enum Allocation {
    /// Nowhere: left out, never used, or packed into kernels.
    None,
    /// Here, for all executions; elsewhere, as most operands are none and there is an entry for each of them.
    Constant(Box<ConstantBytes>),
    /// In the arena.
    Arena(Range<usize>),
    /// In memory of its own that follows its shape.
    Dynamic,
    /// It stands for a referenced graph.
    Graph,
}

/// A constant that steps read as it is.
#[derive(Debug)]
pub(crate) enum ConstantBytes {
    /// In memory of the plan's own.
    Own(AlignedBytes),
    /// In the memory of a file that the plan was taken from, which is charged by itself.
    Kept(KeptValue),
}

impl ConstantBytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            ConstantBytes::Own(bytes) => bytes.as_slice(),
            ConstantBytes::Kept(value) => value.bytes(),
        }
    }

    /// Bytes held, but for those that were kept.
    fn held_bytes(&self) -> usize {
        match self {
            ConstantBytes::Own(bytes) => bytes.held_bytes(),
            ConstantBytes::Kept(_) => 0,
        }
    }
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
    pub(crate) allocation: Allocation,
}

/// One operation of a planned graph.
#[derive(Debug)]
pub(crate) struct Step {
    /// Position of the operation in the model's graph.
    pub(crate) index: usize,
    /// What it does.
    pub(crate) op: OperationType,
    pub(crate) rules: Rules,
    /// The operation with its attributes parsed, where it has any and all of them are constants.
    pub(crate) bound: Option<Box<dyn Stages>>,
    /// Operands it reads.
    pub(crate) inputs: Box<[usize]>,
    /// Operands it writes.
    pub(crate) outputs: Box<[usize]>,
    /// Positions in `outputs` that lie in the arena, by ascending address.
    pub(crate) arena_order: Box<[usize]>,
    /// A kernel with its constants packed, where there is one.
    pub(crate) kernel: Option<Box<dyn Kernel>>,
    /// What the kernel holds.
    pub(crate) _kernel_charge: MemoryCharge,
    /// Positions in `inputs` whose bytes the kernel holds itself.
    pub(crate) packed_inputs: Box<[usize]>,
    /// Whether every output's shape was known when the graph was planned, and is the same in every
    /// execution.
    pub(crate) fixed_shapes: bool,
    /// Which graphs the step runs, where it runs any; the body of its rules then is not used.
    pub(crate) control: Option<Control>,
}

impl Step {
    /// Bytes of this entry with its lists; its kernel is charged by itself.
    fn held_bytes(&self) -> usize {
        let lists = [&self.inputs, &self.outputs, &self.arena_order, &self.packed_inputs];
        let lists: usize = lists.into_iter().map(|list| size_of_val(&**list)).sum();
        let bound = self.bound.as_ref().map_or(0, |bound| size_of_val(&**bound));
        size_of::<Self>() + lists + bound
    }

    /// The operation's code, with the attributes that were parsed when the model was prepared.
    pub(crate) fn stages(&self) -> &dyn Stages {
        match &self.bound {
            Some(bound) => bound.as_ref(),
            None => self.rules.body,
        }
    }

    /// Operands whose values a control flow operation hands to its graphs.
    pub(crate) fn handed_over(&self) -> &[usize] {
        match self.control {
            Some(Control::If { .. }) => self.inputs.get(3..).unwrap_or_default(),
            Some(Control::While(_)) => self.inputs.get(2..).unwrap_or_default(),
            None => &[],
        }
    }
}

/// How a step runs other graphs of the model, named by their index among the referenced ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// One of two graphs, by a condition.
    If {
        /// Runs where the condition holds.
        then: usize,
        /// Runs where it does not.
        otherwise: usize,
    },
    /// One graph repeatedly, as long as another one computes true.
    While(Loop),
}

impl Control {
    /// The graphs it may run.
    pub(crate) fn graphs(self) -> [usize; 2] {
        match self {
            Control::If { then, otherwise } => [then, otherwise],
            Control::While(Loop { condition, body, .. }) => [condition, body],
        }
    }
}

/// A WHILE operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loop {
    /// The graph that says whether to go on.
    pub(crate) condition: usize,
    /// The graph that computes the next state.
    pub(crate) body: usize,
    /// How many of the values are state: the outputs of the body. The others stay as they are.
    pub(crate) states: usize,
    /// Whether running one of the two graphs can overwrite the inputs of the other, because both are
    /// the same graph or one runs the other.
    pub(crate) shares_graphs: bool,
}

/// A model ready to run, shared by all its executions.
#[derive(Debug)]
pub struct Plan {
    pub(crate) main: GraphPlan,
    /// By index among the model's referenced graphs; `None` for those that nothing runs.
    pub(crate) referenced: Vec<Option<GraphPlan>>,
}

impl Plan {
    fn graphs(&self) -> impl Iterator<Item = &GraphPlan> {
        std::iter::once(&self.main).chain(self.referenced.iter().flatten())
    }

    /// Bytes of the list of referenced graphs; the graphs are charged by themselves.
    pub(crate) fn list_bytes(&self) -> usize {
        self.referenced.capacity() * size_of::<Option<GraphPlan>>()
    }

    /// Bytes this plan holds between executions: constants, plain and packed.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.graphs().map(GraphPlan::held_bytes).sum()
    }

    /// Bytes of the constants that executions read, each once, as the model has them or as they were folded: halves
    /// that became floats are floats here. What packing adds to them is in [`held_bytes`](Self::held_bytes) alone, so
    /// that the one over the other says what that costs.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.graphs().map(GraphPlan::weight_bytes).sum()
    }

    /// Bytes of working memory an execution needs, apart from values whose shape is not known.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.graphs().fold(0, |sum, graph| sum.saturating_add(graph.arena_bytes))
    }

    /// Floats of working memory that kernels are going to take, one after the other.
    pub(crate) fn scratch_floats(&self) -> usize {
        self.graphs().map(GraphPlan::scratch_floats).max().unwrap_or(0)
    }
}

/// A graph ready to run.
#[derive(Debug)]
pub(crate) struct GraphPlan {
    pub(crate) graph: GraphId,
    pub(crate) operands: Vec<Planned>,
    pub(crate) steps: Vec<Step>,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) arena_bytes: usize,
    /// Which referenced graphs run while this one does, by index.
    pub(crate) reaches: Vec<bool>,
    /// What the lists of this graph take: everything but constants and kernels.
    pub(crate) charge: MemoryCharge,
}

impl GraphPlan {
    /// Bytes of the lists of this graph: everything but constants and kernels.
    pub(crate) fn list_bytes(&self) -> usize {
        let operands: usize = self.operands.iter().map(Planned::held_bytes).sum();
        let steps: usize = self.steps.iter().map(Step::held_bytes).sum();
        let spare = (self.operands.capacity() - self.operands.len()) * size_of::<Planned>()
            + (self.steps.capacity() - self.steps.len()) * size_of::<Step>();
        let indexes = self.inputs.capacity() + self.outputs.capacity();
        operands + steps + spare + indexes * size_of::<usize>() + self.reaches.capacity()
    }

    fn held_bytes(&self) -> usize {
        let constants: usize = self
            .operands
            .iter()
            .map(|operand| match &operand.allocation {
                Allocation::Constant(bytes) => bytes.held_bytes(),
                _ => 0,
            })
            .sum();
        let packed: usize =
            self.steps.iter().filter_map(|step| step.kernel.as_ref()).map(|k| k.held_bytes()).sum();
        constants + packed
    }

    /// Floats of working memory that its kernels are going to take.
    fn scratch_floats(&self) -> usize {
        let kernels = self.steps.iter().filter_map(|step| step.kernel.as_ref());
        kernels.map(|kernel| kernel.scratch_floats()).max().unwrap_or(0)
    }

    /// Bytes of the constants that steps read, whether kernels have packed them or not.
    fn weight_bytes(&self) -> usize {
        let mut is_counted = vec![false; self.operands.len()];
        let mut bytes = 0;
        for step in &self.steps {
            for (position, operand) in step.inputs.iter().enumerate() {
                let planned = &self.operands[*operand];
                let is_constant = step.packed_inputs.contains(&position)
                    || matches!(planned.allocation, Allocation::Constant(_));
                if is_constant && !std::mem::replace(&mut is_counted[*operand], true) {
                    let dims = planned.dims.as_deref();
                    bytes += dims.map_or(0, |dims| planned.info.byte_count(dims).unwrap_or(0));
                }
            }
        }
        bytes
    }

    /// The shape of output `position`, where it is the same in every execution.
    pub(crate) fn output_dims(&self, position: usize) -> Option<&Dimensions> {
        self.operands.get(*self.outputs.get(position)?)?.dims.as_ref()
    }

    /// Positions of the graph's inputs that no execution may leave out: some operation reads them
    /// where it needs a value.
    pub(crate) fn required_inputs(&self) -> impl Iterator<Item = usize> {
        let mut needed = vec![false; self.operands.len()];
        for step in &self.steps {
            for (position, operand) in step.inputs.iter().enumerate() {
                needed[*operand] |= !step.rules.traits.allows_omitting(position);
            }
        }
        (0..self.inputs.len()).filter(move |position| needed[self.inputs[*position]])
    }

    /// The span of a step that began then and ends now.
    pub(crate) fn span<'s>(&self, step: &'s Step, begun: u64, kind: SpanKind) -> Span<'s> {
        Span {
            operation: Some(step.op),
            graph: graph_number(self.graph),
            index: u32::try_from(step.index).unwrap_or(u32::MAX),
            detail: step.kernel.as_ref().map_or("", |kernel| kernel.name()),
            ..Span::since(begun, kind)
        }
    }

    pub(crate) fn error(&self, step: &Step, cause: OpError) -> DriverError {
        DriverError::given_up(&cause).unwrap_or_else(|| DriverError::Operation {
            graph: self.graph,
            index: step.index,
            op: step.op,
            cause,
        })
    }
}

impl Planned {
    /// Bytes of this entry with its lists. Channel scales are shared with the model, but kept by the
    /// plan once the model is gone.
    fn held_bytes(&self) -> usize {
        let lists = spilled(&self.declared) + self.dims.as_ref().map_or(0, spilled);
        let scales = self.info.channel_scales.as_ref();
        let constant = match &self.allocation {
            Allocation::Constant(bytes) => size_of_val(&**bytes),
            _ => 0,
        };
        size_of::<Self>()
            + lists
            + scales.map_or(0, |(scales, _)| size_of_val(&**scales))
            + constant
    }

    /// The shape as far as it is the same in every execution; empty otherwise.
    pub(crate) fn known_dims(&self) -> &[u32] {
        self.dims.as_deref().unwrap_or_default()
    }
}

/// Bytes of a shape that lie outside of it.
pub(crate) fn spilled(dims: &Dimensions) -> usize {
    if dims.spilled() { dims.capacity() * size_of::<u32>() } else { 0 }
}

/// A graph's number in spans.
pub(crate) fn graph_number(graph: GraphId) -> u32 {
    match graph {
        GraphId::Main => 0,
        GraphId::Referenced(index) => index.saturating_add(1),
    }
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
