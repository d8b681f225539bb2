//! What an older version of the HAL cannot say.

use crate::{ErrorStatus, ExecutionPreference, OperandType, Priority};

/// Something that a caller said, or a device answered, and that an older version cannot say. Nothing of
/// it changes a right result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// Leave to compute floats as half floats: computed with full precision. HAL 1.1 brought it.
    #[error("the leave to compute float32 as float16")]
    RelaxedComputation,
    /// Trailing inputs that repeat their defaults, which the version lacks.
    #[error("{count} trailing inputs of operation {operation}, which repeat their defaults")]
    DefaultInputs {
        /// Index in the main graph.
        operation: u32,
        /// How many.
        count: u32,
    },
    /// What the model is to be good at. HAL 1.1 brought it.
    #[error("the preference {0}")]
    Preference(ExecutionPreference),
    /// Files for the compilation. HAL 1.2 brought them.
    #[error("the files for the compilation")]
    CompilationCache,
    /// That the time is to be measured. HAL 1.2 brought it.
    #[error("measuring the time")]
    Timing,
    /// How urgent the model is. HAL 1.3 brought it.
    #[error("the priority {0}")]
    Priority(Priority),
    /// A deadline: looked at before the call and not during it. HAL 1.3 brought it.
    #[error("the deadline, once the call has begun")]
    Deadline,
    /// How long a loop may take. HAL 1.3 brought it, as it brought loops.
    #[error("the time-out of loops")]
    LoopTimeout,
    /// Why a call failed: told as GENERAL_FAILURE. HAL 1.3 brought it.
    #[error("the status {0}")]
    Status(ErrorStatus),
    /// How well a device does with a type.
    #[error("the performance of {0}")]
    Performance(OperandType),
    /// How well a device does with IF and WHILE. HAL 1.3 brought them.
    #[error("the performance of control flow")]
    ControlFlowPerformance,
    /// That scalars and tensors differ where floats are computed as half floats.
    #[error("the relaxed performance of scalars")]
    RelaxedScalars,
}

impl Loss {
    /// A number of its kind, below 32.
    pub(super) const fn kind(&self) -> u32 {
        match self {
            Loss::RelaxedComputation => 0,
            Loss::DefaultInputs { .. } => 1,
            Loss::Preference(_) => 2,
            Loss::CompilationCache => 3,
            Loss::Timing => 4,
            Loss::Priority(_) => 5,
            Loss::Deadline => 6,
            Loss::LoopTimeout => 7,
            Loss::Status(_) => 8,
            Loss::Performance(_) => 9,
            Loss::ControlFlowPerformance => 10,
            Loss::RelaxedScalars => 11,
        }
    }
}

/// A value of an older version, and what was lost on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted<T> {
    /// What the version can say.
    pub value: T,
    /// What it cannot.
    pub lost: Vec<Loss>,
}

impl<T> Converted<T> {
    /// The same for a value that was made of this one.
    pub(super) fn map<U>(self, make: impl FnOnce(T) -> U) -> Converted<U> {
        Converted { value: make(self.value), lost: self.lost }
    }
}
