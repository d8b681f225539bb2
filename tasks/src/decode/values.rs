//! Outputs whose meaning is not known: their numbers.

use burst_tflite::TensorInfo;

use super::tensor::Tensor;
use crate::error::TaskError;
use crate::runner::Outputs;

/// Reads the numbers of the first output, whatever they mean.
#[derive(Debug)]
pub struct ValueDecoder {
    output: Tensor,
}

impl ValueDecoder {
    /// `None` for an output whose numbers are not read.
    pub(super) fn new(output: &TensorInfo) -> Option<Self> {
        Some(ValueDecoder { output: Tensor::new(0, output)? })
    }

    /// Takes the output of the last execution in.
    ///
    /// # Errors
    /// The output cannot be read, or has another length than the model says.
    pub fn read(&mut self, outputs: &mut (impl Outputs + ?Sized)) -> Result<(), TaskError> {
        self.output.read(outputs)
    }

    /// The numbers.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.output.values
    }
}
