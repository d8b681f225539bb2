//! A model: operands, operations, constants, and the subgraphs that control flow refers to.
//!
//! Source: `types.hal` of NNAPI 1.3, `Model`, `Subgraph`, `Operand`, `Operation`.

use std::ops::Deref;
use std::sync::Arc;

use crate::{OperandType, OperationType, Pool};

/// Sizes along each axis. For a model's operand 0 means "not known yet".
pub type Dimensions = smallvec::SmallVec<[u32; 6]>;

/// Where an operand's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandLifeTime {
    /// Made by one operation, used by others, gone afterwards.
    TemporaryVariable,
    /// An input of the (sub)graph.
    SubgraphInput,
    /// An output of the (sub)graph.
    SubgraphOutput,
    /// A constant in [`Model::operand_values`].
    ConstantCopy,
    /// A constant in one of [`Model::pools`].
    ConstantReference,
    /// An optional operand that was left out.
    NoValue,
    /// A reference to a subgraph (HAL 1.3).
    Subgraph,
}

impl OperandLifeTime {
    /// Every lifetime, by code.
    pub const ALL: [OperandLifeTime; 7] = [
        OperandLifeTime::TemporaryVariable,
        OperandLifeTime::SubgraphInput,
        OperandLifeTime::SubgraphOutput,
        OperandLifeTime::ConstantCopy,
        OperandLifeTime::ConstantReference,
        OperandLifeTime::NoValue,
        OperandLifeTime::Subgraph,
    ];

    /// The lifetime with this code, if there is one.
    #[must_use]
    pub fn from_code(code: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// The number of this lifetime in the HAL, on the wire and in files.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            OperandLifeTime::TemporaryVariable => 0,
            OperandLifeTime::SubgraphInput => 1,
            OperandLifeTime::SubgraphOutput => 2,
            OperandLifeTime::ConstantCopy => 3,
            OperandLifeTime::ConstantReference => 4,
            OperandLifeTime::NoValue => 5,
            OperandLifeTime::Subgraph => 6,
        }
    }
}

/// A range of bytes in a pool (or in [`Model::operand_values`], where the pool is 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DataLocation {
    /// Which pool of the model or request.
    pub pool_index: u32,
    /// First byte.
    pub offset: u32,
    /// How many bytes.
    pub length: u32,
}

impl DataLocation {
    /// Whether offset and length are 0, which in a request stands for all of the pool.
    #[must_use]
    pub const fn is_whole_pool(self) -> bool {
        self.offset == 0 && self.length == 0
    }

    /// The byte range of a request's argument in a pool of `size` bytes: all of the pool for
    /// [`Self::is_whole_pool`]; `None` where the range ends behind the pool.
    #[must_use]
    pub fn range_in(self, size: u64) -> Option<std::ops::Range<u64>> {
        if self.is_whole_pool() {
            return Some(0..size);
        }
        let start = u64::from(self.offset);
        let end = start + u64::from(self.length); // two 32-bit numbers: cannot overflow
        (end <= size).then_some(start..end)
    }
}

/// What an operand has beyond type, dimensions and one scale.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ExtraParams {
    /// Nothing.
    #[default]
    None,
    /// One scale per index of one dimension.
    ChannelQuant {
        /// The scales, as many as the dimension has indexes.
        scales: Arc<[f32]>,
        /// Which dimension.
        channel_dim: u32,
    },
    /// Bytes that an extension defines.
    Extension(Arc<[u8]>),
}

/// A value that operations read or write.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// Its type.
    pub ty: OperandType,
    /// Sizes along each axis; 0 for a size, and empty for a tensor's rank, means "not known yet".
    pub dimensions: Dimensions,
    /// How many times operations read it.
    pub number_of_consumers: u32,
    /// Real value of one step of a quantized type; 0 where there is none.
    pub scale: f32,
    /// Stored value that stands for real 0.
    pub zero_point: i32,
    /// Where its value comes from.
    pub lifetime: OperandLifeTime,
    /// Where a constant lies; for a subgraph operand `offset` is the subgraph's index.
    pub location: DataLocation,
    /// Per-channel scales or extension bytes.
    pub extra_params: ExtraParams,
}

impl Operand {
    /// An operand of this type, with everything else empty and read by nobody.
    #[must_use]
    pub fn new(ty: OperandType, lifetime: OperandLifeTime) -> Self {
        Operand {
            ty,
            dimensions: Dimensions::new(),
            number_of_consumers: 0,
            scale: 0.0,
            zero_point: 0,
            lifetime,
            location: DataLocation::default(),
            extra_params: ExtraParams::None,
        }
    }
}

/// One computation: what it does, what it reads, what it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub ty: OperationType,
    /// Operand indexes it reads.
    pub inputs: Vec<u32>,
    /// Operand indexes it writes.
    pub outputs: Vec<u32>,
}

/// A graph of operations in execution order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Subgraph {
    /// All values.
    pub operands: Vec<Operand>,
    /// All computations, each after those it depends on.
    pub operations: Vec<Operation>,
    /// Graph inputs, by operand index.
    pub input_indexes: Vec<u32>,
    /// Graph outputs, by operand index.
    pub output_indexes: Vec<u32>,
}

impl Subgraph {
    /// For each operand how often operations read it; an operand that one operation reads twice
    /// counts twice. Indexes that no operand has are ignored.
    #[must_use]
    pub fn count_consumers(&self) -> Vec<u32> {
        let mut counts = vec![0_u32; self.operands.len()];
        for index in self.operations.iter().flat_map(|operation| &operation.inputs) {
            let position = usize::try_from(*index).unwrap_or(usize::MAX);
            if let Some(count) = counts.get_mut(position) {
                *count = count.saturating_add(1);
            }
        }
        counts
    }
}

/// The bytes of all [`OperandLifeTime::ConstantCopy`] operands, shared and never written.
#[derive(Clone)]
pub struct OperandValues(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl OperandValues {
    /// Takes over any holder of bytes: a vector, or a sealed mapping.
    #[must_use]
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        OperandValues(Arc::new(bytes))
    }
}

impl Default for OperandValues {
    fn default() -> Self {
        OperandValues::new(Vec::new())
    }
}

impl Deref for OperandValues {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl std::fmt::Debug for OperandValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OperandValues({} bytes)", self.len())
    }
}

impl From<Vec<u8>> for OperandValues {
    fn from(bytes: Vec<u8>) -> Self {
        OperandValues::new(bytes)
    }
}

/// A whole model in the form of HAL 1.3. Models of earlier versions leave later fields empty.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// The graph that an execution runs.
    pub main: Subgraph,
    /// Graphs that control flow operations run.
    pub referenced: Vec<Subgraph>,
    /// Bytes of the constants that travel with the model.
    pub operand_values: OperandValues,
    /// Memory with the other constants.
    pub pools: Vec<Pool>,
    /// Whether float32 may be computed with the range and precision of float16.
    pub relax_computation_float32_to_float16: bool,
    /// Extension names and the prefixes that stand for them in type codes.
    pub extension_name_to_prefix: Vec<(String, u16)>,
}
