//! A model made ready to be walked: every operation looked up, every constant copied.

use std::sync::Arc;

use burst_hal::validate::GraphId;
use burst_hal::{
    DataLocation, Dimensions, MemoryCharge, MemoryError, Model, Operand, OperandLifeTime,
    OperationType, Subgraph,
};

use crate::OpError;
use crate::error::{DriverError, ExtensionFault};
use crate::guarded::GuardedBytes;
use crate::op::{Budget, Rules};
use crate::ops::control::boundary;
use crate::plan::Control;
use crate::registry::{Registry, Types};
use crate::tensor::TensorInfo;

/// Bytes of a constant that are copied between two checks whether the copy is still wanted.
const COPIED_AT_ONCE: usize = 1 << 18;

/// The graphs of a legal model.
#[derive(Debug)]
pub(super) struct Graphs {
    pub(super) main: Graph,
    pub(super) referenced: Vec<Graph>,
    /// What the lists take; constants are charged where they lie.
    pub(super) charge: MemoryCharge,
}

/// A graph.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) id: GraphId,
    pub(super) operands: Vec<Known>,
    pub(super) rows: Vec<Row>,
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    /// How often each operand is read, by operations and as an output.
    pub(super) readers: Vec<u32>,
}

/// What is known of an operand.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) info: TensorInfo,
    /// The shape that the model declares.
    pub(super) declared: Dimensions,
    pub(super) lifetime: OperandLifeTime,
    pub(super) constant: Option<Arc<Held>>,
}

/// A value.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) dims: Dimensions,
    pub(super) bytes: GuardedBytes,
}

/// An operation.
#[derive(Debug)]
pub(super) struct Row {
    /// Its position in the graph.
    pub(super) index: usize,
    pub(super) op: OperationType,
    /// What it does; why that is not known.
    pub(super) rules: Result<Rules, Lack>,
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    /// Which graphs it runs, where it runs any.
    pub(super) control: Option<Control>,
}

/// Why an operation has no rules here.
#[derive(Debug, Clone)]
pub(super) enum Lack {
    Unsupported,
    Extension(ExtensionFault),
}

impl Graphs {
    /// The graphs of a model that is legal here.
    ///
    /// # Errors
    /// Constants that cannot be read; memory that is refused; a caller who wants it no longer.
    pub(super) fn of(
        model: &Model,
        registry: &Registry,
        budget: &Budget<'_>,
    ) -> Result<Self, DriverError> {
        let refused = |cause: OpError| {
            DriverError::given_up(&cause).unwrap_or(DriverError::Internal { what: "lists" })
        };
        let graphs = || std::iter::once(&model.main).chain(&model.referenced);
        budget.charge(graphs().map(list_bytes).sum()).map_err(refused)?;
        let charge = budget.take_charge();
        let types = registry.of_model(model);
        let graph = |id, graph| Graph::of(model, types, (id, graph), budget);
        let main = graph(GraphId::Main, &model.main)?;
        let mut referenced = Vec::with_capacity(model.referenced.len());
        for (index, subgraph) in (0..).zip(&model.referenced) {
            referenced.push(graph(GraphId::Referenced(index), subgraph)?);
        }
        Ok(Graphs { main, referenced, charge })
    }
}

/// What the lists of a graph take.
fn list_bytes(graph: &Subgraph) -> usize {
    let operand = size_of::<Known>() + size_of::<Held>() + size_of::<u32>();
    let named = graph.operations.iter().map(|one| one.inputs.len() + one.outputs.len());
    graph.operands.len() * operand
        + graph.operations.len() * size_of::<Row>()
        + named.sum::<usize>() * size_of::<usize>()
}

impl Graph {
    fn of(
        model: &Model,
        types: Types<'_>,
        (id, graph): (GraphId, &Subgraph),
        budget: &Budget<'_>,
    ) -> Result<Self, DriverError> {
        let mut operands = Vec::with_capacity(graph.operands.len());
        for (index, operand) in graph.operands.iter().enumerate() {
            // One of an unknown extension makes its operations unsupported.
            let extension = types.operand(operand).ok().flatten();
            operands.push(Known {
                info: TensorInfo::new(operand, extension),
                declared: operand.dimensions.clone(),
                lifetime: operand.lifetime,
                constant: constant(model, index, operand, budget)?.map(Arc::new),
            });
        }
        let mut rows = Vec::with_capacity(graph.operations.len());
        for (index, operation) in graph.operations.iter().enumerate() {
            let op = operation.ty;
            let control = boundary::control(model, &graph.operands, operation)
                .map_err(|cause| DriverError::Signature { graph: id, index, op, cause })?;
            let named = operation.inputs.iter().chain(&operation.outputs);
            let operands = named.map(|operand| &graph.operands[*operand as usize]);
            rows.push(Row {
                index,
                op,
                rules: rules(types, op, operands),
                inputs: indexes(&operation.inputs),
                outputs: indexes(&operation.outputs),
                control,
            });
        }
        let mut readers = graph.count_consumers();
        let (inputs, outputs) = (indexes(&graph.input_indexes), indexes(&graph.output_indexes));
        for output in &outputs {
            readers[*output] = readers[*output].saturating_add(1);
        }
        Ok(Graph { id, operands, rows, inputs, outputs, readers })
    }

    /// The error of an operation of this graph.
    pub(super) fn error(&self, row: &Row, cause: OpError) -> DriverError {
        let Row { index, op, .. } = *row;
        DriverError::given_up(&cause).unwrap_or(DriverError::Operation {
            graph: self.id,
            index,
            op,
            cause,
        })
    }

    /// Positions of the inputs that some operation cannot do without.
    pub(super) fn required_inputs(&self) -> impl Iterator<Item = usize> {
        let mut needed = vec![false; self.operands.len()];
        for row in &self.rows {
            for (position, operand) in row.inputs.iter().enumerate() {
                let may_omit = |rules: &Rules| rules.traits.allows_omitting(position);
                needed[*operand] |= !row.rules.as_ref().is_ok_and(may_omit);
            }
        }
        (0..self.inputs.len()).filter(move |position| needed[self.inputs[*position]])
    }
}

fn indexes(list: &[u32]) -> Vec<usize> {
    list.iter().map(|index| *index as usize).collect()
}

fn rules<'m>(
    types: Types<'_>,
    op: OperationType,
    mut operands: impl Iterator<Item = &'m Operand>,
) -> Result<Rules, Lack> {
    let rules = types.operation(op).map_err(Lack::Extension)?.ok_or(Lack::Unsupported)?;
    match operands.find_map(|operand| types.operand(operand).err()) {
        Some(fault) => Err(Lack::Extension(fault)),
        None => Ok(rules),
    }
}

impl Held {
    /// A value of this shape, all bytes zero.
    pub(super) fn zeroed(
        info: &TensorInfo,
        dims: Dimensions,
        charge: MemoryCharge,
    ) -> Result<Self, OpError> {
        let bytes = GuardedBytes::zeroed(info.byte_count(&dims)?, charge)?;
        Ok(Held { dims, bytes })
    }
}

/// A copy of a constant; `None` for any other operand.
fn constant(
    model: &Model,
    index: usize,
    operand: &Operand,
    budget: &Budget<'_>,
) -> Result<Option<Held>, DriverError> {
    let DataLocation { pool_index, offset, length } = operand.location;
    let failed = |cause| DriverError::Memory { what: "constant operand", index, cause };
    let outside =
        |size: u64| MemoryError::OutOfRange { offset: offset.into(), len: length.into(), size };
    let no_room = |cause: OpError| {
        DriverError::given_up(&cause).unwrap_or(DriverError::TooLarge {
            bytes: length.into(),
            limit: crate::aligned::MAX_ALLOCATION_BYTES as u64,
        })
    };
    let pool = match operand.lifetime {
        OperandLifeTime::ConstantCopy => None,
        // A legal model names pools that it has.
        OperandLifeTime::ConstantReference => Some(&model.pools[pool_index as usize]),
        _ => return Ok(None),
    };
    let mut bytes =
        GuardedBytes::zeroed(length as usize, budget.same_account()).map_err(no_room)?;
    let mut at = offset as usize;
    for part in bytes.as_mut_slice().chunks_mut(COPIED_AT_ONCE) {
        budget.stop().check().map_err(no_room)?;
        match pool {
            Some(pool) => pool.read(at as u64, part).map_err(failed)?,
            None => {
                let values = &*model.operand_values;
                let from = values.get(at..at + part.len());
                part.copy_from_slice(from.ok_or_else(|| failed(outside(values.len() as u64)))?);
            }
        }
        at += part.len();
    }
    Ok(Some(Held { dims: operand.dimensions.clone(), bytes }))
}
