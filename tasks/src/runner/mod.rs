//! What runs a model: a session with any device, or a client's stream.

use std::time::Duration;

use crate::error::TaskError;

mod client;
mod session;

pub use session::SessionRunner;

/// The outputs of the last execution.
pub trait Outputs {
    /// The bytes of an output, in the model's order.
    ///
    /// # Errors
    /// [`TaskError::OutputLength`] where there is no such output; it cannot be read.
    fn output(&mut self, index: usize) -> Result<&[u8], TaskError>;
}

/// A prepared model that takes one input after the other. States, where it has some, are its own business: they go
/// from each execution into the next.
pub trait Runner: Outputs {
    /// The memory of an input, to be filled before [`Runner::run`]; empty where there is no such input.
    fn input(&mut self, index: usize) -> &mut [u8];

    /// Runs once on what was written.
    ///
    /// # Errors
    /// The execution failed, took longer than `timeout`, or nobody answers any more.
    fn run(&mut self, timeout: Duration) -> Result<(), TaskError>;

    /// Lets the next run begin with the states that the first one began with.
    fn reset_states(&mut self);
}

impl<R: Outputs + ?Sized> Outputs for &mut R {
    fn output(&mut self, index: usize) -> Result<&[u8], TaskError> {
        (**self).output(index)
    }
}

impl<R: Runner + ?Sized> Runner for &mut R {
    fn input(&mut self, index: usize) -> &mut [u8] {
        (**self).input(index)
    }

    fn run(&mut self, timeout: Duration) -> Result<(), TaskError> {
        (**self).run(timeout)
    }

    fn reset_states(&mut self) {
        (**self).reset_states();
    }
}
