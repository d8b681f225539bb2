//! Plans one graph, operation by operation.

use burst_hal::trace::{Span, SpanKind};
use burst_hal::validate::GraphId;
use burst_hal::{
    Dimensions, MemoryCharge, Operand, OperandLifeTime, Operation, Subgraph, TimePoint,
};
use smallvec::SmallVec;

use super::Graphs;
use super::constants::Constant;
use crate::OpError;
use crate::budget::settle;
use crate::control_flow::is_true;
use crate::error::{DriverError, ExtensionFault};
use crate::kept::Place;
use crate::offer::Candidate;
use crate::op::{Inferred, Prepared, Rules, Stages};
use crate::ops::control::boundary;
use crate::plan::{
    Allocation, Control, Loop, Planned, Step, check_declared, graph_number, spilled,
};
use crate::registry::Types;
use crate::scratch::Scratch;
use crate::tensor::{Arg, Args, TensorInfo, Value};

/// What the parsed attributes of an operation take at most, in bytes, by estimate: what they really take is
/// charged when the graph is finished.
const BOUND_BYTES: usize = 256;

/// An operation's inputs, as far as they are known.
type KnownInputs<'a> = SmallVec<[Arg<'a>; 16]>;
/// What the outputs' numbers mean, and their declared shapes.
type KnownOutputs<'a> = SmallVec<[(&'a TensorInfo, &'a [u32]); 2]>;

pub(super) struct Builder<'g, 'm> {
    pub(super) graphs: &'g mut Graphs<'m>,
    pub(super) graph: GraphId,
    pub(super) subgraph: &'m Subgraph,
    pub(super) operands: Vec<Planned>,
    /// What the model's types mean here.
    types: Types<'m>,
    /// The values of operands, where they are constants.
    pub(super) constants: Vec<Constant<'m>>,
    /// How often operations that are not planned yet read each operand.
    pub(super) readers: Vec<u32>,
    pub(super) steps: Vec<Step>,
    /// Constants that some step reads as they are.
    pub(super) needed: Vec<bool>,
    pub(super) scratch: Scratch,
    /// What the lists here take.
    pub(super) charge: MemoryCharge,
}

impl<'g, 'm> Builder<'g, 'm> {
    pub(super) fn new(graphs: &'g mut Graphs<'m>, graph: GraphId) -> Result<Self, DriverError> {
        let (model, budget) = (graphs.model, graphs.budget);
        let subgraph = match graph {
            GraphId::Main => &model.main,
            GraphId::Referenced(index) => &model.referenced[index as usize],
        };
        budget
            .charge(list_bytes(subgraph))
            .map_err(|cause| super::outside_of_operations(&cause))?;
        let charge = budget.take_charge();
        let mut constants = Vec::with_capacity(subgraph.operands.len());
        for (index, operand) in subgraph.operands.iter().enumerate() {
            constants.push(Constant::of(model, index, operand, budget)?);
        }
        let types = graphs.offer.registry.of_model(model);
        Ok(Builder {
            graphs,
            graph,
            subgraph,
            operands: subgraph.operands.iter().map(|operand| planned(types, operand)).collect(),
            types,
            constants,
            readers: subgraph.count_consumers(),
            steps: Vec::with_capacity(subgraph.operations.len()),
            needed: vec![false; subgraph.operands.len()],
            scratch: Scratch::paid_by(budget.same_account()),
            charge,
        })
    }

    pub(super) fn operation(&mut self, index: usize) -> Result<(), DriverError> {
        self.graphs.budget.stop().check().map_err(|c| super::outside_of_operations(&c))?;
        self.graphs.budget.kept().begin(Place::new(self.graph, index));
        let spans = self.graphs.budget.stop().tracing();
        let begun = spans.map(|spans| (spans, TimePoint::now().nanos));
        if self.take_kept(index) {
            return Ok(());
        }
        let verdict = self.plan_operation(index);
        if let Some((spans, begun)) = begun {
            spans.record(&self.span(index, begun));
        }
        self.release_constants(index);
        verdict
    }

    /// The span of planning this operation, which began then and ends now.
    fn span(&self, index: usize, begun: u64) -> Span<'_> {
        let step = self.steps.last().filter(|step| step.index == index);
        Span {
            operation: Some(self.subgraph.operations[index].ty),
            graph: graph_number(self.graph),
            index: u32::try_from(index).unwrap_or(u32::MAX),
            // Without a step it was folded, or failed.
            detail: step.and_then(|step| step.kernel.as_ref()).map_or("", |kernel| kernel.name()),
            ..Span::since(begun, SpanKind::PlanOperation)
        }
    }

    fn plan_operation(&mut self, index: usize) -> Result<(), DriverError> {
        let subgraph = self.subgraph;
        let operation = &subgraph.operations[index];
        let (graph, op) = (self.graph, operation.ty);
        let rules = self.rules(operation).map_err(|fault| DriverError::Extension {
            graph,
            index,
            fault,
        })?;
        let Some(rules) = rules else {
            return Err(DriverError::Unsupported { graph, index, op });
        };
        let control = boundary::control(self.graphs.model, &subgraph.operands, operation)
            .map_err(|cause| DriverError::Signature { graph, index, op, cause })?;
        let failed = |cause| {
            DriverError::given_up(&cause).unwrap_or(DriverError::Unplannable {
                graph,
                index,
                op,
                cause,
            })
        };
        let Some(control) = control else {
            return self.plan_step(index, operation, rules).map_err(failed);
        };
        for referenced in control.graphs() {
            self.graphs.require(referenced)?;
        }
        self.plan_control(index, operation, rules, control).map_err(failed)
    }

    /// The rules of an operation, where this device takes it.
    ///
    /// # Errors
    /// It or one of its operands is of an extension that is not known here.
    fn rules(&self, operation: &Operation) -> Result<Option<Rules>, ExtensionFault> {
        let rules = self.types.operation(operation.ty)?;
        for operand in operation.inputs.iter().chain(&operation.outputs) {
            self.types.operand(&self.subgraph.operands[*operand as usize])?;
        }
        let candidate = Candidate { graph: self.subgraph, operation };
        Ok(rules.filter(|_| (self.graphs.offer.takes)(&candidate)))
    }

    /// Lets the values of constants go that only this operation still had to read.
    pub(super) fn release_constants(&mut self, index: usize) {
        for operand in &self.subgraph.operations[index].inputs {
            let operand = *operand as usize;
            self.readers[operand] = self.readers[operand].saturating_sub(1);
            if self.readers[operand] == 0
                && !self.needed[operand]
                && matches!(self.constants[operand], Constant::Owned(_) | Constant::Kept(_))
            {
                self.constants[operand] = Constant::Released;
            }
        }
    }

    /// Plans an operation that runs other graphs, which are planned already.
    fn plan_control(
        &mut self,
        index: usize,
        operation: &Operation,
        rules: Rules,
        control: Control,
    ) -> Result<(), OpError> {
        let inputs = operand_list(&operation.inputs);
        let outputs = operand_list(&operation.outputs);
        // Legal in a model, but no graph can run without its inputs.
        let is_omitted =
            |operand: &usize| self.subgraph.operands[*operand].lifetime == OperandLifeTime::NoValue;
        if let Some(index) = inputs.iter().position(is_omitted) {
            return Err(OpError::Omitted { index });
        }
        let control = self.decided(control, &inputs);
        for (position, operand) in outputs.iter().enumerate() {
            let declared = &self.operands[*operand].declared;
            let dims = match self.control_output(control, &inputs, position) {
                Some(dims) => {
                    check_declared(declared, &dims)?;
                    Some(dims)
                }
                // The shape holds if the graphs produce it, which is checked when they run.
                None => fully_known(&self.operands[*operand].info, declared),
            };
            self.operands[*operand].dims = dims;
        }
        for operand in &inputs {
            self.needed[*operand] = true;
        }
        self.steps.push(Step {
            index,
            op: operation.ty,
            rules,
            bound: None,
            inputs,
            outputs,
            arena_order: Box::default(),
            kernel: None,
            _kernel_charge: MemoryCharge::default(),
            packed_inputs: Box::default(),
            fixed_shapes: false,
            control: Some(self.with_sharing(control)),
        });
        Ok(())
    }

    /// An IF whose condition is a constant runs one graph only. The other graph has been planned, so
    /// it was checked too; its plan is dropped unless another operation runs it.
    fn decided(&self, control: Control, inputs: &[usize]) -> Control {
        let condition = inputs.first().and_then(|operand| self.constants[*operand].bytes());
        let (Control::If { then, otherwise }, Some(condition)) = (control, condition) else {
            return control;
        };
        let chosen = if is_true(condition) { then } else { otherwise };
        Control::If { then: chosen, otherwise: chosen }
    }

    /// The shape of an output of a control flow operation, where it is the same in every branch that
    /// the execution can take.
    fn control_output(
        &self,
        control: Control,
        inputs: &[usize],
        position: usize,
    ) -> Option<Dimensions> {
        let result = |graph| self.graphs.planned(graph)?.output_dims(position);
        let (one, other) = match control {
            Control::If { then, otherwise } => (result(then)?, result(otherwise)?),
            // Without a single round the result is the value the loop began with.
            Control::While(Loop { body, .. }) => {
                (result(body)?, self.operands[*inputs.get(position + 2)?].dims.as_ref()?)
            }
        };
        (one == other).then(|| one.clone())
    }

    fn with_sharing(&self, control: Control) -> Control {
        let Control::While(whole) = control else { return control };
        let Loop { condition, body, .. } = whole;
        let runs = |graph, other| self.graphs.planned(graph).is_some_and(|g| g.reaches[other]);
        let shares_graphs = condition == body || runs(condition, body) || runs(body, condition);
        Control::While(Loop { shares_graphs, ..whole })
    }

    fn plan_step(
        &mut self,
        index: usize,
        operation: &Operation,
        rules: Rules,
    ) -> Result<(), OpError> {
        let inputs = operand_list(&operation.inputs);
        let outputs = operand_list(&operation.outputs);
        self.expect_elements(rules, &inputs)?;
        let bound = self.bind(rules, &inputs, &outputs)?;
        let stages: &dyn Stages = match &bound {
            Some(bound) => bound.as_ref(),
            None => rules.body,
        };
        let fixed_shapes = self.infer(stages, &inputs, &outputs)?;
        if fixed_shapes
            && rules.traits.pure
            && self.fold(operation.ty, stages, &inputs, &outputs)?
        {
            return Ok(());
        }
        let (prepared, kernel_charge) = self.prepare(stages, &inputs, &outputs, fixed_shapes)?;
        let left = if fixed_shapes {
            self.join(prepared, kernel_charge, &inputs, &outputs)
        } else {
            Some((prepared, kernel_charge))
        };
        let Some((prepared, kernel_charge)) = left else { return Ok(()) };
        let (kernel, packed_inputs) = match prepared {
            Some(Prepared { kernel, packed_inputs }) => {
                (Some(kernel), packed_inputs.into_boxed_slice())
            }
            None => (None, Box::default()),
        };
        for (position, operand) in inputs.iter().enumerate() {
            if !packed_inputs.contains(&position) {
                self.needed[*operand] = true;
            }
        }
        self.steps.push(Step {
            index,
            op: operation.ty,
            rules,
            bound,
            inputs,
            outputs,
            arena_order: Box::default(),
            kernel,
            _kernel_charge: kernel_charge,
            packed_inputs,
            fixed_shapes,
            control: None,
        });
        Ok(())
    }

    /// Refuses inputs that never have elements where the operation does not take such: every execution would.
    fn expect_elements(&self, rules: Rules, inputs: &[usize]) -> Result<(), OpError> {
        let is_empty = |operand: &usize| self.operands[*operand].known_dims().contains(&0);
        match inputs.iter().position(is_empty) {
            Some(index) if !rules.traits.zero_sized_inputs => Err(OpError::ZeroSized { index }),
            _ => Ok(()),
        }
    }

    /// A kernel for an operation, where there is one, and what it holds.
    ///
    /// Where the shapes are not fixed, nobody has looked so far whether the operands go together, and a
    /// survey said that the operation is supported. So there is no kernel for operands with which it cannot be
    /// computed, and the first execution says what is wrong with them.
    fn prepare(
        &self,
        stages: &dyn Stages,
        inputs: &[usize],
        outputs: &[usize],
        fixed_shapes: bool,
    ) -> Result<(Option<Prepared>, MemoryCharge), OpError> {
        let Some(context) = self.graphs.context.filter(|context| context.fast_kernels) else {
            return Ok((None, MemoryCharge::default()));
        };
        let (inputs, outputs) = self.args(inputs, outputs);
        let prepared = match stages.prepare(&Args { inputs: &inputs, outputs: &outputs }, context) {
            Err(OpError::NotYet) => Ok(None),
            Err(error) if !fixed_shapes && error.is_of_operands() => Ok(None),
            prepared => prepared,
        };
        // Taken also after an error: working memory was charged with it, and is gone.
        let mut charge = context.budget.take_charge();
        let prepared = prepared?;
        let held = prepared
            .as_ref()
            .map_or(0, |prepared| prepared.kernel.held_bytes() + size_of_val(&*prepared.kernel));
        settle(&mut charge, held)?;
        Ok((prepared, charge))
    }

    /// The operation with its attributes parsed, where it has any and all are known. Wrong ones fail
    /// here, in a survey as in a plan: no execution could compute the operation.
    fn bind(
        &self,
        rules: Rules,
        inputs: &[usize],
        outputs: &[usize],
    ) -> Result<Option<Box<dyn Stages>>, OpError> {
        let (inputs, outputs) = self.args(inputs, outputs);
        match rules.body.bind(&Args { inputs: &inputs, outputs: &outputs }) {
            Err(OpError::NotYet) => Ok(None),
            bound => bound,
        }
    }

    /// Infers the outputs' shapes and records those that are the same in every execution. Returns
    /// whether all of them are.
    fn infer(
        &mut self,
        stages: &dyn Stages,
        inputs: &[usize],
        outputs: &[usize],
    ) -> Result<bool, OpError> {
        let inferred = {
            let (inputs, outputs) = self.args(inputs, outputs);
            stages.infer(&Args { inputs: &inputs, outputs: &outputs })
        };
        match inferred {
            Ok(Inferred::Shapes(shapes)) => {
                if shapes.len() != outputs.len() {
                    return Err(OpError::Arity { want: shapes.len(), got: outputs.len() });
                }
                for (operand, shape) in outputs.iter().zip(shapes) {
                    let planned = &mut self.operands[*operand];
                    check_declared(&planned.declared, &shape)?;
                    planned.info.byte_count(&shape)?;
                    planned.dims = Some(shape);
                }
                Ok(true)
            }
            Ok(Inferred::DataDependent) | Err(OpError::NotYet) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// An operation's operands, as far as they are known so far.
    fn args(&self, inputs: &[usize], outputs: &[usize]) -> (KnownInputs<'_>, KnownOutputs<'_>) {
        let inputs = inputs
            .iter()
            .map(|operand| {
                let planned = &self.operands[*operand];
                let declared = &self.subgraph.operands[*operand];
                let value = match self.constants[*operand].bytes() {
                    Some(bytes) => Value::Bytes(bytes),
                    None if declared.lifetime == OperandLifeTime::NoValue => Value::Omitted,
                    None => Value::Unknown,
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

    /// After an operation that cannot be planned, a survey goes on with the outputs as the model
    /// declares them.
    pub(super) fn trust_declared_shapes(&mut self, index: usize) {
        for operand in &self.subgraph.operations[index].outputs {
            let planned = &mut self.operands[*operand as usize];
            planned.dims = fully_known(&planned.info, &planned.declared);
        }
    }
}

pub(super) fn operand_list(indexes: &[u32]) -> Box<[usize]> {
    indexes.iter().map(|index| *index as usize).collect()
}

/// What the lists of a builder for this graph take, and those of its plan, by estimate.
fn list_bytes(graph: &Subgraph) -> usize {
    /// Of an operand: where and when it is alive, while lifetimes are worked out.
    const LIFETIME_BYTES: usize = 128;
    let operand = size_of::<Planned>()
        + size_of::<Constant<'_>>()
        + size_of::<u32>()
        + size_of::<bool>()
        + LIFETIME_BYTES;
    let shapes = graph.operands.iter().map(|operand| 2 * spilled(&operand.dimensions));
    let indexes = graph.operations.iter().map(|operation| {
        // Inputs, outputs and the outputs in the order of the arena.
        (operation.inputs.len() + 2 * operation.outputs.len()) * size_of::<usize>()
    });
    graph.operands.len() * operand
        + graph.operations.len() * (size_of::<Step>() + BOUND_BYTES)
        + shapes.sum::<usize>()
        + indexes.sum::<usize>()
}

fn planned(types: Types<'_>, operand: &Operand) -> Planned {
    // What operations do with one that is not known is refused when they are planned.
    let info = TensorInfo::new(operand, types.operand(operand).ok().flatten());
    let allocation = match operand.lifetime {
        OperandLifeTime::Subgraph => Allocation::Graph,
        _ => Allocation::None,
    };
    let dims = match operand.lifetime {
        OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput => None,
        OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference => {
            Some(operand.dimensions.clone())
        }
        _ => fully_known(&info, &operand.dimensions),
    };
    Planned { info, declared: operand.dimensions.clone(), dims, allocation }
}

/// The declared shape, if rank and every size are known.
fn fully_known(info: &TensorInfo, declared: &Dimensions) -> Option<Dimensions> {
    let open = info.is_tensor() && declared.is_empty() || declared.contains(&0);
    (!open).then(|| declared.clone())
}
