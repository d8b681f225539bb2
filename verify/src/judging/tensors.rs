//! A random model run on a device: its request, and the values that come of it.

use std::sync::Arc;

use burst_hal::session::PoolAllocator;
use burst_hal::{
    DataLocation, Dimensions, ErrorStatus, ExecutionOptions, ExecutionResult, Pool, PreparedModel,
    Request, RequestArgument, RequestPool, Route,
};

use crate::model::ALIGNMENT;
use crate::random::RandomModel;
use crate::ways::Way;

/// A value of a graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tensor {
    pub(super) dims: Dimensions,
    pub(super) bytes: Vec<u8>,
}

/// Executes a prepared model over a route; the values of its outputs.
pub(super) fn execute(
    one: &RandomModel,
    prepared: &Arc<dyn PreparedModel>,
    route: Route,
    memory: &dyn PoolAllocator,
) -> Result<Vec<Tensor>, String> {
    let mut way = Way::open(prepared, route)?;
    let arguments = Arguments::new(one, memory)?;
    let ran = way.execute(&arguments.request, &ExecutionOptions::default())?;
    arguments.outputs(one, &ran.result)
}

struct Arguments {
    request: Request,
    outputs: Pool,
}

impl Arguments {
    fn new(one: &RandomModel, memory: &dyn PoolAllocator) -> Result<Self, String> {
        let mut inputs = Vec::new();
        let mut request = Request::default();
        for (operand, bytes) in one.model.main.input_indexes.iter().zip(&one.inputs) {
            let location = place(&mut inputs, bytes.len());
            inputs[location.offset as usize..][..bytes.len()].copy_from_slice(bytes);
            let declared = &one.model.main.operands[*operand as usize].dimensions;
            let is_open = declared.contains(&0) || declared.is_empty();
            let dimensions = match one.shape(*operand) {
                Some(shape) if is_open => shape.dims.as_slice().into(),
                _ => Dimensions::new(),
            };
            request.inputs.push(RequestArgument { has_no_value: false, location, dimensions });
        }
        let mut length = Vec::new();
        for bytes in one.output_lengths() {
            let location = DataLocation { pool_index: 1, ..place(&mut length, bytes.max(1)) };
            let dimensions = Dimensions::new();
            request.outputs.push(RequestArgument { has_no_value: false, location, dimensions });
        }
        let pool = |bytes: &[u8]| -> Result<Pool, String> {
            let pool = memory.allocate(bytes.len().max(1));
            let pool = pool.map_err(|failure| format!("no memory: {failure}"))?;
            pool.write(0, bytes).map_err(|error| format!("memory: {error}"))?;
            Ok(pool)
        };
        let outputs = pool(&length)?;
        request.pools.push(RequestPool::Memory(pool(&inputs)?));
        request.pools.push(RequestPool::Memory(Arc::clone(&outputs)));
        Ok(Arguments { request, outputs })
    }

    fn outputs(&self, one: &RandomModel, result: &ExecutionResult) -> Result<Vec<Tensor>, String> {
        if result.status != ErrorStatus::None {
            return Err(format!("status {}", result.status));
        }
        let graph = &one.model.main;
        let mut outputs = Vec::with_capacity(graph.output_indexes.len());
        for (position, operand) in graph.output_indexes.iter().enumerate() {
            let ty = graph.operands[*operand as usize].ty;
            let known = || one.shape(*operand).map(|shape| shape.dims.as_slice().into());
            let told = result.output_shapes.get(position);
            let dims: Dimensions =
                told.map(|shape| shape.dimensions.clone()).or_else(known).unwrap_or_default();
            let length = ty.byte_length(&dims).and_then(|length| usize::try_from(length).ok());
            let location = self.request.outputs[position].location;
            let length = length.filter(|length| *length <= location.length as usize);
            let length = length.ok_or_else(|| {
                format!("output {position} has the shape {dims:?}, which its memory cannot hold")
            })?;
            let mut bytes = vec![0; length];
            let read = self.outputs.read(location.offset.into(), &mut bytes);
            read.map_err(|error| format!("output {position}: {error}"))?;
            outputs.push(Tensor { dims, bytes });
        }
        Ok(outputs)
    }
}

/// Room for an argument at the end of a pool.
fn place(pool: &mut Vec<u8>, length: usize) -> DataLocation {
    pool.resize(pool.len().next_multiple_of(ALIGNMENT.max(8)), 0);
    let location = crate::model::location(0, pool.len(), length);
    pool.resize(pool.len() + length, 0);
    location
}
