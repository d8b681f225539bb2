//! A model as bytes: its structure as one encoded record, its constants as they are.
//!
//! Both lie one after the other in a memory that is sealed against writing, so that the service
//! can borrow the constants instead of copying them:
//!
//! ```text
//! 0            structure            values (aligned)            end
//! | structure  | zeros              | operand values            |
//! ```
//! The model's pools are descriptors of their own, in the order of [`ModelBody::pool_lengths`].

use bincode::{Decode, Encode};
use burst_hal::{
    DataLocation, ExtraParams, Model, Operand, OperandLifeTime, OperandType, OperandValues,
    Operation, OperationType, Pool, Subgraph,
};

use super::bounded::{List, Text};
use crate::WireError;

/// Where the constants begin: a multiple of this, so that they are aligned for any kernel.
pub const VALUES_ALIGNMENT: u64 = 64;

/// Longest structure; the largest real models have some hundred KiB.
const STRUCTURE_MAX: usize = 16 << 20;
/// Pools of one model; their descriptors go with one message.
const MODEL_POOLS_MAX: usize = 128;
/// Subgraphs besides the main one.
const SUBGRAPHS_MAX: usize = 1024;
/// Operands of one subgraph.
const OPERANDS_MAX: usize = 1 << 18;
/// Operations of one subgraph.
const OPERATIONS_MAX: usize = 1 << 16;
/// Operands of one operation, or inputs or outputs of one subgraph.
const INDEXES_MAX: usize = 1 << 16;
/// Axes of one operand.
const RANK_MAX: usize = 64;
/// Scales of one operand: one per channel.
const SCALES_MAX: usize = 1 << 20;
/// Bytes of memory that a byte of a structure becomes at most while it is decoded. Graphs become most,
/// twelve times as much while their list grows; the rest is what an allocator adds to small pieces.
const DECODED_PER_BYTE: u64 = 16;
/// Bytes an extension may give one operand.
const EXTENSION_BYTES_MAX: usize = 1 << 20;
/// Extensions of one model.
const EXTENSIONS_MAX: usize = 64;

/// Where a model lies in the memory that comes with a message, and how large its pools are.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ModelBody {
    /// Bytes of the structure, from 0 on.
    pub structure_bytes: u64,
    /// Bytes of the constants, from [`ModelBody::values_at`] on.
    pub values_bytes: u64,
    /// Bytes of each of the model's pools.
    pub pool_lengths: List<u64, MODEL_POOLS_MAX>,
}

impl ModelBody {
    /// Descriptors that go with it: its own memory, and the pools.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        1 + self.pool_lengths.0.len()
    }

    /// First byte of the constants.
    ///
    /// # Errors
    /// [`WireError::Limit`] for a structure over its limit.
    pub fn values_at(&self) -> Result<u64, WireError> {
        let limit = STRUCTURE_MAX as u64;
        if self.structure_bytes > limit {
            return Err(WireError::Limit { count: self.structure_bytes, limit });
        }
        Ok(self.structure_bytes.next_multiple_of(VALUES_ALIGNMENT))
    }

    /// Bytes of memory that decoding the structure takes at most, as the decoder builds its lists and
    /// a model of them: known before anything is decoded, so that it can be charged to somebody.
    #[must_use]
    pub fn decoded_bytes(&self) -> u64 {
        self.structure_bytes.saturating_mul(DECODED_PER_BYTE)
    }

    /// Bytes of the whole memory.
    ///
    /// # Errors
    /// [`WireError::Limit`] for lengths that no memory has.
    pub fn total_bytes(&self) -> Result<u64, WireError> {
        let limit = u64::MAX;
        let count = self.values_bytes;
        self.values_at()?.checked_add(count).ok_or(WireError::Limit { count, limit })
    }
}

#[derive(Encode, Decode)]
struct WireModel {
    main: WireSubgraph,
    referenced: List<WireSubgraph, SUBGRAPHS_MAX>,
    relax: bool,
    extensions: List<(Text<256>, u16), EXTENSIONS_MAX>,
}

#[derive(Encode, Decode)]
struct WireSubgraph {
    operands: List<WireOperand, OPERANDS_MAX>,
    operations: List<WireOperation, OPERATIONS_MAX>,
    inputs: List<u32, INDEXES_MAX>,
    outputs: List<u32, INDEXES_MAX>,
}

#[derive(Encode, Decode)]
struct WireOperand {
    ty: i32,
    dimensions: List<u32, RANK_MAX>,
    consumers: u32,
    scale: f32,
    zero_point: i32,
    lifetime: i32,
    location: (u32, u32, u32),
    extra: WireExtra,
}

#[derive(Encode, Decode)]
enum WireExtra {
    None,
    ChannelQuant { scales: List<f32, SCALES_MAX>, channel_dim: u32 },
    Extension(List<u8, EXTENSION_BYTES_MAX>),
}

#[derive(Encode, Decode)]
struct WireOperation {
    ty: i32,
    inputs: List<u32, INDEXES_MAX>,
    outputs: List<u32, INDEXES_MAX>,
}

/// A model's structure as bytes, and what a message says of it.
///
/// # Errors
/// [`WireError::MessageTooLong`] or [`WireError::Malformed`] for a model over one of the limits.
pub fn encode_model(model: &Model) -> Result<(Vec<u8>, ModelBody), WireError> {
    let pools: Vec<u64> = model.pools.iter().map(|pool| pool.len()).collect();
    if pools.len() > MODEL_POOLS_MAX {
        return Err(WireError::Limit { count: pools.len() as u64, limit: MODEL_POOLS_MAX as u64 });
    }
    let wire = WireModel {
        main: wire_subgraph(&model.main),
        referenced: model.referenced.iter().map(wire_subgraph).collect(),
        relax: model.relax_computation_float32_to_float16,
        extensions: model
            .extension_name_to_prefix
            .iter()
            .map(|(name, prefix)| (Text::cut(name), *prefix))
            .collect(),
    };
    let structure = super::encode_within::<_, STRUCTURE_MAX>(&wire)?;
    let body = ModelBody {
        structure_bytes: structure.len() as u64,
        values_bytes: model.operand_values.len() as u64,
        pool_lengths: List(pools),
    };
    Ok((structure, body))
}

/// A model from the bytes of its structure, its constants and its pools.
///
/// Codes of types that do not exist are kept; whether the model is legal is for validation.
///
/// # Errors
/// A [`WireError`] for bytes that are no structure.
pub fn decode_model(
    structure: &[u8],
    operand_values: OperandValues,
    pools: Vec<Pool>,
) -> Result<Model, WireError> {
    let wire: WireModel = super::decode_within::<_, STRUCTURE_MAX>(structure)?;
    Ok(Model {
        main: subgraph(wire.main)?,
        referenced: wire.referenced.0.into_iter().map(subgraph).collect::<Result<_, _>>()?,
        operand_values,
        pools,
        relax_computation_float32_to_float16: wire.relax,
        extension_name_to_prefix: wire
            .extensions
            .0
            .into_iter()
            .map(|(name, prefix)| (name.as_str().to_owned(), prefix))
            .collect(),
    })
}

fn wire_subgraph(subgraph: &Subgraph) -> WireSubgraph {
    let operation = |operation: &Operation| WireOperation {
        ty: operation.ty.code(),
        inputs: List(operation.inputs.clone()),
        outputs: List(operation.outputs.clone()),
    };
    WireSubgraph {
        operands: subgraph.operands.iter().map(wire_operand).collect(),
        operations: subgraph.operations.iter().map(operation).collect(),
        inputs: List(subgraph.input_indexes.clone()),
        outputs: List(subgraph.output_indexes.clone()),
    }
}

fn wire_operand(operand: &Operand) -> WireOperand {
    let DataLocation { pool_index, offset, length } = operand.location;
    WireOperand {
        ty: operand.ty.code(),
        dimensions: operand.dimensions.iter().copied().collect(),
        consumers: operand.number_of_consumers,
        scale: operand.scale,
        zero_point: operand.zero_point,
        lifetime: operand.lifetime.code(),
        location: (pool_index, offset, length),
        extra: match &operand.extra_params {
            ExtraParams::None => WireExtra::None,
            ExtraParams::ChannelQuant { scales, channel_dim } => WireExtra::ChannelQuant {
                scales: scales.iter().copied().collect(),
                channel_dim: *channel_dim,
            },
            ExtraParams::Extension(bytes) => WireExtra::Extension(List(bytes.to_vec())),
        },
    }
}

fn subgraph(wire: WireSubgraph) -> Result<Subgraph, WireError> {
    let operation = |wire: WireOperation| Operation {
        ty: OperationType::from_code(wire.ty),
        inputs: wire.inputs.0,
        outputs: wire.outputs.0,
    };
    Ok(Subgraph {
        operands: wire.operands.0.into_iter().map(operand).collect::<Result<_, _>>()?,
        operations: wire.operations.0.into_iter().map(operation).collect(),
        input_indexes: wire.inputs.0,
        output_indexes: wire.outputs.0,
    })
}

fn operand(wire: WireOperand) -> Result<Operand, WireError> {
    let (pool_index, offset, length) = wire.location;
    let lifetime = OperandLifeTime::from_code(wire.lifetime).ok_or(WireError::Value {
        what: "an operand's lifetime",
        value: i64::from(wire.lifetime),
    })?;
    Ok(Operand {
        ty: OperandType::from_code(wire.ty),
        dimensions: wire.dimensions.0.as_slice().into(),
        number_of_consumers: wire.consumers,
        scale: wire.scale,
        zero_point: wire.zero_point,
        lifetime,
        location: DataLocation { pool_index, offset, length },
        extra_params: match wire.extra {
            WireExtra::None => ExtraParams::None,
            WireExtra::ChannelQuant { scales, channel_dim } => {
                ExtraParams::ChannelQuant { scales: scales.0.into(), channel_dim }
            }
            WireExtra::Extension(bytes) => ExtraParams::Extension(bytes.0.into()),
        },
    })
}
