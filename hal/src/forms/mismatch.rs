//! Why an operation has no form.

use crate::{HalVersion, OperandType};

/// Where the operands of an operation differ from the form that they come closest to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormMismatch {
    /// The form came later.
    #[error("HAL {since} was the first that has it")]
    Newer {
        /// The first version that has it.
        since: HalVersion,
    },
    /// Too few or too many inputs.
    #[error("{found} inputs, where {expected} belong")]
    InputCount {
        /// How many there are.
        found: u32,
        /// How many the nearest form has.
        expected: u32,
    },
    /// Too few or too many outputs.
    #[error("{found} outputs, where {expected} belong")]
    OutputCount {
        /// How many there are.
        found: u32,
        /// How many the nearest form has.
        expected: u32,
    },
    /// An input of another type.
    #[error("input {position} is {found}, where {expected} belongs")]
    InputType {
        /// Which input.
        position: u32,
        /// Its type.
        found: OperandType,
        /// The type that goes with the inputs before it; sometimes one of several.
        expected: OperandType,
    },
    /// An output of another type.
    #[error("output {position} is {found}, where {expected} belongs")]
    OutputType {
        /// Which output.
        position: u32,
        /// Its type.
        found: OperandType,
        /// The type that goes with the inputs; sometimes one of several.
        expected: OperandType,
    },
    /// An input without a value that the operation needs.
    #[error("input {position} has no value, and must have one")]
    Omitted {
        /// Which input.
        position: u32,
    },
    /// The types are right, and something else about the operands is not.
    #[error("{what}")]
    Rule {
        /// What.
        what: &'static str,
    },
    /// What a condition says is not one truth value.
    #[error("its condition is not TENSOR_BOOL8 of shape [1]")]
    Condition,
    /// An operand that should name a graph of the model, and does not.
    #[error("it names no graph")]
    NoGraph,
    /// A graph where a value belongs.
    #[error("a graph is handed over as a value")]
    GraphAsValue,
    /// A graph takes or gives another number of values than are handed over.
    #[error("a graph takes or gives {found} values, where {expected} are handed over")]
    BoundaryCount {
        /// How many the graph has.
        found: u32,
        /// How many the operation has.
        expected: u32,
    },
    /// A value that is handed to a graph, or taken from it, is declared otherwise there.
    #[error("{what} {position} is unlike what the graph declares")]
    Boundary {
        /// Which list.
        what: &'static str,
        /// Position in it.
        position: u32,
    },
    /// The type is none, the graph lacks an operand, or an operand's type is none.
    #[error("there is no such form")]
    Unknown,
}

impl FormMismatch {
    pub(super) fn boundary(what: &'static str, position: usize) -> Self {
        FormMismatch::Boundary { what, position: number(position) }
    }

    pub(super) fn boundary_count(found: usize, expected: usize) -> Self {
        FormMismatch::BoundaryCount { found: number(found), expected: number(expected) }
    }
}

/// A count or position as errors hold it, saturating at 32 bits.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
