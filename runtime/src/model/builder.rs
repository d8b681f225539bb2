//! Operands and operations, one by one.

use std::collections::BTreeMap;
use std::sync::Arc;

use burst_hal::validate::{
    MAX_OPERANDS, MAX_OPERATION_OPERANDS, MAX_OPERATIONS, validate_extension_operand,
    validate_operand_type,
};
use burst_hal::{
    ExtensionCode, ExtensionOperandType, ExtraParams, HalVersion, Model, Operand, OperandLifeTime,
    OperandType, Operation, OperationType, Pool, Subgraph, forms,
};

use super::extensions::Extensions;
use crate::error::{Error, Result};
use crate::memory::Memory;

/// The type of an operand as an application says it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperandTypeDesc {
    /// Its number.
    pub code: i32,
    /// Sizes along each axis; 0 for one that is not known.
    pub dimensions: Vec<u32>,
    /// Real value of one step of a quantized type.
    pub scale: f32,
    /// Stored value that stands for real 0.
    pub zero_point: i32,
}

/// A model that is being built.
#[derive(Debug, Default)]
pub(super) struct Builder {
    /// Lifetimes are right, locations are not known yet.
    pub(super) graph: Subgraph,
    pub(super) values: BTreeMap<u32, Value>,
    pub(super) relaxed: bool,
    pub(super) extensions: Extensions,
}

/// The value of a constant operand.
#[derive(Debug)]
pub(super) enum Value {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Bytes of a pool.
    Pool { pool: Pool, offset: u32, length: u32 },
    /// A finished model.
    Model(Arc<Model>),
}

impl OperandTypeDesc {
    /// As an operand of a graph.
    pub(crate) fn operand(&self) -> Operand {
        let ty = OperandType::from_code(self.code);
        Operand {
            dimensions: self.dimensions.iter().copied().collect(),
            scale: self.scale,
            zero_point: self.zero_point,
            ..Operand::new(ty, OperandLifeTime::TemporaryVariable)
        }
    }
}

impl Builder {
    pub(super) fn add_operand(
        &mut self,
        ty: &OperandTypeDesc,
        extension: Option<&ExtensionOperandType>,
    ) -> Result<u32> {
        if self.graph.operands.len() >= MAX_OPERANDS {
            return Err(Error::bad_data(format!("more than {MAX_OPERANDS} operands")));
        }
        let operand = ty.operand();
        validate_operand_type(&operand, HalVersion::LATEST).map_err(Error::bad_data)?;
        if let Some(extension) = extension {
            validate_extension_operand(&operand, extension).map_err(Error::bad_data)?;
        }
        self.graph.operands.push(operand);
        Ok(u32::try_from(self.graph.operands.len() - 1).unwrap_or(u32::MAX))
    }

    pub(super) fn operand_type(&self, index: i32) -> Result<OperandType> {
        Ok(self.operand(index)?.1.ty)
    }

    fn operand(&self, index: i32) -> Result<(u32, &Operand)> {
        let position = usize::try_from(index).ok();
        let found = position.and_then(|position| self.graph.operands.get(position));
        let count = self.graph.operands.len();
        let unknown = || Error::bad_data(format!("operand {index} of {count}"));
        let operand = found.ok_or_else(unknown)?;
        Ok((u32::try_from(index).unwrap_or_default(), operand))
    }

    fn operand_mut(&mut self, index: u32) -> Option<&mut Operand> {
        usize::try_from(index).ok().and_then(|position| self.graph.operands.get_mut(position))
    }

    /// Makes an operand a constant, whatever it was before.
    fn make_constant(&mut self, index: u32, lifetime: OperandLifeTime, value: Option<Value>) {
        if let Some(operand) = self.operand_mut(index) {
            operand.lifetime = lifetime;
        }
        match value {
            Some(value) => self.values.insert(index, value),
            None => self.values.remove(&index),
        };
    }

    pub(super) fn set_value(
        &mut self,
        index: i32,
        value: Option<&[u8]>,
        extension: Option<&ExtensionOperandType>,
    ) -> Result<()> {
        let (index, operand) = self.operand(index)?;
        let Some(bytes) = value else {
            self.make_constant(index, OperandLifeTime::NoValue, None);
            return Ok(());
        };
        check_length(operand, bytes.len(), extension)?;
        let value = Value::Bytes(bytes.to_vec());
        self.make_constant(index, OperandLifeTime::ConstantCopy, Some(value));
        Ok(())
    }

    pub(super) fn set_value_from_memory(
        &mut self,
        index: i32,
        memory: &Memory,
        (offset, length): (usize, usize),
        extension: Option<&ExtensionOperandType>,
    ) -> Result<()> {
        let (index, operand) = self.operand(index)?;
        if memory.roled().is_some() {
            return Err(Error::bad_data(
                "memory for roles serves for executions, not for constants",
            ));
        }
        check_length(operand, length, extension)?;
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= memory.size());
        if !is_inside {
            let size = memory.size();
            let outside = format!("{length} bytes from {offset} on, of a memory of {size}");
            return Err(Error::bad_data(outside));
        }
        let (pool, offset) = memory.place(offset, length)?;
        let length = u32::try_from(length).map_err(Error::bad_data)?;
        let value = Value::Pool { pool, offset, length };
        self.make_constant(index, OperandLifeTime::ConstantReference, Some(value));
        Ok(())
    }

    pub(super) fn set_value_from_model(&mut self, index: i32, value: Arc<Model>) -> Result<()> {
        let (index, operand) = self.operand(index)?;
        if operand.ty != OperandType::Subgraph {
            let ty = operand.ty;
            return Err(Error::bad_data(format!(
                "operand {index} is {ty}, and no reference to a model"
            )));
        }
        self.make_constant(index, OperandLifeTime::Subgraph, Some(Value::Model(value)));
        Ok(())
    }

    pub(super) fn set_channel_scales(
        &mut self,
        index: i32,
        channel_dim: u32,
        scales: &[f32],
    ) -> Result<()> {
        let (index, operand) = self.operand(index)?;
        if operand.ty != OperandType::TensorQuant8SymmPerChannel {
            return Err(Error::bad_data(format!("operand {index} is {}", operand.ty)));
        }
        let size = usize::try_from(channel_dim).ok();
        let size = size.and_then(|axis| operand.dimensions.get(axis).copied());
        let count = u32::try_from(scales.len()).unwrap_or(u32::MAX);
        if size != Some(count) || count == 0 {
            let size = size.map_or("no size".to_owned(), |size| size.to_string());
            let wrong = format!("{count} scales for dimension {channel_dim}, which has {size}");
            return Err(Error::bad_data(wrong));
        }
        if let Some(scale) = scales.iter().find(|scale| !(**scale > 0.0 && scale.is_finite())) {
            return Err(Error::bad_data(format!("a scale of {scale}")));
        }
        if let Some(operand) = self.operand_mut(index) {
            operand.extra_params = ExtraParams::ChannelQuant { scales: scales.into(), channel_dim };
        }
        Ok(())
    }

    pub(super) fn set_extension_data(&mut self, index: i32, data: Option<&[u8]>) -> Result<()> {
        let (index, operand) = self.operand(index)?;
        if !matches!(operand.ty, OperandType::Extension(_)) {
            return Err(Error::bad_data(format!("operand {index} is of no extension's type")));
        }
        if data.is_some_and(<[u8]>::is_empty) {
            return Err(Error::bad_data("a pointer to no bytes"));
        }
        if let Some(operand) = self.operand_mut(index) {
            operand.extra_params =
                data.map_or(ExtraParams::None, |bytes| ExtraParams::Extension(bytes.into()));
        }
        Ok(())
    }

    pub(super) fn add_operation(&mut self, ty: i32, inputs: &[u32], outputs: &[u32]) -> Result<()> {
        let ty = OperationType::from_code(ty);
        // A prefix stands for an extension once the model has asked for one of its codes.
        let is_asked_for = |code: ExtensionCode| self.extensions.name_of(code.prefix).is_some();
        let is_known = ExtensionCode::of_operation(ty).is_none_or(is_asked_for);
        if ty.since().is_none() || !is_known {
            return Err(Error::bad_data(format!("there is no operation {}", ty.code())));
        }
        if self.graph.operations.len() >= MAX_OPERATIONS {
            return Err(Error::bad_data(format!("more than {MAX_OPERATIONS} operations")));
        }
        let longest = inputs.len().max(outputs.len());
        if longest > MAX_OPERATION_OPERANDS {
            let limit = MAX_OPERATION_OPERANDS;
            return Err(Error::bad_data(format!(
                "{longest} operands of one operation; {limit} may be"
            )));
        }
        let count = self.graph.operands.len();
        let is_known = |index: &&u32| usize::try_from(**index).is_ok_and(|index| index < count);
        if let Some(unknown) = inputs.iter().chain(outputs).find(|index| !is_known(index)) {
            return Err(Error::bad_data(format!("{ty} of operand {unknown} of {count}")));
        }
        let operation = Operation { ty, inputs: inputs.to_vec(), outputs: outputs.to_vec() };
        // Constants are looked at when the model is finished: they may be set later.
        if forms::since(&Model::default(), &self.graph, &operation).is_none() {
            return Err(Error::bad_data(format!(
                "no version of the HAL has {ty} of these operands"
            )));
        }
        self.graph.operations.push(operation);
        Ok(())
    }

    /// All of it is checked before anything changes.
    pub(super) fn identify(&mut self, inputs: &[u32], outputs: &[u32]) -> Result<()> {
        let mut seen = vec![false; self.graph.operands.len()];
        for index in inputs.iter().chain(outputs) {
            let position = usize::try_from(*index).unwrap_or(usize::MAX);
            let operand = self.graph.operands.get(position);
            let count = self.graph.operands.len();
            let operand =
                operand.ok_or_else(|| Error::bad_data(format!("operand {index} of {count}")))?;
            if std::mem::replace(&mut seen[position], true) {
                return Err(Error::bad_data(format!("operand {index} stands there twice")));
            }
            if operand.lifetime != OperandLifeTime::TemporaryVariable {
                let taken = format!("operand {index} is something else already");
                return Err(Error::bad_data(taken));
            }
        }
        let lists =
            [(inputs, OperandLifeTime::SubgraphInput), (outputs, OperandLifeTime::SubgraphOutput)];
        for (indexes, lifetime) in lists {
            for index in indexes {
                if let Some(operand) = self.operand_mut(*index) {
                    operand.lifetime = lifetime;
                }
            }
        }
        self.graph.input_indexes.extend(inputs);
        self.graph.output_indexes.extend(outputs);
        Ok(())
    }
}

/// Refuses a constant of another length than its type says.
fn check_length(
    operand: &Operand,
    found: usize,
    extension: Option<&ExtensionOperandType>,
) -> Result<()> {
    if operand.ty == OperandType::Subgraph {
        return Err(Error::bad_data("a reference to a model has no bytes"));
    }
    let is_tensor = extension.map_or(operand.ty.is_tensor(), |ty| ty.is_tensor);
    let dimensions = &operand.dimensions;
    if is_tensor && (dimensions.is_empty() || dimensions.contains(&0)) {
        return Err(Error::bad_data("a constant of unknown size"));
    }
    let expected = match extension {
        Some(extension) => extension.byte_length(dimensions),
        None if operand.ty.is_oem() => None,
        None => operand.ty.byte_length(dimensions),
    };
    match expected {
        Some(expected) if expected != found as u64 => {
            Err(Error::bad_data(format!("{found} bytes for a value of {expected}")))
        }
        _ => Ok(()),
    }
}
