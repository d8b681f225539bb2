//! One execution: where its inputs lie, where its outputs go, what came of it.
//!
//! Source: `types.hal` of NNAPI 1.0 to 1.3, `Request`, `RequestArgument`, `OutputShape`.

use std::time::Duration;

use crate::{DataLocation, Dimensions, ErrorStatus, Pool, TimePoint, Timing};

/// Where one input or output of an execution lies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestArgument {
    /// An optional input that is left out; then everything else is zero.
    pub has_no_value: bool,
    /// Pool (index into [`Request::pools`]), offset and length.
    pub location: DataLocation,
    /// Dimensions of this execution; empty where the model's hold.
    pub dimensions: Dimensions,
}

/// A memory that arguments of a request lie in.
#[derive(Debug, Clone)]
pub enum RequestPool {
    /// Memory whose bytes can be reached.
    Memory(Pool),
    /// A buffer the driver manages, by its token (HAL 1.3).
    Token(u32),
}

/// Inputs, outputs and the memory they lie in.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// One per input of the model.
    pub inputs: Vec<RequestArgument>,
    /// One per output of the model.
    pub outputs: Vec<RequestArgument>,
    /// Memory that the arguments' locations refer to.
    pub pools: Vec<RequestPool>,
}

/// How an execution is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExecutionOptions {
    /// Whether to measure how long it takes.
    pub measure_timing: bool,
    /// When its result is no longer wanted.
    pub deadline: Option<TimePoint>,
    /// Longest time one loop may take; the default of the HAL where it is not given.
    pub loop_timeout: Option<Duration>,
}

/// The shape an output turned out to have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputShape {
    /// Sizes along each axis, as far as known.
    pub dimensions: Dimensions,
    /// Whether the output's memory was large enough.
    pub is_sufficient: bool,
}

/// What an execution gave.
///
/// With `status` NONE the shapes are empty or one per output, all sufficient; with
/// OUTPUT_INSUFFICIENT_SIZE one per output, at least one of them insufficient; with any other
/// status empty. Timing is [`Timing::UNAVAILABLE`] unless it was asked for and the status is NONE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionResult {
    /// How it ended.
    pub status: ErrorStatus,
    /// Shapes of the outputs, see above.
    pub output_shapes: Vec<OutputShape>,
    /// How long it took.
    pub timing: Timing,
}

impl ExecutionResult {
    /// A result without shapes and timing.
    #[must_use]
    pub fn of(status: ErrorStatus) -> Self {
        ExecutionResult { status, output_shapes: Vec::new(), timing: Timing::UNAVAILABLE }
    }

    /// Turns this into a result without shapes and timing, keeping its storage.
    pub fn reset(&mut self, status: ErrorStatus) {
        self.status = status;
        self.output_shapes.clear();
        self.timing = Timing::UNAVAILABLE;
    }
}
