//! Memory for one execution of a model, with its request.

use anyhow::{Context, Result};
use burst_client::SharedAllocator;
use burst_hal::session::{LayoutOptions, SessionLayout, SessionTensors};
use burst_hal::{ErrorStatus, ExecutionResult, Model, Request};

/// Inputs and outputs in memory that a service can reach.
pub(super) struct Frame(SessionTensors);

impl Frame {
    pub(super) fn new(model: &Model, inputs: &[&[u8]]) -> Result<Frame> {
        let layout = SessionLayout::new(model, &LayoutOptions::default())?;
        let tensors = SessionTensors::allocate(layout, &SharedAllocator)?;
        for (index, input) in inputs.iter().enumerate() {
            tensors.write_input(0, index, input)?;
        }
        Ok(Frame(tensors))
    }

    pub(super) fn request(&self) -> &Request {
        self.0.request(0)
    }

    /// What was written to the output.
    pub(super) fn output(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let result = ExecutionResult::of(ErrorStatus::None);
        self.0.read_output(0, &result, &mut bytes).context("an output")?;
        Ok(bytes)
    }
}
