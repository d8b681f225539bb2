//! Plans one graph, operation by operation.

use burst_hal::validate::GraphId;
use burst_hal::{Dimensions, Model, Operand, OperandLifeTime, Operation, Subgraph};
use smallvec::SmallVec;

use super::Graphs;
use crate::aligned::AlignedBytes;
use crate::arena::{self, Need};
use crate::control_flow::is_true;
use crate::error::DriverError;
use crate::op::{Inferred, OpDef, PrepareContext, Run, Stages};
use crate::ops::control::boundary;
use crate::plan::{
    Allocation, Control, GraphPlan, Loop, MAX_ARENA_BYTES, Planned, Step, check_declared,
};
use crate::scratch::Scratch;
use crate::stop::Stop;
use crate::tensor::{Arg, Args, Storage, TensorInfo, TensorMut, TensorRef, Value, byte_count};
use crate::threads::Parallelism;
use crate::{OpError, ops};

/// A constant is folded only when the result is at most this large: folding must not turn a
/// small model into a large one.
const MAX_FOLDED_BYTES: usize = 64 << 20;

/// An operation's inputs, as far as they are known.
type KnownInputs<'a> = SmallVec<[Arg<'a>; 16]>;
/// What the outputs' numbers mean, and their declared shapes.
type KnownOutputs<'a> = SmallVec<[(&'a TensorInfo, &'a [u32]); 2]>;

pub(super) struct Builder<'g, 'm> {
    graphs: &'g mut Graphs<'m>,
    graph: GraphId,
    pub(super) subgraph: &'m Subgraph,
    /// `None` in a survey, which chooses no kernels.
    context: Option<PrepareContext>,
    operands: Vec<Planned>,
    steps: Vec<Step>,
    /// Constants that some step reads as they are.
    needed: Vec<bool>,
    scratch: Scratch,
}

impl<'g, 'm> Builder<'g, 'm> {
    pub(super) fn new(graphs: &'g mut Graphs<'m>, graph: GraphId) -> Result<Self, DriverError> {
        let model = graphs.model;
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
        Ok(Builder {
            context: graphs.context,
            graphs,
            graph,
            subgraph,
            needed: vec![false; operands.len()],
            operands,
            steps: Vec::new(),
            scratch: Scratch::default(),
        })
    }

    pub(super) fn operation(&mut self, index: usize) -> Result<(), DriverError> {
        let subgraph = self.subgraph;
        let operation = &subgraph.operations[index];
        let (graph, op) = (self.graph, operation.ty);
        let Some(def) = ops::find(op) else {
            return Err(DriverError::Unsupported { graph, index, op });
        };
        let control = boundary::control(self.graphs.model, &subgraph.operands, operation)
            .map_err(|cause| DriverError::Signature { graph, index, op, cause })?;
        let failed = |cause| DriverError::Unplannable { graph, index, op, cause };
        let Some(control) = control else {
            return self.plan_step(index, operation, def).map_err(failed);
        };
        for referenced in control.graphs() {
            self.graphs.require(referenced)?;
        }
        self.plan_control(index, operation, def, control).map_err(failed)
    }

    /// Plans an operation that runs other graphs, which are planned already.
    fn plan_control(
        &mut self,
        index: usize,
        operation: &Operation,
        def: &'static OpDef,
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
                None => fully_known(self.operands[*operand].info.ty, declared),
            };
            self.operands[*operand].dims = dims;
        }
        for operand in &inputs {
            self.needed[*operand] = true;
        }
        self.steps.push(Step {
            index,
            def,
            bound: None,
            inputs,
            outputs,
            arena_order: Box::default(),
            kernel: None,
            packed_inputs: SmallVec::new(),
            fixed_shapes: false,
            control: Some(self.with_sharing(control)),
        });
        Ok(())
    }

    /// An IF whose condition is a constant runs one graph only. The other graph has been planned, so
    /// it was checked too; its plan is dropped unless another operation runs it.
    fn decided(&self, control: Control, inputs: &[usize]) -> Control {
        let condition = inputs.first().map(|operand| &self.operands[*operand].allocation);
        let (Control::If { then, otherwise }, Some(Allocation::Constant(condition))) =
            (control, condition)
        else {
            return control;
        };
        let chosen = if is_true(condition.as_slice()) { then } else { otherwise };
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
        def: &'static OpDef,
    ) -> Result<(), OpError> {
        let inputs = operand_list(&operation.inputs);
        let outputs = operand_list(&operation.outputs);
        let bound = self.bind(def, &inputs, &outputs)?;
        let stages: &dyn Stages = match &bound {
            Some(bound) => bound.as_ref(),
            None => def.body,
        };
        let fixed_shapes = self.infer(stages, &inputs, &outputs)?;
        if fixed_shapes && def.traits.pure && self.fold(stages, &inputs, &outputs) {
            return Ok(());
        }
        let prepared = match &self.context {
            Some(context) if context.fast_kernels => {
                let (inputs, outputs) = self.args(&inputs, &outputs);
                match stages.prepare(&Args { inputs: &inputs, outputs: &outputs }, context) {
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
            bound,
            inputs,
            outputs,
            arena_order: Box::default(),
            kernel: prepared.map(|p| p.kernel),
            packed_inputs: packed,
            fixed_shapes,
            control: None,
        });
        Ok(())
    }

    /// The operation with its attributes parsed, where it has any and all are known. Wrong ones fail
    /// here, in a survey as in a plan: no execution could compute the operation.
    fn bind(
        &self,
        def: &OpDef,
        inputs: &[usize],
        outputs: &[usize],
    ) -> Result<Option<Box<dyn Stages>>, OpError> {
        let (inputs, outputs) = self.args(inputs, outputs);
        match def.body.bind(&Args { inputs: &inputs, outputs: &outputs }) {
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
                    byte_count(planned.info.ty, &shape)?;
                    planned.dims = Some(shape);
                }
                Ok(true)
            }
            Ok(Inferred::DataDependent) | Err(OpError::NotYet) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Folds the operation: computes it now if all its inputs are constants. Returns whether it did.
    /// An operation that fails now is kept, and fails when the model runs.
    fn fold(&mut self, stages: &dyn Stages, inputs: &[usize], outputs: &[usize]) -> bool {
        let constant = |operand: &usize| match &self.operands[*operand].allocation {
            Allocation::Constant(_) => true,
            Allocation::None => {
                self.subgraph.operands[*operand].lifetime == OperandLifeTime::NoValue
            }
            _ => false,
        };
        let is_output = |operand: &usize| {
            self.subgraph.operands[*operand].lifetime == OperandLifeTime::SubgraphOutput
        };
        if !inputs.iter().all(constant) || outputs.iter().any(is_output) {
            return false;
        }
        let Ok(results) = self.compute(stages, inputs, outputs) else { return false };
        for (operand, bytes) in outputs.iter().zip(results) {
            self.operands[*operand].allocation = Allocation::Constant(bytes);
        }
        true
    }

    fn compute(
        &mut self,
        stages: &dyn Stages,
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
                let bytes = match &planned.allocation {
                    Allocation::Constant(bytes) => Some(bytes.as_slice()),
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
        stages.execute(&mut Run {
            inputs: &inputs,
            outputs: &mut outputs,
            scratch: &mut self.scratch,
            stop: Stop::default(),
            parallelism: Parallelism::ALONE,
        })?;
        drop(outputs);
        Ok(results)
    }

    /// An operation's operands, as far as they are known so far.
    fn args(&self, inputs: &[usize], outputs: &[usize]) -> (KnownInputs<'_>, KnownOutputs<'_>) {
        let inputs = inputs
            .iter()
            .map(|operand| {
                let planned = &self.operands[*operand];
                let declared = &self.subgraph.operands[*operand];
                let value = match &planned.allocation {
                    Allocation::Constant(bytes) => Value::Bytes(bytes.as_slice()),
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

    /// After an operation that cannot be planned, a survey goes on with the outputs as the model
    /// declares them.
    pub(super) fn trust_declared_shapes(&mut self, index: usize) {
        for operand in &self.subgraph.operations[index].outputs {
            let planned = &mut self.operands[*operand as usize];
            planned.dims = fully_known(planned.info.ty, &planned.declared);
        }
    }

    /// Decides where every value lies while the graph runs.
    pub(super) fn finish(mut self) -> Result<GraphPlan, DriverError> {
        let inputs = operand_list(&self.subgraph.input_indexes).into_vec();
        let outputs = operand_list(&self.subgraph.output_indexes).into_vec();
        let too_large = |bytes: usize| DriverError::TooLarge {
            bytes: bytes as u64,
            limit: MAX_ARENA_BYTES as u64,
        };
        let (operands, needs) = self.lifetimes(&inputs, &outputs)?;
        let (ranges, arena_bytes) =
            arena::assign_ranges(&needs).map_err(|_| too_large(usize::MAX))?;
        if arena_bytes > MAX_ARENA_BYTES {
            return Err(too_large(arena_bytes));
        }
        for (operand, range) in operands.into_iter().zip(ranges) {
            self.operands[operand].allocation = Allocation::Arena(range);
        }
        for (planned, needed) in self.operands.iter_mut().zip(&self.needed) {
            if matches!(planned.allocation, Allocation::Constant(_)) && !needed {
                planned.allocation = Allocation::None;
            }
        }
        for step in &mut self.steps {
            step.arena_order = arena_order(&self.operands, &step.outputs);
        }
        Ok(GraphPlan {
            reaches: self.reaches(),
            graph: self.graph,
            operands: self.operands,
            steps: self.steps,
            inputs,
            outputs,
            arena_bytes,
        })
    }

    /// The referenced graphs that run while this one does.
    fn reaches(&self) -> Vec<bool> {
        let mut reaches = vec![false; self.graphs.model.referenced.len()];
        for graph in self.steps.iter().filter_map(|step| step.control).flat_map(Control::graphs) {
            reaches[graph] = true;
            let inner = self.graphs.planned(graph).map_or(&[][..], |graph| &graph.reaches);
            for (reached, inner) in reaches.iter_mut().zip(inner) {
                *reached |= inner;
            }
        }
        reaches
    }

    /// The operands that need a range of the arena, and for which steps. Operands whose shape is
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
        if self.graph != GraphId::Main {
            // A loop runs the graph again with the inputs it left there.
            for operand in inputs {
                touch(*operand, self.steps.len() + 1);
            }
        }
        let mut operands = Vec::new();
        let mut needs = Vec::new();
        for (operand, span) in spans.into_iter().enumerate() {
            let planned = &mut self.operands[operand];
            let (Some((first, last)), Allocation::None) = (span, &planned.allocation) else {
                continue;
            };
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
                None => planned.allocation = Allocation::Dynamic,
            }
        }
        Ok((operands, needs))
    }
}

fn operand_list(indexes: &[u32]) -> Box<[usize]> {
    indexes.iter().map(|index| *index as usize).collect()
}

fn planned(model: &Model, index: usize, operand: &Operand) -> Result<Planned, DriverError> {
    let memory = |cause| DriverError::Memory { what: "constant operand", index, cause };
    let too_large = |bytes: u32| DriverError::TooLarge {
        bytes: u64::from(bytes),
        limit: crate::aligned::MAX_ALLOCATION_BYTES as u64,
    };
    let location = operand.location;
    let (offset, length) = (location.offset as usize, location.length as usize);
    let allocation = match operand.lifetime {
        OperandLifeTime::ConstantCopy => {
            let bytes = offset
                .checked_add(length)
                .and_then(|end| model.operand_values.get(offset..end))
                .ok_or(memory(burst_hal::MemoryError::OutOfRange {
                    offset: u64::from(location.offset),
                    len: u64::from(location.length),
                    size: model.operand_values.len() as u64,
                }))?;
            Allocation::Constant(
                AlignedBytes::copy_of(bytes).map_err(|_| too_large(location.length))?,
            )
        }
        OperandLifeTime::ConstantReference => {
            let mut bytes = AlignedBytes::zeroed(length).map_err(|_| too_large(location.length))?;
            model.pools[location.pool_index as usize]
                .read(u64::from(location.offset), bytes.as_mut_slice())
                .map_err(memory)?;
            Allocation::Constant(bytes)
        }
        OperandLifeTime::Subgraph => Allocation::Graph,
        _ => Allocation::None,
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
        allocation,
    })
}

/// The declared shape, if rank and every size are known.
fn fully_known(ty: burst_hal::OperandType, declared: &Dimensions) -> Option<Dimensions> {
    let open = ty.is_tensor() && declared.is_empty() || declared.contains(&0);
    (!open).then(|| declared.clone())
}

fn arena_order(operands: &[Planned], outputs: &[usize]) -> Box<[usize]> {
    let start = |position: &usize| match &operands[outputs[*position]].allocation {
        Allocation::Arena(range) => Some((range.start, range.end)),
        _ => None,
    };
    let mut order: Vec<usize> = (0..outputs.len()).filter(|p| start(p).is_some()).collect();
    order.sort_by_key(start);
    order.into()
}
