//! The structure of a model as bytes: everything but the values of its constants.
//!
//! Numbers are little-endian and of fixed width; every list begins with its count. There is one way to
//! write a model, and a reader that takes nothing else: an index that names nothing is refused here, so that whoever
//! uses the model may follow each of them.
//!
//! ```text
//! model       relaxed u8 | extensions: count u32, each name: count u32, bytes; prefix u16
//!             | graphs besides the main one u32 | main graph | each other graph
//! graph       operands: count u32, each an operand | operations: count u32, each an operation
//!             | inputs: indexes | outputs: indexes
//! operand     type i32 | lifetime u8 | consumers u32 | scale f32 | zero point i32 | dimensions: indexes
//!             | offset u32 | length u32 | extra u8: 0 none
//!                                                  1 channels: dimension u32, count u32, scales f32
//!                                                  2 extension: count u32, bytes
//! operation   type i32 | inputs: indexes | outputs: indexes
//! indexes     count u32, each u32
//! ```
//! Every constant is one of those that travel with the model; its offset is that in the values of the file.
//! A constant of length 0 has a value that no step of a plan reads.

use burst_hal::validate::{
    MAX_EXTENSION_NAME_BYTES, MAX_EXTENSIONS, MAX_OPERANDS, MAX_OPERATION_OPERANDS, MAX_OPERATIONS,
    MAX_RANK, MAX_SUBGRAPHS,
};
use burst_hal::{
    DataLocation, ExtraParams, Model, Operand, OperandLifeTime, OperandType, Operation,
    OperationType, Subgraph,
};

use super::bytes::{Malformed, Reader, put_u32, put_u32s};

/// Longest structure; the largest real models have some hundred KiB.
pub(super) const STRUCTURE_MAX: u64 = 16 << 20;
/// Bytes of memory that a byte of a structure becomes at most, with what an allocator adds to small
/// pieces: an operation without operands becomes most.
pub(super) const DECODED_PER_BYTE: u64 = 16;
/// Inputs, or outputs, of a graph.
const MAX_INDEXES: usize = MAX_OPERANDS;

/// An operand of a model: which graph, 0 for the main one, and which position.
pub(super) type OperandPlace = (u32, usize);

/// Writes a structure. `location` says where a constant lies among the values.
pub(super) fn encode(
    model: &Model,
    location: impl Fn(OperandPlace, &Operand) -> Option<DataLocation>,
) -> Vec<u8> {
    let mut out = vec![u8::from(model.relax_computation_float32_to_float16)];
    put_count(&mut out, model.extension_name_to_prefix.len());
    for (name, prefix) in &model.extension_name_to_prefix {
        put_count(&mut out, name.len());
        out.extend(name.as_bytes());
        out.extend(prefix.to_le_bytes());
    }
    put_count(&mut out, model.referenced.len());
    for (number, graph) in (0..).zip(std::iter::once(&model.main).chain(&model.referenced)) {
        put_count(&mut out, graph.operands.len());
        for (index, operand) in graph.operands.iter().enumerate() {
            let location = location((number, index), operand);
            put_operand(&mut out, operand, location);
        }
        put_count(&mut out, graph.operations.len());
        for operation in &graph.operations {
            out.extend(operation.ty.code().to_le_bytes());
            put_u32s(&mut out, &operation.inputs);
            put_u32s(&mut out, &operation.outputs);
        }
        put_u32s(&mut out, &graph.input_indexes);
        put_u32s(&mut out, &graph.output_indexes);
    }
    out
}

/// Writes the structure of a model that [`decode`] has read.
#[must_use]
pub fn encode_again(model: &Model) -> Vec<u8> {
    encode(model, |_, operand| is_constant(operand.lifetime).then_some(operand.location))
}

fn put_operand(out: &mut Vec<u8>, operand: &Operand, constant: Option<DataLocation>) {
    let (lifetime, location) = match is_constant(operand.lifetime) {
        // One whose place is not known is read by nobody.
        true => (OperandLifeTime::ConstantCopy, constant.unwrap_or_default()),
        false => (operand.lifetime, operand.location),
    };
    out.extend(operand.ty.code().to_le_bytes());
    out.push(u8::try_from(lifetime.code()).unwrap_or(u8::MAX));
    put_u32(out, operand.number_of_consumers);
    out.extend(operand.scale.to_le_bytes());
    out.extend(operand.zero_point.to_le_bytes());
    put_u32s(out, &operand.dimensions);
    put_u32(out, location.offset);
    put_u32(out, location.length);
    match &operand.extra_params {
        ExtraParams::None => out.push(0),
        ExtraParams::ChannelQuant { scales, channel_dim } => {
            out.push(1);
            put_u32(out, *channel_dim);
            put_count(out, scales.len());
            scales.iter().for_each(|scale| out.extend(scale.to_le_bytes()));
        }
        ExtraParams::Extension(bytes) => {
            out.push(2);
            put_count(out, bytes.len());
            out.extend(&**bytes);
        }
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    // A legal model has far fewer of anything; more would be refused when it is read.
    put_u32(out, u32::try_from(count).unwrap_or(u32::MAX));
}

fn is_constant(lifetime: OperandLifeTime) -> bool {
    matches!(lifetime, OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference)
}

/// Reads a structure whose constants lie in so many bytes of values. The model has no values yet.
///
/// # Errors
/// What is wrong with it.
pub fn decode(structure: &[u8], value_bytes: u64) -> Result<Model, Malformed> {
    let mut reader = Reader::new(structure);
    let relaxed = reader.flag()?;
    let extensions = reader.list(MAX_EXTENSIONS, 6, |reader| {
        let name = reader.bytes(MAX_EXTENSION_NAME_BYTES)?;
        let name = std::str::from_utf8(name).map_err(|_| "a name is not UTF-8")?;
        Ok((name.to_owned(), reader.u16()?))
    })?;
    let referenced = reader.count(MAX_SUBGRAPHS, 16)?;
    let mut left = Left { operands: MAX_OPERANDS, operations: MAX_OPERATIONS };
    let limits = Limits { referenced, value_bytes };
    let main = graph(&mut reader, &limits, &mut left)?;
    let mut others = Vec::with_capacity(referenced);
    for _ in 0..referenced {
        others.push(graph(&mut reader, &limits, &mut left)?);
    }
    reader.end()?;
    Ok(Model {
        main,
        referenced: others,
        relax_computation_float32_to_float16: relaxed,
        extension_name_to_prefix: extensions,
        ..Model::default()
    })
}

/// What an operand may name.
struct Limits {
    referenced: usize,
    value_bytes: u64,
}

/// What all graphs together may still have.
struct Left {
    operands: usize,
    operations: usize,
}

fn graph(reader: &mut Reader<'_>, limits: &Limits, left: &mut Left) -> Result<Subgraph, Malformed> {
    let operands = reader.list(left.operands, 34, |reader| operand(reader, limits))?;
    left.operands -= operands.len();
    let count = operands.len();
    let operations = reader.list(left.operations, 12, |reader| {
        Ok(Operation {
            ty: OperationType::from_code(reader.i32()?),
            inputs: reader.indexes(MAX_OPERATION_OPERANDS, count)?,
            outputs: reader.indexes(MAX_OPERATION_OPERANDS, count)?,
        })
    })?;
    left.operations -= operations.len();
    let input_indexes = reader.indexes(MAX_INDEXES, count)?;
    let output_indexes = reader.indexes(MAX_INDEXES, count)?;
    Ok(Subgraph { operands, operations, input_indexes, output_indexes })
}

fn operand(reader: &mut Reader<'_>, limits: &Limits) -> Result<Operand, Malformed> {
    let ty = OperandType::from_code(reader.i32()?);
    let lifetime = OperandLifeTime::from_code(i32::from(reader.u8()?));
    let lifetime = lifetime.ok_or("an operand has no lifetime that there is")?;
    let number_of_consumers = reader.u32()?;
    let scale = reader.f32()?;
    let zero_point = reader.i32()?;
    let dimensions = reader.indexes(MAX_RANK, usize::MAX)?;
    let location = DataLocation { pool_index: 0, offset: reader.u32()?, length: reader.u32()? };
    let end = u64::from(location.offset) + u64::from(location.length);
    match lifetime {
        OperandLifeTime::ConstantReference => return Err("a constant lies in a pool"),
        OperandLifeTime::ConstantCopy if end > limits.value_bytes => {
            return Err("a constant lies outside of the values");
        }
        OperandLifeTime::Subgraph if location.offset as usize >= limits.referenced => {
            return Err("an operand names a graph that is not there");
        }
        _ => {}
    }
    let extra_params = match reader.u8()? {
        0 => ExtraParams::None,
        1 => {
            let channel_dim = reader.u32()?;
            let scales = reader.list(reader.left(), 4, Reader::f32)?;
            ExtraParams::ChannelQuant { scales: scales.into(), channel_dim }
        }
        2 => ExtraParams::Extension(reader.bytes(reader.left())?.into()),
        _ => return Err("an operand has parameters of an unknown kind"),
    };
    Ok(Operand {
        ty,
        dimensions: dimensions.into(),
        number_of_consumers,
        scale,
        zero_point,
        lifetime,
        location,
        extra_params,
    })
}

#[cfg(test)]
#[path = "structure_tests.rs"]
mod tests;
