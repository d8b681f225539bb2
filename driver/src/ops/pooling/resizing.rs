//! What RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR share: the sizes that follow from their
//! attributes.

use burst_hal::Dimensions;

use crate::OpError;
use crate::kernels::resize::{Resize, ResizeAxis};
use crate::op::{Inferred, Parsed};
use crate::ops::attributes::{Layout, ResizeAttributes};
use crate::ops::quantization::rules::expect_same_outputs;
use crate::tensor::Args;

/// The output's shape. A quantized output must mean the same as the input.
pub(super) fn infer(
    args: &Args<'_>,
    attributes: Parsed<'_, ResizeAttributes>,
) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let (_, dims) = sizes(attributes?, args.dims(0)?)?;
    Ok(Inferred::one(dims))
}

/// The sizes for an input of shape `dims`, as pictures with channels last, and the output's shape.
pub(super) fn sizes(
    attributes: &ResizeAttributes,
    dims: &[u32],
) -> Result<(Resize, Dimensions), OpError> {
    let ResizeAttributes { layout, alignment, .. } = *attributes;
    let dims = <[u32; 4]>::try_from(dims)
        .map_err(|_| OpError::shape("the shape of a picture", dims, &[0; 4]))?;
    let [batches, h, w, channels] = layout.sizes(dims);
    if h == 0 || w == 0 || channels == 0 {
        return Err(OpError::shape("a picture must not be empty", &dims, &[0; 4]));
    }
    let (width, height) = (attributes.width.pixels(w)?, attributes.height.pixels(h)?);
    let axis = |input: u32, output: u32| ResizeAxis {
        input: input as usize,
        output: output as usize,
        alignment,
    };
    let (pictures, interleaved) = match layout {
        Layout::Nhwc => (Some(batches as usize), channels as usize),
        Layout::Nchw => ((batches as usize).checked_mul(channels as usize), 1),
    };
    let resize = Resize {
        batches: pictures.ok_or(OpError::Range { what: "number of pictures" })?,
        height: axis(h, height),
        width: axis(w, width),
        channels: interleaved,
    };
    let dims = layout.shape([batches, height, width, channels]);
    Ok((resize, Dimensions::from_slice(&dims)))
}
