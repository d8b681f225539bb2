//! From a model of the HAL to calls that build it.

use std::os::fd::AsFd;

use burst_client::ShmMemory;
use burst_hal::{ExtraParams, Memory as _, Model as HalModel, Operand, OperandLifeTime, Subgraph};

use super::objects::{DeviceHandle, Memory, Model};
use crate::{Error, OperandTypeDesc, Result};

/// A finished model, with the models that it refers to and the memories of its constants: the header asks
/// that these outlive it.
pub(super) struct BuiltModel {
    pub(super) model: Model,
    _referenced: Vec<Model>,
    _memories: Vec<Memory>,
}

/// Builds a model and all that it refers to.
///
/// # Errors
/// What the library answers to the first call that it refuses.
pub(super) fn build(device: &DeviceHandle, model: &HalModel) -> Result<BuiltModel> {
    let memories = model.pools.iter().map(|pool| memory_of(device, pool));
    let mut builder = Builder {
        device,
        model,
        memories: memories.collect::<Result<_>>()?,
        referenced: Vec::new(),
    };
    let main = builder.graph(&model.main, 0)?;
    Ok(BuiltModel { model: main, _referenced: builder.referenced, _memories: builder.memories })
}

/// A memory with a copy of a pool's bytes.
fn memory_of(device: &DeviceHandle, pool: &burst_hal::Pool) -> Result<Memory> {
    let length = usize::try_from(pool.len()).map_err(|_| Error::bad_data("a pool that long"))?;
    let mut bytes = vec![0; length];
    pool.read(0, &mut bytes)?;
    let copy = ShmMemory::create(length)?;
    copy.write(0, &bytes)?;
    let fd = copy.fd().ok_or_else(|| Error::op_failed("shared memory without a descriptor"))?;
    device.memory(fd.as_fd(), length)
}

struct Builder<'a> {
    device: &'a DeviceHandle,
    model: &'a HalModel,
    memories: Vec<Memory>,
    referenced: Vec<Model>,
}

impl Builder<'_> {
    /// Builds one graph, and before it those that it refers to. `depth` ends a circle of them.
    fn graph(&mut self, graph: &Subgraph, depth: usize) -> Result<Model> {
        if depth > burst_hal::validate::MAX_NESTING {
            return Err(Error::bad_data("graphs that refer to each other without end"));
        }
        let mut built = self.device.model()?;
        for (index, operand) in graph.operands.iter().enumerate() {
            built.add_operand(&desc(operand))?;
            if let ExtraParams::ChannelQuant { scales, channel_dim } = &operand.extra_params {
                built.set_scales(index, *channel_dim, scales)?;
            }
            self.value(&mut built, index, operand, depth)?;
        }
        for operation in &graph.operations {
            built.add_operation(operation.ty.code(), &operation.inputs, &operation.outputs)?;
        }
        built.identify(&graph.input_indexes, &graph.output_indexes)?;
        built.relax(self.model.relax_computation_float32_to_float16)?;
        built.finish()?;
        Ok(built)
    }

    fn value(
        &mut self,
        built: &mut Model,
        index: usize,
        operand: &Operand,
        depth: usize,
    ) -> Result<()> {
        let (offset, length) = (operand.location.offset as usize, operand.location.length as usize);
        match operand.lifetime {
            OperandLifeTime::TemporaryVariable
            | OperandLifeTime::SubgraphInput
            | OperandLifeTime::SubgraphOutput => Ok(()),
            OperandLifeTime::NoValue => built.set_value(index, None),
            OperandLifeTime::ConstantCopy => {
                let bytes = self.model.operand_values.get(offset..offset.saturating_add(length));
                let bytes = bytes.ok_or_else(|| Error::bad_data("a constant outside of them"))?;
                built.set_value(index, Some(bytes))
            }
            OperandLifeTime::ConstantReference => {
                let memory = self.memories.get(operand.location.pool_index as usize);
                let memory = memory.ok_or_else(|| Error::bad_data("a constant without a pool"))?;
                built.set_value_from_memory(index, memory, offset, length)
            }
            OperandLifeTime::Subgraph => {
                let graph = self.model.referenced.get(offset);
                let graph = graph.ok_or_else(|| Error::bad_data("a graph that there is not"))?;
                let referenced = self.graph(graph, depth + 1)?;
                built.set_value_from_model(index, &referenced)?;
                self.referenced.push(referenced);
                Ok(())
            }
        }
    }
}

fn desc(operand: &Operand) -> OperandTypeDesc {
    OperandTypeDesc {
        code: operand.ty.code(),
        dimensions: operand.dimensions.to_vec(),
        scale: operand.scale,
        zero_point: operand.zero_point,
    }
}
