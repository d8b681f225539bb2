//! What a super-resolution model gives: a larger picture.

use burst_hal::OperandType;
use burst_tflite::TensorInfo;

use super::tensor::Tensor;
use crate::error::TaskError;
use crate::picture_input::{Normalisation, PictureShape};
use crate::runner::Outputs;

/// Reads a picture `[1, height, width, 3]`.
#[derive(Debug)]
pub struct PictureDecoder {
    output: Tensor,
    normalisation: Normalisation,
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl PictureDecoder {
    /// `None` for an output that is no picture larger than the input.
    pub(super) fn new(
        input: PictureShape,
        output: &TensorInfo,
        normalisation: Normalisation,
    ) -> Option<Self> {
        let &[1, height, width, 3] = output.dims.as_slice() else { return None };
        let is_float = output.ty == OperandType::TensorFloat32;
        // An 8-bit picture says by its scale whether it means 0 to 1 or 0 to 255.
        let normalisation = match normalisation {
            _ if !is_float && output.scale * 255.0 > 2.0 => Normalisation::BYTE,
            _ if !is_float => Normalisation::UNIT,
            stated => stated,
        };
        (width > input.width && height > input.height).then_some(PictureDecoder {
            output: Tensor::new(0, output)?,
            normalisation,
            width,
            height,
            rgb: Vec::new(),
        })
    }

    /// Takes the output of the last execution in.
    ///
    /// # Errors
    /// The output cannot be read, or has another length than the model says.
    pub fn read(&mut self, outputs: &mut (impl Outputs + ?Sized)) -> Result<(), TaskError> {
        self.output.read(outputs)?;
        let normalisation = self.normalisation;
        self.rgb.clear();
        let channels = self.output.values.iter().zip((0..3).cycle());
        self.rgb.extend(channels.map(|(value, channel)| normalisation.byte(channel, *value)));
        Ok(())
    }

    /// Width and height, in pixels.
    #[must_use]
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The picture as RGB bytes; none before the first execution.
    #[must_use]
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }
}
