//! Option tables of the operators, with the code that names each in the union of options.

use flatbuffers::{ForwardsUOffset, InvalidFlatbuffer, Vector, Verifiable, Verifier};

use super::{Scalars, Table, View, accessor, field_type, tables};

/// A table of options.
pub(crate) trait Options<'a>: View<'a> {
    /// Its code in the union.
    const CODE: u8;
}

tables! {
    /// Of CONV_2D.
    Conv2dOptions {
        0 padding: scalar i8 = 0,
        1 stride_w: scalar i32 = 0,
        2 stride_h: scalar i32 = 0,
        3 activation: scalar i8 = 0,
        4 dilation_w: scalar i32 = 1,
        5 dilation_h: scalar i32 = 1,
    }
    /// Of DEPTHWISE_CONV_2D.
    DepthwiseOptions {
        0 padding: scalar i8 = 0,
        1 stride_w: scalar i32 = 0,
        2 stride_h: scalar i32 = 0,
        3 depth_multiplier: scalar i32 = 0,
        4 activation: scalar i8 = 0,
        5 dilation_w: scalar i32 = 1,
        6 dilation_h: scalar i32 = 1,
    }
    /// Of the pooling operators.
    PoolOptions {
        0 padding: scalar i8 = 0,
        1 stride_w: scalar i32 = 0,
        2 stride_h: scalar i32 = 0,
        3 filter_w: scalar i32 = 0,
        4 filter_h: scalar i32 = 0,
        5 activation: scalar i8 = 0,
    }
    /// Of SVDF.
    SvdfOptions {
        0 rank: scalar i32 = 0,
        1 activation: scalar i8 = 0,
    }
    /// Of RNN.
    RnnOptions {
        0 activation: scalar i8 = 0,
    }
    /// Of FULLY_CONNECTED.
    FullyConnectedOptions {
        0 activation: scalar i8 = 0,
        1 weights_format: scalar i8 = 0,
        2 keep_num_dims: scalar bool = false,
    }
    /// Of SOFTMAX.
    SoftmaxOptions {
        0 beta: scalar f32 = 0.0,
    }
    /// Of CONCATENATION.
    ConcatenationOptions {
        0 axis: scalar i32 = 0,
        1 activation: scalar i8 = 0,
    }
    /// Of ADD.
    AddOptions {
        0 activation: scalar i8 = 0,
    }
    /// Of L2_NORMALIZATION.
    L2NormOptions {
        0 activation: scalar i8 = 0,
    }
    /// Of RESIZE_BILINEAR.
    ResizeBilinearOptions {
        2 align_corners: scalar bool = false,
        3 half_pixel_centers: scalar bool = false,
    }
    /// Of RESHAPE.
    ReshapeOptions {
        0 new_shape: scalars i32,
    }
    /// Of SPACE_TO_DEPTH.
    SpaceToDepthOptions {
        0 block_size: scalar i32 = 0,
    }
    /// Of MUL.
    MulOptions {
        0 activation: scalar i8 = 0,
    }
    /// Of GATHER.
    GatherOptions {
        0 axis: scalar i32 = 0,
        1 batch_dims: scalar i32 = 0,
    }
    /// Of MEAN and the other reductions.
    ReducerOptions {
        0 keep_dims: scalar bool = false,
    }
    /// Of SUB.
    SubOptions {
        0 activation: scalar i8 = 0,
    }
    /// Of DIV.
    DivOptions {
        0 activation: scalar i8 = 0,
    }
    /// Of SQUEEZE.
    SqueezeOptions {
        0 squeeze_dims: scalars i32,
    }
    /// Of STRIDED_SLICE.
    StridedSliceOptions {
        0 begin_mask: scalar i32 = 0,
        1 end_mask: scalar i32 = 0,
        2 ellipsis_mask: scalar i32 = 0,
        3 new_axis_mask: scalar i32 = 0,
        4 shrink_axis_mask: scalar i32 = 0,
        5 offset: scalar bool = false,
    }
    /// Of SPLIT.
    SplitOptions {
        0 num_splits: scalar i32 = 0,
    }
    /// Of UNIDIRECTIONAL_SEQUENCE_LSTM.
    SequenceLstmOptions {
        0 activation: scalar i8 = 0,
        1 cell_clip: scalar f32 = 0.0,
        2 proj_clip: scalar f32 = 0.0,
        3 time_major: scalar bool = false,
        5 diagonal_recurrent_tensors: scalar bool = false,
    }
    /// Of RESIZE_NEAREST_NEIGHBOR.
    ResizeNearestOptions {
        0 align_corners: scalar bool = false,
        1 half_pixel_centers: scalar bool = false,
    }
    /// Of LEAKY_RELU.
    LeakyReluOptions {
        0 alpha: scalar f32 = 0.0,
    }
    /// Of DEPTH_TO_SPACE.
    DepthToSpaceOptions {
        0 block_size: scalar i32 = 0,
    }
}

/// Gives each table its code and dispatches the verifier on it.
macro_rules! union {
    ($($code:literal $name:literal $view:ident,)*) => {
        $(impl<'a> Options<'a> for $view<'a> {
            const CODE: u8 = $code;
        })*

        /// Verifies the options that this code names. Tables that are never read are not looked at.
        pub(super) fn verify_options(
            code: u8,
            verifier: &mut Verifier<'_, '_>,
            at: usize,
        ) -> Result<(), InvalidFlatbuffer> {
            match code {
                $($code => verifier.verify_union_variant::<ForwardsUOffset<$view<'_>>>($name, at),)*
                _ => Ok(()),
            }
        }
    };
}

union! {
    1 "Conv2DOptions" Conv2dOptions,
    2 "DepthwiseConv2DOptions" DepthwiseOptions,
    5 "Pool2DOptions" PoolOptions,
    6 "SVDFOptions" SvdfOptions,
    7 "RNNOptions" RnnOptions,
    8 "FullyConnectedOptions" FullyConnectedOptions,
    9 "SoftmaxOptions" SoftmaxOptions,
    10 "ConcatenationOptions" ConcatenationOptions,
    11 "AddOptions" AddOptions,
    12 "L2NormOptions" L2NormOptions,
    15 "ResizeBilinearOptions" ResizeBilinearOptions,
    17 "ReshapeOptions" ReshapeOptions,
    19 "SpaceToDepthOptions" SpaceToDepthOptions,
    21 "MulOptions" MulOptions,
    23 "GatherOptions" GatherOptions,
    27 "ReducerOptions" ReducerOptions,
    28 "SubOptions" SubOptions,
    29 "DivOptions" DivOptions,
    30 "SqueezeOptions" SqueezeOptions,
    32 "StridedSliceOptions" StridedSliceOptions,
    35 "SplitOptions" SplitOptions,
    71 "UnidirectionalSequenceLSTMOptions" SequenceLstmOptions,
    74 "ResizeNearestNeighborOptions" ResizeNearestOptions,
    75 "LeakyReluOptions" LeakyReluOptions,
    94 "DepthToSpaceOptions" DepthToSpaceOptions,
}
