//! The parameters that RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR share.

use burst_hal::{Dimensions, OperandType};

use crate::OpError;
use crate::kernels::resize::{Alignment, Resize, ResizeAxis};
use crate::op::{Inferred, Run, Signature};
use crate::ops::quantization::rules::expect_same;
use crate::tensor::{Args, TensorRef};

/// Largest output size along one axis, in pixels: the largest INT32, whichever way it is given.
const MAX_SIZE: f32 = 2_147_483_520.0;

/// Where scalar operands are read from: what is known while preparing, or the run.
pub(super) trait Scalars {
    /// The operand at `index` with its value.
    fn scalar(&self, index: usize) -> Result<TensorRef<'_>, OpError>;
    /// The BOOL at `index`; false where the list is shorter.
    fn flag(&self, index: usize) -> Result<bool, OpError>;
}

impl Scalars for Args<'_> {
    fn scalar(&self, index: usize) -> Result<TensorRef<'_>, OpError> {
        self.tensor(index)
    }
    fn flag(&self, index: usize) -> Result<bool, OpError> {
        Ok(self.has(index) && self.bool(index)?)
    }
}

impl Scalars for Run<'_, '_> {
    fn scalar(&self, index: usize) -> Result<TensorRef<'_>, OpError> {
        self.input(index)
    }
    fn flag(&self, index: usize) -> Result<bool, OpError> {
        self.optional(index).map_or(Ok(false), |flag| flag.scalar_bool())
    }
}

/// The first input has 4 dimensions, where the model says how many.
pub(super) fn expect_input_rank(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    let rank = signature.input(0).map_or(0, |input| input.dimensions.len());
    signature.rule(rank == 0 || rank == 4, "a picture has 4 dimensions")
}

/// The output's shape. A quantized output must mean the same as the input.
pub(super) fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let (_, dims) = read(args, args.dims(0)?)?;
    if let Some((output, _)) = args.outputs.first() {
        expect_same(args.input(0)?.info, output)?;
    }
    Ok(Inferred::one(dims))
}

/// The sizes, as pictures with channels last, and the output's shape.
pub(super) fn read(from: &impl Scalars, dims: &[u32]) -> Result<(Resize, Dimensions), OpError> {
    let channels_first = from.flag(3)?;
    let alignment = match (from.flag(4)?, from.flag(5)?) {
        (false, false) => Alignment::Edges,
        (true, false) => Alignment::Corners,
        (false, true) => Alignment::Centres,
        (true, true) => return Err(OpError::value("aligned corners with half-pixel centres", 1)),
    };
    let [batches, a, b, c] = *dims else {
        return Err(OpError::shape("the shape of a picture", dims, &[0; 4]));
    };
    if a == 0 || b == 0 || c == 0 {
        return Err(OpError::shape("a picture must not be empty", dims, &[0; 4]));
    }
    let (h, w, channels) = if channels_first { (b, c, a) } else { (a, b, c) };
    let width = size(&from.scalar(1)?, w)?;
    let height = size(&from.scalar(2)?, h)?;
    let axis = |input: u32, output: u32| ResizeAxis {
        input: input as usize,
        output: output as usize,
        alignment,
    };
    let (height_axis, width_axis) = (axis(h, height), axis(w, width));
    let pictures = (batches as usize)
        .checked_mul(if channels_first { channels as usize } else { 1 })
        .ok_or(OpError::Range { what: "number of pictures" })?;
    let resize = Resize {
        batches: pictures,
        height: height_axis,
        width: width_axis,
        channels: if channels_first { 1 } else { channels as usize },
    };
    let dims = if channels_first {
        [batches, channels, height, width]
    } else {
        [batches, height, width, channels]
    };
    Ok((resize, Dimensions::from_slice(&dims)))
}

/// An output size in pixels: given as such, or as a factor of the input size, rounded down.
fn size(operand: &TensorRef<'_>, input: u32) -> Result<u32, OpError> {
    if operand.info.ty == OperandType::Int32 {
        let size = operand.scalar_i32()?;
        return match u32::try_from(size) {
            Ok(size) if size > 0 => Ok(size),
            _ => Err(OpError::value("output size", size)),
        };
    }
    #[allow(clippy::cast_precision_loss, reason = "the reference computes in f32")]
    let size = input as f32 * operand.scalar_float()?;
    if !(1.0..=MAX_SIZE).contains(&size) {
        return Err(OpError::Range { what: "output size" });
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 2^31, and rounding down is meant"
    )]
    Ok(size as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::TensorInfo;

    fn scaled(factor: f32, input: u32) -> Option<u32> {
        let info = TensorInfo {
            ty: OperandType::Float32,
            scale: 0.0,
            zero_point: 0,
            channel_scales: None,
        };
        let bytes = factor.to_ne_bytes();
        size(&TensorRef { info: &info, dims: &[], bytes: Some(&bytes) }, input).ok()
    }

    #[test]
    fn factors_round_down_and_must_leave_a_pixel() {
        assert_eq!(scaled(1.5, 3), Some(4));
        assert_eq!(scaled(0.34, 3), Some(1));
        for (factor, input) in
            [(0.3, 3), (0.0, 3), (-1.0, 3), (f32::NAN, 3), (f32::INFINITY, 3), (1e9, 30)]
        {
            assert_eq!(scaled(factor, input), None, "{factor}");
        }
    }
}
