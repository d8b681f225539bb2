//! One output, with its numbers as they were last read.

use burst_tflite::TensorInfo;

use crate::error::TaskError;
use crate::numbers::{Numbers, elements};
use crate::runner::Outputs;

/// An output whose numbers are read.
#[derive(Debug)]
pub(super) struct Tensor {
    index: usize,
    numbers: Numbers,
    /// Bytes that it has; 0 where only the execution shows it.
    bytes: usize,
    pub(super) values: Vec<f32>,
}

impl Tensor {
    /// `None` for a type whose numbers are not read.
    pub(super) fn new(index: usize, info: &TensorInfo) -> Option<Self> {
        let numbers = Numbers::of(info)?;
        let bytes = elements(&info.dims).saturating_mul(numbers.bytes());
        let bytes = if info.dims.is_empty() { 0 } else { bytes };
        Some(Tensor { index, numbers, bytes, values: Vec::new() })
    }

    /// Takes what the last execution wrote in.
    pub(super) fn read(&mut self, outputs: &mut (impl Outputs + ?Sized)) -> Result<(), TaskError> {
        let found = outputs.output(self.index)?;
        if self.bytes > 0 && found.len() != self.bytes {
            let (index, wanted, found) = (self.index, self.bytes, found.len());
            return Err(TaskError::OutputLength { index, wanted, found });
        }
        self.numbers.read(found, &mut self.values);
        Ok(())
    }
}
