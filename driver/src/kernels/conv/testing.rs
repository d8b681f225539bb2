//! Shapes for the tests of several families.

use super::{Axis, Conv, Filter, Images};

/// Depthwise convolutions: strides, dilations and paddings of many kinds, channels that fill vectors
/// and that do not.
pub(crate) fn depthwise_shapes() -> impl Iterator<Item = Conv> {
    let windows = [
        // Taps, stride, dilation, padding.
        (1, 1, 1, 0),
        (2, 2, 1, 0),
        (3, 1, 1, 1),
        (3, 2, 1, 1),
        (3, 1, 2, 2),
        (3, 1, 4, 4),
        (3, 2, 2, 1),
        (5, 1, 1, 2),
        (5, 3, 1, 2),
        (3, 1, 1, 4),
    ];
    let channels = [1, 3, 8, 12, 16, 31, 32, 33, 48, 70, 300];
    windows.into_iter().flat_map(move |(taps, stride, dilation, pad)| {
        channels.into_iter().map(move |channels| {
            let (height, width) = (7, if channels < 32 { 23 } else { 9 });
            let span = (taps - 1) * dilation + 1;
            let out = |size: usize| (size + 2 * pad - span) / stride + 1;
            let axis = Axis { stride, dilation, pad };
            Conv {
                input: Images::nhwc([2, height, width, channels]),
                filter: Filter::depthwise([taps, taps, channels]),
                output: Images::nhwc([2, out(height), out(width), channels]),
                vertical: axis,
                horizontal: axis,
                groups: channels,
            }
        })
    })
}
