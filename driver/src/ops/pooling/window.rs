//! What the poolings share: their forms, and how a window moves over an input.
//!
//! Channels first (NCHW) is pooled as pictures of one channel, one per batch and channel.

use burst_hal::HalVersion::{V1_0, V1_2};
use burst_hal::{Dimensions, HalVersion};

use crate::OpError;
use crate::kernels::pool::{PoolAxis, Pooling, Rule, pool};
use crate::op::types::{BOOL, I32};
use crate::op::{Form, Inferred, Parsed, Signature, TypeSet};
use crate::ops::attributes::{Layout, PoolAttributes};
use crate::ops::quantization::rules::expect_same_outputs;
use crate::scratch::Scratch;
use crate::tensor::Args;
use crate::threads::TileRunner;

/// Lengths of the input list with explicit padding; the layout may be left off.
const EXPLICIT: &[(usize, HalVersion)] = &[(10, V1_0), (11, V1_2)];
/// Lengths of the input list with a padding scheme.
const IMPLICIT: &[(usize, HalVersion)] = &[(7, V1_0), (8, V1_2)];

/// The forms of a pooling whose main type is one of `main` since the version given with it.
pub(super) fn expect_forms(
    signature: &Signature<'_>,
    main: &[(HalVersion, &'static [TypeSet; 1])],
) -> Result<(), crate::SignatureError> {
    let legal = main.iter().any(|(since, main)| {
        let scalars = Form::new(*since, EXPLICIT_SCALARS, *main).counts(EXPLICIT);
        let scheme = Form::new(*since, IMPLICIT_SCALARS, *main).counts(IMPLICIT);
        let same = signature.input(0).is_some_and(|input| main[0].has(input.ty));
        same && signature.expect_forms(&[scalars, scheme]).is_ok()
    });
    if legal { Ok(()) } else { Err(signature.no_form()) }
}

/// Every type: what the first input may be is checked apart.
const ANY: TypeSet = {
    use crate::op::types::{TF16, TF32, TQ8, TQ8S};
    TF32.or(TF16).or(TQ8).or(TQ8S)
};
const EXPLICIT_SCALARS: &[TypeSet] = &[ANY, I32, I32, I32, I32, I32, I32, I32, I32, I32, BOOL];
const IMPLICIT_SCALARS: &[TypeSet] = &[ANY, I32, I32, I32, I32, I32, I32, BOOL];

/// How a window moves over the pictures of one input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The sizes, as pictures with channels last.
    pub(super) pooling: Pooling,
    layout: Layout,
    batches: u32,
    channels: u32,
}

impl Window {
    /// The window over an input of shape `dims`.
    pub(super) fn new(attributes: &PoolAttributes, dims: &[u32]) -> Result<Self, OpError> {
        let dims = <[u32; 4]>::try_from(dims)
            .map_err(|_| OpError::shape("the shape of a pooling's input", dims, &[0; 4]))?;
        let layout = attributes.layout;
        let [batches, height, width, channels] = layout.sizes(dims);
        if height == 0 || width == 0 || channels == 0 {
            return Err(OpError::shape("a picture must not be empty", &dims, &[0; 4]));
        }
        let axis = |dimension: usize, size: u32| -> Result<PoolAxis, OpError> {
            let (input, filter) = (size as usize, attributes.filter[dimension]);
            let stride = attributes.strides[dimension];
            let (pad, output) = attributes.padding.slide(dimension, input, stride, filter)?;
            Ok(PoolAxis { input, output, filter, stride, pad })
        };
        let (height, width) = (axis(0, height)?, axis(1, width)?);
        let (pictures, interleaved) = match layout {
            Layout::Nhwc => (Some(batches as usize), channels as usize),
            Layout::Nchw => ((batches as usize).checked_mul(channels as usize), 1),
        };
        let pictures = pictures.ok_or(OpError::Range { what: "number of pictures" })?;
        let pooling = Pooling { batches: pictures, height, width, channels: interleaved };
        Ok(Window { pooling, layout, batches, channels })
    }

    /// The output's shape.
    pub(super) fn output_dims(&self) -> Result<Dimensions, OpError> {
        let narrow =
            |size: usize| u32::try_from(size).map_err(|_| OpError::Range { what: "output size" });
        let Pooling { height, width, .. } = self.pooling;
        let sizes = [self.batches, narrow(height.output)?, narrow(width.output)?, self.channels];
        Ok(Dimensions::from_slice(&self.layout.shape(sizes)))
    }

    /// Most values that one window covers.
    pub(super) fn most_covered(&self) -> usize {
        let Pooling { height, width, .. } = self.pooling;
        height.most_covered().saturating_mul(width.most_covered())
    }
}

/// Pools a tensor, see [`pool`]; threads share the rows. `sums` is working memory of one accumulator
/// per channel.
pub(super) fn pool_shared<T: Copy + Send + Sync, A: Copy + Sync>(
    runner: &mut TileRunner<'_>,
    pooling: &Pooling,
    input: &[T],
    output: &mut [T],
    sums: impl Fn(&mut Scratch, usize) -> Result<&mut [A], OpError> + Sync,
    rule: Rule<A, impl Fn(A, T) -> A + Sync, impl Fn(A, usize) -> T + Sync>,
) -> Result<(), OpError> {
    let stop = runner.stop;
    runner.tiles(&pooling.tiling(), output, |first, output, scratch| {
        let work = (sums(scratch, pooling.channels)?, &mut stop.checkpoints());
        pool(pooling, &rule, input, first, output, work)
    })
}

/// The shape of a pooling's output. A quantized one must mean the same as the input.
pub(super) fn infer(
    args: &Args<'_>,
    attributes: Parsed<'_, PoolAttributes>,
) -> Result<(Window, Inferred), OpError> {
    expect_same_outputs(args, 0)?;
    let window = Window::new(attributes?, args.dims(0)?)?;
    let inferred = Inferred::one(window.output_dims()?);
    Ok((window, inferred))
}
