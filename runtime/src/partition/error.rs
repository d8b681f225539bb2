//! Why a model cannot be divided.

use burst_hal::validate::{GraphId, ValidationError};
use burst_hal::{OperationType, ResultCode};

use super::walk::MAX_STEPS;

/// Why a model cannot be divided among devices.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The model breaks a rule that holds for every model.
    #[error(transparent)]
    Illegal(#[from] ValidationError),
    /// None of the devices runs this operation.
    #[error("no device runs operation {operation} ({ty}) of the {graph}")]
    NoDevice {
        /// Which graph.
        graph: GraphId,
        /// Position of the operation in it.
        operation: u32,
        /// What it is.
        ty: OperationType,
    },
    /// A value would go from one step to another, but nobody knows how much memory it takes. One device can
    /// still run the whole model.
    #[error(
        "operand {operand} of the {graph} goes from device to device, but its size is not known"
    )]
    UnknownSize {
        /// Which graph.
        graph: GraphId,
        /// Index of the operand in it.
        operand: u32,
    },
    /// The graph falls apart into more steps than are worth anything. One device can still run the whole
    /// model.
    #[error("the {graph} falls apart into more than {} steps", MAX_STEPS)]
    TooManySteps {
        /// Which graph.
        graph: GraphId,
    },
}

impl PartitionError {
    /// Whether a single device that runs everything can do what several cannot.
    #[must_use]
    pub fn is_for_one_device(&self) -> bool {
        matches!(self, PartitionError::UnknownSize { .. } | PartitionError::TooManySteps { .. })
    }

    /// The code that an application receives when nothing else helps.
    #[must_use]
    pub fn code(&self) -> ResultCode {
        match self {
            PartitionError::Illegal(_) | PartitionError::NoDevice { .. } => ResultCode::BadData,
            PartitionError::UnknownSize { .. } | PartitionError::TooManySteps { .. } => {
                ResultCode::OpFailed
            }
        }
    }
}
