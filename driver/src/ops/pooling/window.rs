//! The parameters that the poolings share: window, strides, padding, activation, layout.
//!
//! Channels first (NCHW) is pooled as pictures of one channel, one per batch and channel.

use burst_hal::HalVersion::{V1_0, V1_2};
use burst_hal::{Dimensions, FusedActivation, HalVersion};

use crate::OpError;
use crate::kernels::pool::{PoolAxis, Pooling, Rule, pool};
use crate::kernels::quant::activation;
use crate::op::types::{BOOL, I32};
use crate::op::{Inferred, Row, Run, Signature, TypeSet};
use crate::ops::quantization::rules::expect_same;
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
        let scalars = Row::new(*since, EXPLICIT_SCALARS, *main).counts(EXPLICIT);
        let scheme = Row::new(*since, IMPLICIT_SCALARS, *main).counts(IMPLICIT);
        let same = signature.input(0).is_some_and(|input| main[0].has(input.ty));
        same && signature.expect_rows(&[scalars, scheme]).is_ok()
    });
    if !legal {
        return Err(signature.no_form());
    }
    let rank = signature.input(0).map_or(0, |input| input.dimensions.len());
    signature.rule(rank == 0 || rank == 4, "a pooling takes 4 dimensions")
}

/// Every type: what the first input may be is checked apart.
const ANY: TypeSet = {
    use crate::op::types::{TF16, TF32, TQ8, TQ8S};
    TF32.or(TF16).or(TQ8).or(TQ8S)
};
const EXPLICIT_SCALARS: &[TypeSet] = &[ANY, I32, I32, I32, I32, I32, I32, I32, I32, I32, BOOL];
const IMPLICIT_SCALARS: &[TypeSet] = &[ANY, I32, I32, I32, I32, I32, I32, BOOL];

/// Where scalar operands are read from: what is known while preparing, or the run.
pub(super) trait Scalars {
    /// How many inputs there are.
    fn count(&self) -> usize;
    /// The INT32 scalar at input `index`.
    fn int(&self, index: usize) -> Result<i32, OpError>;
    /// The BOOL scalar at input `index`.
    fn flag(&self, index: usize) -> Result<bool, OpError>;
}

impl Scalars for Args<'_> {
    fn count(&self) -> usize {
        self.inputs.len()
    }
    fn int(&self, index: usize) -> Result<i32, OpError> {
        self.i32(index)
    }
    fn flag(&self, index: usize) -> Result<bool, OpError> {
        self.bool(index)
    }
}

impl Scalars for Run<'_, '_> {
    fn count(&self) -> usize {
        self.inputs.len()
    }
    fn int(&self, index: usize) -> Result<i32, OpError> {
        self.i32(index)
    }
    fn flag(&self, index: usize) -> Result<bool, OpError> {
        self.input(index)?.scalar_bool()
    }
}

/// Everything a pooling needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// The sizes, as pictures with channels last.
    pub(super) pooling: Pooling,
    /// What happens to results.
    pub(super) activation: FusedActivation,
    /// Batches and channels of the output, where the layout is channels first.
    channels_first: Option<(u32, u32)>,
}

/// How one axis is padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Padding {
    /// As much as makes the output `input / stride`, rounded up.
    Same,
    /// Not at all.
    Valid,
    /// So many pixels before and after.
    Explicit(i32, i32),
}

impl Window {
    /// Reads the parameters for an input of shape `dims`.
    pub(super) fn read(from: &impl Scalars, dims: &[u32]) -> Result<Self, OpError> {
        let explicit = from.count() >= 10;
        let (horizontal, vertical) = if explicit {
            (
                Padding::Explicit(from.int(1)?, from.int(2)?),
                Padding::Explicit(from.int(3)?, from.int(4)?),
            )
        } else {
            let padding = match from.int(1)? {
                1 => Padding::Same,
                2 => Padding::Valid,
                other => return Err(OpError::value("padding scheme", other)),
            };
            (padding, padding)
        };
        let first = if explicit { 5 } else { 2 };
        let [stride_w, stride_h, filter_w, filter_h, code] =
            [from.int(first), from.int(first + 1), from.int(first + 2), from.int(first + 3), {
                from.int(first + 4)
            }];
        let activation = activation(code?)?;
        let layout = first + 5;
        let channels_first = from.count() > layout && from.flag(layout)?;
        let [batches, a, b, c] = *dims else {
            return Err(OpError::shape("the shape of a pooling's input", dims, &[0; 4]));
        };
        if a == 0 || b == 0 || c == 0 {
            return Err(OpError::shape("a picture must not be empty", dims, &[0; 4]));
        }
        let (h, w, channels) = if channels_first { (b, c, a) } else { (a, b, c) };
        let height = axis(h, filter_h?, stride_h?, vertical)?;
        let width = axis(w, filter_w?, stride_w?, horizontal)?;
        let (batches, channels) = (batches as usize, channels as usize);
        let pooling = if channels_first {
            let pictures = batches.checked_mul(channels);
            let pictures = pictures.ok_or(OpError::Range { what: "number of pictures" })?;
            Pooling { batches: pictures, height, width, channels: 1 }
        } else {
            Pooling { batches, height, width, channels }
        };
        Ok(Window { pooling, activation, channels_first: channels_first.then_some((dims[0], a)) })
    }

    /// The output's shape.
    pub(super) fn output_dims(&self) -> Result<Dimensions, OpError> {
        let narrow =
            |size: usize| u32::try_from(size).map_err(|_| OpError::Range { what: "output size" });
        let Pooling { batches, height, width, channels } = self.pooling;
        let (h, w) = (narrow(height.output)?, narrow(width.output)?);
        Ok(match self.channels_first {
            Some((batches, channels)) => Dimensions::from_slice(&[batches, channels, h, w]),
            None => Dimensions::from_slice(&[narrow(batches)?, h, w, narrow(channels)?]),
        })
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
    sums: impl Fn(&mut Scratch, usize) -> &mut [A] + Sync,
    rule: Rule<A, impl Fn(A, T) -> A + Sync, impl Fn(A, usize) -> T + Sync>,
) -> Result<(), OpError> {
    runner.tiles(&pooling.tiling(), output, |first, output, scratch| {
        let sums = sums(scratch, pooling.channels);
        pool(pooling, &rule, input, first, output, sums);
        Ok(())
    })
}

/// The shape of a pooling's output. A quantized one must mean the same as the input.
pub(super) fn infer(args: &Args<'_>) -> Result<(Window, Inferred), OpError> {
    let window = Window::read(args, args.dims(0)?)?;
    if let Some((output, _)) = args.outputs.first() {
        expect_same(args.input(0)?.info, output)?;
    }
    let inferred = Inferred::one(window.output_dims()?);
    Ok((window, inferred))
}

fn axis(size: u32, filter: i32, stride: i32, padding: Padding) -> Result<PoolAxis, OpError> {
    let positive = |what, value: i32| match usize::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(OpError::value(what, value)),
    };
    let input = size as usize;
    let (filter, stride) = (positive("filter size", filter)?, positive("stride", stride)?);
    let (before, after) = match padding {
        Padding::Valid => (0, 0),
        Padding::Same => {
            let reach = (input.div_ceil(stride) - 1) * stride + filter;
            let total = reach.saturating_sub(input);
            (total / 2, total - total / 2)
        }
        Padding::Explicit(before, after) => (pad(before, filter)?, pad(after, filter)?),
    };
    let padded = input + before + after;
    let Some(room) = padded.checked_sub(filter) else {
        return Err(OpError::Range { what: "a filter larger than the padded input" });
    };
    Ok(PoolAxis { input, output: room / stride + 1, filter, stride, pad: before })
}

/// Padding must be smaller than the filter: otherwise a window would cover nothing, and its mean
/// would be a division by zero.
fn pad(pad: i32, filter: usize) -> Result<usize, OpError> {
    match usize::try_from(pad) {
        Ok(pixels) if pixels < filter => Ok(pixels),
        _ => Err(OpError::value("padding", pad)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_sizes() {
        for (size, filter, stride, padding, want) in [
            (7, 3, 2, Padding::Valid, Some((3, 0))),
            (6, 3, 2, Padding::Same, Some((3, 0))),
            (7, 3, 2, Padding::Same, Some((4, 1))),
            (5, 1, 3, Padding::Same, Some((2, 0))),
            (1, 7, 5, Padding::Same, Some((1, 3))),
            (5, 3, 1, Padding::Explicit(2, 1), Some((6, 2))),
            (5, 3, 1, Padding::Explicit(3, 0), None),
            (5, 3, 1, Padding::Explicit(0, 3), None),
            (5, 3, 1, Padding::Explicit(-1, 0), None),
            (2, 3, 1, Padding::Valid, None),
            (5, 0, 1, Padding::Valid, None),
            (5, 1, 0, Padding::Valid, None),
            (u32::MAX, i32::MAX, i32::MAX, Padding::Same, Some((3, 1_073_741_823))),
        ] {
            let got = axis(size, filter, stride, padding).ok().map(|a| (a.output, a.pad));
            assert_eq!(got, want, "{size} {filter} {stride} {padding:?}");
        }
    }

    #[test]
    fn no_window_is_empty() {
        for (size, filter, stride) in [(1, 7, 5), (9, 4, 3), (10, 2, 7), (3, 3, 1)] {
            let most = filter - 1;
            for padding in [Padding::Same, Padding::Explicit(most, most)] {
                let axis = axis(size, filter, stride, padding).unwrap();
                for window in 0..axis.output {
                    assert!(!axis.covered(window).is_empty(), "{axis:?}, window {window}");
                }
            }
        }
    }
}
