//! Why a model or a request is not legal. Plain numbers throughout: refusing costs no allocation.

use super::limits::{Limit, MAX_OPERATION_OPERANDS, MAX_RANK};
use crate::{ErrorStatus, Failure, HalVersion, OperandLifeTime, OperandType, OperationType};

/// Which graph of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GraphId {
    /// The one that an execution runs.
    Main,
    /// The one with this index in [`crate::Model::referenced`].
    Referenced(u32),
}

impl std::fmt::Display for GraphId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GraphId::Main => f.write_str("main graph"),
            GraphId::Referenced(index) => write!(f, "subgraph {index}"),
        }
    }
}

/// Whether an operand is an input or an output of its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Input.
    Input,
    /// Output.
    Output,
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Direction::Input => "input",
            Direction::Output => "output",
        })
    }
}

/// What is wrong with a model or a request, and where.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ValidationError {
    /// More of something than its limit allows.
    #[error("{found} {limit}, of which at most {} are allowed", .limit.maximum())]
    LimitExceeded {
        /// What there is too much of.
        limit: Limit,
        /// How much; for nesting where counting stopped.
        found: u64,
    },
    /// Something that the version has no place for yet.
    #[error("HAL {version} has no {what}")]
    NotYet {
        /// What.
        what: &'static str,
        /// The version.
        version: HalVersion,
    },
    /// A number that stands for nothing.
    #[error("no {what} has code {code}")]
    UnknownCode {
        /// What it should be.
        what: &'static str,
        /// The number.
        code: i32,
    },
    /// The main graph has no operands.
    #[error("the main graph has no operands")]
    NoOperands,
    /// The main graph has no operations.
    #[error("the main graph has no operations")]
    NoOperations,
    /// An extension's name is not in reverse domain form.
    #[error("extension {index} has a name that is not lower case in reverse domain form")]
    ExtensionName {
        /// Position in the list of extensions.
        index: u32,
    },
    /// An extension has the prefix of the base range.
    #[error("extension {index} has prefix 0, which stands for the base range")]
    ExtensionPrefixZero {
        /// Position in the list of extensions.
        index: u32,
    },
    /// Two extensions share name or prefix.
    #[error("extension {index} has a name or a prefix that stands in the list already")]
    ExtensionTwice {
        /// Position of the second one.
        index: u32,
    },
    /// An operand is wrong by itself, or is not used as its fields say.
    #[error("{graph}, operand {operand}: {fault}")]
    Operand {
        /// Its graph.
        graph: GraphId,
        /// Its index.
        operand: u32,
        /// What is wrong.
        fault: OperandFault,
    },
    /// An operation is wrong, or stands at the wrong position.
    #[error("{graph}, operation {operation}: {fault}")]
    Operation {
        /// Its graph.
        graph: GraphId,
        /// Its index.
        operation: u32,
        /// What is wrong.
        fault: OperationFault,
    },
    /// An entry of a graph's own list of inputs or outputs is wrong.
    #[error("{graph}, {direction} {position}: {fault}")]
    Interface {
        /// The graph.
        graph: GraphId,
        /// Which list.
        direction: Direction,
        /// Position in the list.
        position: u32,
        /// What is wrong.
        fault: InterfaceFault,
    },
    /// A subgraph refers to itself, by itself or through others.
    #[error("subgraph {subgraph} refers to itself")]
    ReferenceCycle {
        /// A subgraph on the cycle.
        subgraph: u32,
    },
    /// A request has another number of arguments than the model.
    #[error("the request has {found} {direction}s, the model {expected}")]
    ArgumentCount {
        /// Which arguments.
        direction: Direction,
        /// How many the model has.
        expected: u32,
        /// How many the request has.
        found: u32,
    },
    /// An argument of a request is wrong.
    #[error("{direction} {position} of the request: {fault}")]
    Argument {
        /// Input or output.
        direction: Direction,
        /// Position among them.
        position: u32,
        /// What is wrong.
        fault: ArgumentFault,
    },
    /// Bytes of a request's memory that an output is written to and another argument has, too.
    #[error("output {output} and {direction} {position} of the request lie in the same bytes")]
    Overlap {
        /// Position of the output.
        output: u32,
        /// What the other argument is.
        direction: Direction,
        /// Its position; of two outputs the smaller one.
        position: u32,
    },
    /// A pool of a request is a buffer with token 0, which no buffer has.
    #[error("pool {pool} of the request is a buffer with token 0")]
    TokenZero {
        /// Index of the pool.
        pool: u32,
    },
    /// A buffer that is for nothing.
    #[error("a buffer needs at least one role")]
    NoRole,
    /// A role of a buffer is wrong, or does not go together with those before it.
    #[error("{direction} role {role} of the buffer: {fault}")]
    Role {
        /// In which list of roles.
        direction: Direction,
        /// Position in the list.
        role: u32,
        /// What is wrong.
        fault: BufferFault,
    },
}

impl ValidationError {
    /// The status that a client receives: RESOURCE_EXHAUSTED_PERSISTENT for a rank above [`MAX_RANK`], which
    /// the HAL allows and nothing here takes, INVALID_ARGUMENT for everything else.
    #[must_use]
    pub const fn status(&self) -> ErrorStatus {
        match self {
            ValidationError::Operand { fault: OperandFault::RankTooLarge { .. }, .. }
            | ValidationError::Argument { fault: ArgumentFault::RankTooLarge { .. }, .. }
            | ValidationError::Role { fault: BufferFault::RankTooLarge { .. }, .. } => {
                ErrorStatus::ResourceExhaustedPersistent
            }
            _ => ErrorStatus::InvalidArgument,
        }
    }
}

impl From<ValidationError> for Failure {
    fn from(error: ValidationError) -> Self {
        Failure::new(error.status(), error)
    }
}

/// What is wrong with an operand.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OperandFault {
    /// No version has this type.
    #[error("no operand type has code {code}")]
    UnknownType {
        /// The code.
        code: i32,
    },
    /// The version has no such type yet.
    #[error("HAL {version} has no {ty}")]
    TypeTooNew {
        /// The type.
        ty: OperandType,
        /// The version.
        version: HalVersion,
    },
    /// The type belongs to an extension that the model does not name.
    #[error("its type has extension prefix {prefix}, which the model does not name")]
    UndeclaredExtension {
        /// The prefix.
        prefix: u16,
    },
    /// More dimensions than anything here takes; the HAL has no such limit.
    #[error("rank {rank}, of which at most {MAX_RANK} is taken here")]
    RankTooLarge {
        /// How many.
        rank: u32,
    },
    /// A scalar with dimensions.
    #[error("a scalar with {rank} dimensions")]
    ScalarWithDimensions {
        /// How many.
        rank: u32,
    },
    /// A tensor without dimensions where they have to be known.
    #[error("its rank must be known")]
    UnspecifiedRank,
    /// A constant with a dimension of 0.
    #[error("a constant whose dimension {axis} is 0")]
    ZeroDimension {
        /// Which dimension.
        axis: u32,
    },
    /// More bytes than 32 bits can count.
    #[error("it has more than 2^32 - 1 bytes")]
    SizeOverflow,
    /// A constant's stored bytes are not as many as its type and dimensions need.
    #[error("a constant of {expected} bytes is stored in {found}")]
    ConstantLength {
        /// What type and dimensions need.
        expected: u64,
        /// What is stored.
        found: u32,
    },
    /// A scale its type cannot have.
    #[error("scale {scale} does not go with its type")]
    Scale {
        /// The scale.
        scale: f32,
    },
    /// A zero point its type cannot have.
    #[error("zero point {zero_point} does not go with its type")]
    ZeroPoint {
        /// The zero point.
        zero_point: i32,
    },
    /// Extra parameters its type does not have.
    #[error("extra parameters do not go with its type")]
    UnexpectedExtraParams,
    /// A per-channel type without scales.
    #[error("a per-channel type without scales per channel")]
    MissingChannelQuant,
    /// The channel dimension is not one of the dimensions.
    #[error("channel dimension {channel_dim} of {rank} dimensions")]
    ChannelDimension {
        /// The channel dimension.
        channel_dim: u32,
        /// How many dimensions there are.
        rank: u32,
    },
    /// Not one scale per channel.
    #[error("{scales} scales for {channels} channels")]
    ChannelCount {
        /// Size of the channel dimension; 0 where it is not known.
        channels: u32,
        /// How many scales there are.
        scales: u32,
    },
    /// A channel's scale is not a positive number.
    #[error("scale {scale} of channel {channel} is not above zero")]
    ChannelScale {
        /// Which channel.
        channel: u32,
        /// Its scale.
        scale: f32,
    },
    /// A location, although values of its lifetime have none.
    #[error("a location that does not go with its lifetime")]
    UnexpectedLocation,
    /// A constant in a pool that the model does not have.
    #[error("a constant in pool {pool} of {pools}")]
    UnknownPool {
        /// Index of the pool.
        pool: u32,
        /// How many there are.
        pools: u32,
    },
    /// A constant that ends behind its pool or the model's values.
    #[error("a constant at {offset} of {length} bytes, in memory of {size}")]
    ConstantOutOfRange {
        /// First byte.
        offset: u32,
        /// How many.
        length: u32,
        /// Bytes there are.
        size: u64,
    },
    /// Type SUBGRAPH without that lifetime, or the reverse.
    #[error("type and lifetime SUBGRAPH go only together")]
    SubgraphLifetime,
    /// A subgraph that the model does not have.
    #[error("it refers to subgraph {subgraph} of {subgraphs}")]
    UnknownSubgraph {
        /// Index of the subgraph.
        subgraph: u32,
        /// How many there are.
        subgraphs: u32,
    },
    /// A temporary or output that no operation writes.
    #[error("no operation writes it")]
    NotWritten,
    /// The number of consumers is not that of its uses.
    #[error("it says it has {declared} consumers, and has {counted}")]
    Consumers {
        /// What the operand says.
        declared: u32,
        /// How often operations read it.
        counted: u32,
    },
    /// An input or output that its graph does not list.
    #[error("an {direction} that the graph's list lacks")]
    NotListed {
        /// Which.
        direction: Direction,
    },
}

/// What is wrong with an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationFault {
    /// No version has this type.
    #[error("no operation type has code {code}")]
    UnknownType {
        /// The code.
        code: i32,
    },
    /// The version has no such type yet.
    #[error("HAL {version} has no {ty}")]
    TypeTooNew {
        /// The type.
        ty: OperationType,
        /// The version.
        version: HalVersion,
    },
    /// The version has the type, but not with these operands.
    #[error("HAL {version} has no {ty} of these operands: {mismatch}")]
    NoSuchForm {
        /// The type.
        ty: OperationType,
        /// The version.
        version: HalVersion,
        /// What differs from the form that it comes closest to.
        mismatch: crate::forms::FormMismatch,
    },
    /// The type belongs to an extension that the model does not name.
    #[error("its type has extension prefix {prefix}, which the model does not name")]
    UndeclaredExtension {
        /// The prefix.
        prefix: u16,
    },
    /// A list of operands that is too long.
    #[error("{count} {direction}s, of which at most {MAX_OPERATION_OPERANDS} are allowed")]
    TooManyOperands {
        /// Which list.
        direction: Direction,
        /// How long it is.
        count: u64,
    },
    /// An operand that the graph does not have.
    #[error("it uses operand {operand} of {operands}")]
    UnknownOperand {
        /// Index of the operand.
        operand: u32,
        /// How many there are.
        operands: u32,
    },
    /// It reads what no earlier operation has written.
    #[error("it reads operand {operand}, which nothing before it writes")]
    ReadBeforeWrite {
        /// Index of the operand.
        operand: u32,
    },
    /// It writes an operand that no operation may write, such as a constant.
    #[error("it writes operand {operand}, whose lifetime is {lifetime:?}")]
    WritesReadOnly {
        /// Index of the operand.
        operand: u32,
        /// Its lifetime.
        lifetime: OperandLifeTime,
    },
    /// It writes what is written already.
    #[error("it writes operand {operand}, which is written already")]
    WrittenTwice {
        /// Index of the operand.
        operand: u32,
    },
    /// IF or WHILE without a subgraph where one belongs.
    #[error("its input {position} must be a subgraph")]
    NotASubgraph {
        /// Which input.
        position: u32,
    },
}

/// What is wrong with an entry of a graph's list of inputs or outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceFault {
    /// An operand that the graph does not have.
    #[error("it names operand {operand} of {operands}")]
    UnknownOperand {
        /// Index of the operand.
        operand: u32,
        /// How many there are.
        operands: u32,
    },
    /// An operand of another lifetime.
    #[error("it names operand {operand}, whose lifetime is {lifetime:?}")]
    Lifetime {
        /// Index of the operand.
        operand: u32,
        /// Its lifetime.
        lifetime: OperandLifeTime,
    },
    /// An operand that is listed already.
    #[error("it names operand {operand} again")]
    Twice {
        /// Index of the operand.
        operand: u32,
    },
}

/// What is wrong with a role of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferFault {
    /// A model that the request for the buffer does not have.
    #[error("model {model} of {models}")]
    UnknownModel {
        /// Index of the model.
        model: u32,
        /// How many there are.
        models: u32,
    },
    /// An input or output that the model does not have.
    #[error("position {position} of {positions}")]
    UnknownPosition {
        /// Which input, or which output.
        position: u32,
        /// How many there are.
        positions: u32,
    },
    /// A frequency that is not above 0, or above 1, or no number.
    #[error("its frequency {frequency} is not above 0 and at most 1")]
    Frequency {
        /// The frequency.
        frequency: f32,
    },
    /// The same argument of the same model again.
    #[error("it stands in the list already")]
    Twice,
    /// Another type than the first role.
    #[error("{found}, where the first role has {expected}")]
    Type {
        /// That of the first role.
        expected: OperandType,
        /// Its own.
        found: OperandType,
    },
    /// Another scale than the first role.
    #[error("scale {found}, where the first role has {expected}")]
    Scale {
        /// That of the first role.
        expected: f32,
        /// Its own.
        found: f32,
    },
    /// Another zero point than the first role.
    #[error("zero point {found}, where the first role has {expected}")]
    ZeroPoint {
        /// That of the first role.
        expected: i32,
        /// Its own.
        found: i32,
    },
    /// Other extra parameters than the first role.
    #[error("other extra parameters than the first role")]
    ExtraParams,
    /// A scalar in a buffer that is asked for with dimensions.
    #[error("a scalar in a buffer of {rank} dimensions")]
    ScalarWithDimensions {
        /// How many.
        rank: u32,
    },
    /// More dimensions than anything here takes; the HAL has no such limit.
    #[error("rank {rank}, of which at most {MAX_RANK} is taken here")]
    RankTooLarge {
        /// How many.
        rank: u32,
    },
    /// Another number of dimensions than the buffer has so far.
    #[error("{found} dimensions in a buffer of {expected}")]
    Rank {
        /// As asked for, or of the roles before it.
        expected: u32,
        /// Its own.
        found: u32,
    },
    /// Another size than the buffer has so far.
    #[error("dimension {axis} is {found}, where the buffer has {expected}")]
    Dimension {
        /// Which dimension.
        axis: u32,
        /// As asked for, or of the roles before it.
        expected: u32,
        /// Its own.
        found: u32,
    },
}

/// What is wrong with an argument of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentFault {
    /// Left out, and yet with a location or dimensions.
    #[error("it is left out, and yet has a location or dimensions")]
    ValueLeftOut,
    /// Left out where the model needs it.
    #[error("it must not be left out")]
    NotOptional,
    /// A pool that the request does not have.
    #[error("it lies in pool {pool} of {pools}")]
    UnknownPool {
        /// Index of the pool.
        pool: u32,
        /// How many there are.
        pools: u32,
    },
    /// It ends behind its pool.
    #[error("{length} bytes at {offset}, in a pool of {size}")]
    OutOfPool {
        /// First byte.
        offset: u32,
        /// How many.
        length: u32,
        /// Bytes of the pool.
        size: u64,
    },
    /// A part of a buffer that the driver manages; only all of it can be used.
    #[error("a part of a driver's buffer: offset and length must be 0")]
    PartOfBuffer,
    /// Another number of dimensions than the operand.
    #[error("{found} dimensions for an operand of {expected}")]
    Rank {
        /// Rank of the operand.
        expected: u32,
        /// Rank of the argument.
        found: u32,
    },
    /// More dimensions than anything here takes; the HAL has no such limit.
    #[error("rank {rank}, of which at most {MAX_RANK} is taken here")]
    RankTooLarge {
        /// How many.
        rank: u32,
    },
    /// Another size than the operand.
    #[error("dimension {axis} is {found}, where the operand has {expected}")]
    Dimension {
        /// Which dimension.
        axis: u32,
        /// What the operand has.
        expected: u32,
        /// What the argument has.
        found: u32,
    },
    /// Rank or a dimension stays unknown where it has to be known.
    #[error("its dimensions must be known")]
    Unspecified,
    /// More bytes than 64 bits can count.
    #[error("its dimensions need more bytes than can be counted")]
    SizeOverflow,
    /// An input's length is not what its dimensions need.
    #[error("{found} bytes, where its dimensions need {expected}")]
    Length {
        /// What type and dimensions need.
        expected: u64,
        /// What the argument has.
        found: u64,
    },
}
