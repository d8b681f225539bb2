//! One execution: where its inputs lie, where its outputs go, what came of it.
//!
//! Source: `types.hal` of NNAPI 1.0 to 1.3, `Request`, `RequestArgument`, `OutputShape`.

use std::time::Duration;

use crate::{DataLocation, Dimensions, ErrorStatus, Failure, Pool, TimePoint, Timing};

/// Where one input or output of an execution lies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestArgument {
    /// Whether this is an optional input that is left out; then every other field is zero.
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

impl Request {
    /// Copies an input out of its pool into `bytes`, which is made as long as the input.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an argument that is not there, has no value, or lies in a buffer of
    /// the driver; GENERAL_FAILURE where the pool cannot be read.
    pub fn read_input(&self, index: usize, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let (pool, location) = self.location(&self.inputs, index, "input")?;
        bytes.resize(location.length as usize, 0);
        pool.read(location.offset.into(), bytes).map_err(Failure::general)
    }

    /// Copies `bytes` to an output's byte range of its pool.
    ///
    /// # Errors
    /// As [`Request::read_input`]; INVALID_ARGUMENT where the range has another length.
    pub fn write_output(&self, index: usize, bytes: &[u8]) -> Result<(), Failure> {
        let (pool, location) = self.location(&self.outputs, index, "output")?;
        if location.length as usize != bytes.len() {
            return Err(Failure::invalid(format!(
                "output {index} has {} bytes, its range of the pool {}",
                bytes.len(),
                location.length
            )));
        }
        pool.write(location.offset.into(), bytes).map_err(Failure::general)
    }

    fn location(
        &self,
        arguments: &[RequestArgument],
        index: usize,
        what: &str,
    ) -> Result<(&Pool, DataLocation), Failure> {
        let argument = arguments
            .get(index)
            .filter(|argument| !argument.has_no_value)
            .ok_or_else(|| Failure::invalid(format!("{what} {index} has no value")))?;
        match self.pools.get(argument.location.pool_index as usize) {
            Some(RequestPool::Memory(pool)) => Ok((pool, argument.location)),
            _ => Err(Failure::invalid(format!("{what} {index} lies in no memory"))),
        }
    }
}

/// How an execution is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExecutionOptions {
    /// Whether to measure how long it takes.
    pub measure_timing: bool,
    /// When its result is no longer wanted.
    pub deadline: Option<TimePoint>,
    /// Longest time one loop may take; `None` for the default of the HAL.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::HeapMemory;

    #[test]
    fn inputs_are_read_and_outputs_written_where_they_lie() {
        let memory = Arc::new(HeapMemory::new(vec![1, 2, 3, 4]));
        let argument = |offset, length| RequestArgument {
            location: DataLocation { pool_index: 0, offset, length },
            ..RequestArgument::default()
        };
        let omitted = RequestArgument { has_no_value: true, ..RequestArgument::default() };
        let request = Request {
            inputs: vec![argument(1, 2), omitted, argument(3, 9)],
            outputs: vec![argument(0, 1)],
            pools: vec![RequestPool::Memory(Arc::clone(&memory) as Pool)],
        };
        let mut bytes = vec![9; 7];
        request.read_input(0, &mut bytes).unwrap();
        assert_eq!(bytes, [2, 3]);
        request.write_output(0, &[8]).unwrap();
        assert_eq!(memory.to_vec(), [8, 2, 3, 4]);
        let invalid = ErrorStatus::InvalidArgument;
        assert_eq!(request.read_input(1, &mut bytes).unwrap_err().status, invalid);
        assert_eq!(request.read_input(7, &mut bytes).unwrap_err().status, invalid);
        assert_eq!(request.write_output(0, &[8, 8]).unwrap_err().status, invalid);
        let outside = request.read_input(2, &mut bytes).unwrap_err();
        assert_eq!(outside.status, ErrorStatus::GeneralFailure);
        let token = Request { pools: vec![RequestPool::Token(1)], ..request };
        assert_eq!(token.read_input(0, &mut bytes).unwrap_err().status, invalid);
    }
}
