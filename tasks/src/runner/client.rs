//! Streams of a client: the model runs in another process, and inputs are written where that one reads them.

use std::time::Duration;

use burst_client::{Deadline, ReconnectingStream, Stream};

use super::{Outputs, Runner};
use crate::error::TaskError;

impl Outputs for Stream {
    fn output(&mut self, index: usize) -> Result<&[u8], TaskError> {
        if index >= self.outputs() {
            return Err(TaskError::OutputLength { index, wanted: 1, found: 0 });
        }
        Ok(Stream::output(self, index)?)
    }
}

impl Runner for Stream {
    fn input(&mut self, index: usize) -> &mut [u8] {
        if index < self.inputs() { Stream::input(self, index) } else { &mut [] }
    }

    fn run(&mut self, timeout: Duration) -> Result<(), TaskError> {
        Stream::run(self, Deadline::after(timeout))?;
        Ok(())
    }

    fn reset_states(&mut self) {
        Stream::reset_states(self);
    }
}

/// A run that is lost with its driver is an error; the next one goes on with another driver.
impl Outputs for ReconnectingStream {
    fn output(&mut self, index: usize) -> Result<&[u8], TaskError> {
        Outputs::output(self.stream(), index)
    }
}

impl Runner for ReconnectingStream {
    fn input(&mut self, index: usize) -> &mut [u8] {
        Runner::input(self.stream(), index)
    }

    fn run(&mut self, timeout: Duration) -> Result<(), TaskError> {
        ReconnectingStream::run(self, Deadline::after(timeout))?;
        Ok(())
    }

    fn reset_states(&mut self) {
        self.stream().reset_states();
    }
}
