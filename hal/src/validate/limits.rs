//! How much of everything a model or a request may bring.
//!
//! A peer decides all of these counts; each limit keeps what validation and a driver set aside
//! for one model within reason, and lies far above what real models have.

/// Operands of all graphs of a model together: the largest known mobile models have some
/// thousands. Bounds the tables that validation and planning keep per operand to a few MiB.
pub const MAX_OPERANDS: usize = 1 << 18;
/// Operations of all graphs of a model together, for the same reason.
pub const MAX_OPERATIONS: usize = 1 << 17;
/// Operands that one operation may read, or write: a CONCATENATION or a SPLIT of that many parts
/// is beyond any real model, and with [`MAX_OPERATIONS`] it keeps use counts within 32 bits.
pub const MAX_OPERATION_OPERANDS: usize = 1 << 14;
/// Subgraphs: IF and WHILE refer to two each, and no known model has more than some dozens.
pub const MAX_SUBGRAPHS: usize = 1 << 10;
/// How deep control flow may nest, the main graph counted: execution recurses once per level.
pub const MAX_NESTING: usize = 16;
/// Dimensions of an operand. The HAL names no limit, and ABS, CAST, SLICE or TILE take any rank: this is a
/// limit of ours, two axes above the six of the largest known models. It bounds what is kept and copied for
/// each shape. A model beyond it is legal, and refused with RESOURCE_EXHAUSTED_PERSISTENT.
pub const MAX_RANK: usize = 8;
/// Memory pools of a model: each costs a descriptor and a mapping in the service.
pub const MAX_MODEL_POOLS: usize = 1 << 10;
/// Memory pools of a request, for the same reason.
pub const MAX_REQUEST_POOLS: usize = 1 << 10;
/// Lengths of all constants of a model together: a driver may keep a repacked copy of each, and
/// many operands may name the same bytes of a pool.
pub const MAX_CONSTANT_BYTES: u64 = 1 << 32;
/// Extension names of a model: the list is searched for every operand of an extension's type.
pub const MAX_EXTENSIONS: usize = 64;
/// Models that a buffer of a driver may have roles in: those of one application's pipeline.
pub const MAX_BUFFER_MODELS: usize = 64;
/// Roles of a buffer, as inputs and outputs together: a few for each of its models.
pub const MAX_BUFFER_ROLES: usize = 1 << 10;
/// Bytes of an extension's name: as long as a domain name may be.
pub const MAX_EXTENSION_NAME_BYTES: usize = 253;

/// Which limit was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// [`MAX_OPERANDS`].
    Operands,
    /// [`MAX_OPERATIONS`].
    Operations,
    /// [`MAX_SUBGRAPHS`].
    Subgraphs,
    /// [`MAX_NESTING`].
    Nesting,
    /// [`MAX_MODEL_POOLS`].
    ModelPools,
    /// [`MAX_REQUEST_POOLS`].
    RequestPools,
    /// [`MAX_CONSTANT_BYTES`].
    ConstantBytes,
    /// [`MAX_EXTENSIONS`].
    Extensions,
    /// [`MAX_BUFFER_MODELS`].
    BufferModels,
    /// [`MAX_BUFFER_ROLES`].
    BufferRoles,
}

impl Limit {
    /// The largest number allowed.
    #[must_use]
    pub const fn maximum(self) -> u64 {
        match self {
            Limit::Operands => MAX_OPERANDS as u64,
            Limit::Operations => MAX_OPERATIONS as u64,
            Limit::Subgraphs => MAX_SUBGRAPHS as u64,
            Limit::Nesting => MAX_NESTING as u64,
            Limit::ModelPools => MAX_MODEL_POOLS as u64,
            Limit::RequestPools => MAX_REQUEST_POOLS as u64,
            Limit::ConstantBytes => MAX_CONSTANT_BYTES,
            Limit::Extensions => MAX_EXTENSIONS as u64,
            Limit::BufferModels => MAX_BUFFER_MODELS as u64,
            Limit::BufferRoles => MAX_BUFFER_ROLES as u64,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Limit::Operands => "operands",
            Limit::Operations => "operations",
            Limit::Subgraphs => "subgraphs",
            Limit::Nesting => "levels of nested control flow",
            Limit::ModelPools => "memory pools of a model",
            Limit::RequestPools => "memory pools of a request",
            Limit::ConstantBytes => "bytes of constants",
            Limit::Extensions => "extensions",
            Limit::BufferModels => "models of a buffer",
            Limit::BufferRoles => "roles of a buffer",
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
