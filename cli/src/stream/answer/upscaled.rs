//! What a super-resolution model gives: a larger picture.

use anyhow::Result;
use burst_tflite::TensorInfo;

use super::numbers::Numbers;
use crate::fit::{FloatRange, InputShape};
use crate::stream::path::Path;

/// Reads a picture `[1, height, width, 3]`.
#[derive(Debug)]
pub(crate) struct Upscaler {
    numbers: Numbers,
    range: FloatRange,
    width: u32,
    height: u32,
    values: Vec<f32>,
    rgb: Vec<u8>,
}

impl Upscaler {
    /// `None` for an output that is no picture larger than the input.
    pub(crate) fn new(input: InputShape, output: &TensorInfo, range: FloatRange) -> Option<Self> {
        let &[1, height, width, 3] = output.dims.as_slice() else { return None };
        let is_float = output.ty == burst_hal::OperandType::TensorFloat32;
        // An 8-bit picture says by its scale whether it means 0 to 1 or 0 to 255.
        let range = match range {
            _ if !is_float && output.scale * 255.0 > 2.0 => FloatRange::Byte,
            _ if !is_float => FloatRange::Unit,
            range => range,
        };
        (width > input.width && height > input.height).then_some(Upscaler {
            numbers: Numbers::of(output)?,
            range,
            width,
            height,
            values: Vec::new(),
            rgb: Vec::new(),
        })
    }

    /// Takes the output of the last execution in.
    pub(crate) fn read(&mut self, path: &mut dyn Path) -> Result<()> {
        self.numbers.read(path.output(0)?, &mut self.values);
        let range = self.range;
        self.rgb.clear();
        self.rgb.extend(self.values.iter().map(|value| range.byte(*value)));
        Ok(())
    }

    pub(crate) fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The picture as RGB bytes.
    pub(crate) fn rgb(&self) -> &[u8] {
        &self.rgb
    }
}
