//! Operation types of HAL 1.0 to 1.3 with their codes and the version that brought each.
//!
//! Source: `types.hal` of NNAPI 1.0, 1.1, 1.2 and 1.3, `OperationType`.

use crate::HalVersion;

/// Declares the enum once, and from the same rows its codes, names and versions.
macro_rules! operation_types {
    ($($code:literal $variant:ident $name:literal $since:ident,)*) => {
        /// What an operation computes.
        ///
        /// A model from a peer can hold any number; a code that stands for nothing is kept as
        /// [`OperationType::Unknown`], so that validation can say which one it was.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum OperationType {
            $(
                #[doc = concat!("`", $name, "`, code ", stringify!($code), ".")]
                $variant,
            )*
            /// `OEM_OPERATION`, code 10000: legal in a model, never supported here.
            OemOperation,
            /// An operation of an extension: a code above `0xFFFF`, read as a number without sign.
            Extension(i32),
            /// A code that no HAL version defines.
            Unknown(i32),
        }

        impl OperationType {
            /// Every operation of the base range, by code.
            pub const ALL: &'static [OperationType] = &[$(OperationType::$variant,)*];

            /// The operation with this code; never fails, see [`OperationType::Unknown`].
            #[must_use]
            pub const fn from_code(code: i32) -> Self {
                match code {
                    $($code => OperationType::$variant,)*
                    OEM_CODE => OperationType::OemOperation,
                    // A prefix of 0x8000 and more sets the sign bit.
                    0x1_0000.. | ..0 => OperationType::Extension(code),
                    _ => OperationType::Unknown(code),
                }
            }

            /// The number that stands for this operation on every boundary.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self {
                    $(OperationType::$variant => $code,)*
                    OperationType::OemOperation => OEM_CODE,
                    OperationType::Extension(code) | OperationType::Unknown(code) => code,
                }
            }

            /// The name in the specification.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(OperationType::$variant => $name,)*
                    OperationType::OemOperation => "OEM_OPERATION",
                    OperationType::Extension(_) => "EXTENSION",
                    OperationType::Unknown(_) => "UNKNOWN",
                }
            }

            /// The first HAL version that has this operation; `None` for a code without meaning.
            #[must_use]
            pub const fn since(self) -> Option<HalVersion> {
                match self {
                    $(OperationType::$variant => Some(HalVersion::$since),)*
                    OperationType::OemOperation => Some(HalVersion::V1_0),
                    OperationType::Extension(_) => Some(HalVersion::V1_2),
                    OperationType::Unknown(_) => None,
                }
            }

            /// The operation of the base range with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|op| op.name() == name)
            }
        }
    };
}

const OEM_CODE: i32 = 10_000;

operation_types! {
    0 Add "ADD" V1_0,
    1 AveragePool2d "AVERAGE_POOL_2D" V1_0,
    2 Concatenation "CONCATENATION" V1_0,
    3 Conv2d "CONV_2D" V1_0,
    4 DepthwiseConv2d "DEPTHWISE_CONV_2D" V1_0,
    5 DepthToSpace "DEPTH_TO_SPACE" V1_0,
    6 Dequantize "DEQUANTIZE" V1_0,
    7 EmbeddingLookup "EMBEDDING_LOOKUP" V1_0,
    8 Floor "FLOOR" V1_0,
    9 FullyConnected "FULLY_CONNECTED" V1_0,
    10 HashtableLookup "HASHTABLE_LOOKUP" V1_0,
    11 L2Normalization "L2_NORMALIZATION" V1_0,
    12 L2Pool2d "L2_POOL_2D" V1_0,
    13 LocalResponseNormalization "LOCAL_RESPONSE_NORMALIZATION" V1_0,
    14 Logistic "LOGISTIC" V1_0,
    15 LshProjection "LSH_PROJECTION" V1_0,
    16 Lstm "LSTM" V1_0,
    17 MaxPool2d "MAX_POOL_2D" V1_0,
    18 Mul "MUL" V1_0,
    19 Relu "RELU" V1_0,
    20 Relu1 "RELU1" V1_0,
    21 Relu6 "RELU6" V1_0,
    22 Reshape "RESHAPE" V1_0,
    23 ResizeBilinear "RESIZE_BILINEAR" V1_0,
    24 Rnn "RNN" V1_0,
    25 Softmax "SOFTMAX" V1_0,
    26 SpaceToDepth "SPACE_TO_DEPTH" V1_0,
    27 Svdf "SVDF" V1_0,
    28 Tanh "TANH" V1_0,
    29 BatchToSpaceNd "BATCH_TO_SPACE_ND" V1_1,
    30 Div "DIV" V1_1,
    31 Mean "MEAN" V1_1,
    32 Pad "PAD" V1_1,
    33 SpaceToBatchNd "SPACE_TO_BATCH_ND" V1_1,
    34 Squeeze "SQUEEZE" V1_1,
    35 StridedSlice "STRIDED_SLICE" V1_1,
    36 Sub "SUB" V1_1,
    37 Transpose "TRANSPOSE" V1_1,
    38 Abs "ABS" V1_2,
    39 Argmax "ARGMAX" V1_2,
    40 Argmin "ARGMIN" V1_2,
    41 AxisAlignedBboxTransform "AXIS_ALIGNED_BBOX_TRANSFORM" V1_2,
    42 BidirectionalSequenceLstm "BIDIRECTIONAL_SEQUENCE_LSTM" V1_2,
    43 BidirectionalSequenceRnn "BIDIRECTIONAL_SEQUENCE_RNN" V1_2,
    44 BoxWithNmsLimit "BOX_WITH_NMS_LIMIT" V1_2,
    45 Cast "CAST" V1_2,
    46 ChannelShuffle "CHANNEL_SHUFFLE" V1_2,
    47 DetectionPostprocessing "DETECTION_POSTPROCESSING" V1_2,
    48 Equal "EQUAL" V1_2,
    49 Exp "EXP" V1_2,
    50 ExpandDims "EXPAND_DIMS" V1_2,
    51 Gather "GATHER" V1_2,
    52 GenerateProposals "GENERATE_PROPOSALS" V1_2,
    53 Greater "GREATER" V1_2,
    54 GreaterEqual "GREATER_EQUAL" V1_2,
    55 GroupedConv2d "GROUPED_CONV_2D" V1_2,
    56 HeatmapMaxKeypoint "HEATMAP_MAX_KEYPOINT" V1_2,
    57 InstanceNormalization "INSTANCE_NORMALIZATION" V1_2,
    58 Less "LESS" V1_2,
    59 LessEqual "LESS_EQUAL" V1_2,
    60 Log "LOG" V1_2,
    61 LogicalAnd "LOGICAL_AND" V1_2,
    62 LogicalNot "LOGICAL_NOT" V1_2,
    63 LogicalOr "LOGICAL_OR" V1_2,
    64 LogSoftmax "LOG_SOFTMAX" V1_2,
    65 Maximum "MAXIMUM" V1_2,
    66 Minimum "MINIMUM" V1_2,
    67 Neg "NEG" V1_2,
    68 NotEqual "NOT_EQUAL" V1_2,
    69 PadV2 "PAD_V2" V1_2,
    70 Pow "POW" V1_2,
    71 Prelu "PRELU" V1_2,
    72 Quantize "QUANTIZE" V1_2,
    73 Quantized16bitLstm "QUANTIZED_16BIT_LSTM" V1_2,
    74 RandomMultinomial "RANDOM_MULTINOMIAL" V1_2,
    75 ReduceAll "REDUCE_ALL" V1_2,
    76 ReduceAny "REDUCE_ANY" V1_2,
    77 ReduceMax "REDUCE_MAX" V1_2,
    78 ReduceMin "REDUCE_MIN" V1_2,
    79 ReduceProd "REDUCE_PROD" V1_2,
    80 ReduceSum "REDUCE_SUM" V1_2,
    81 RoiAlign "ROI_ALIGN" V1_2,
    82 RoiPooling "ROI_POOLING" V1_2,
    83 Rsqrt "RSQRT" V1_2,
    84 Select "SELECT" V1_2,
    85 Sin "SIN" V1_2,
    86 Slice "SLICE" V1_2,
    87 Split "SPLIT" V1_2,
    88 Sqrt "SQRT" V1_2,
    89 Tile "TILE" V1_2,
    90 TopkV2 "TOPK_V2" V1_2,
    91 TransposeConv2d "TRANSPOSE_CONV_2D" V1_2,
    92 UnidirectionalSequenceLstm "UNIDIRECTIONAL_SEQUENCE_LSTM" V1_2,
    93 UnidirectionalSequenceRnn "UNIDIRECTIONAL_SEQUENCE_RNN" V1_2,
    94 ResizeNearestNeighbor "RESIZE_NEAREST_NEIGHBOR" V1_2,
    95 QuantizedLstm "QUANTIZED_LSTM" V1_3,
    96 If "IF" V1_3,
    97 While "WHILE" V1_3,
    98 Elu "ELU" V1_3,
    99 HardSwish "HARD_SWISH" V1_3,
    100 Fill "FILL" V1_3,
    101 Rank "RANK" V1_3,
}

impl std::fmt::Display for OperationType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OperationType::Extension(code) | OperationType::Unknown(code) => {
                write!(f, "{}({code})", self.name())
            }
            _ => f.write_str(self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_run_from_zero_without_a_gap_and_go_both_ways() {
        assert_eq!(OperationType::ALL.len(), 102);
        for (code, op) in (0..).zip(OperationType::ALL) {
            assert_eq!(op.code(), code, "{op}");
            assert_eq!(OperationType::from_code(code), *op);
            assert_eq!(OperationType::from_name(op.name()), Some(*op));
        }
    }

    #[test]
    fn codes_outside_the_base_range_keep_their_number() {
        for (code, want) in [
            (102, OperationType::Unknown(102)),
            (9_999, OperationType::Unknown(9_999)),
            (10_000, OperationType::OemOperation),
            (0x1_0000, OperationType::Extension(0x1_0000)),
            (i32::MIN, OperationType::Extension(i32::MIN)),
            (-1, OperationType::Extension(-1)),
        ] {
            assert_eq!(OperationType::from_code(code), want);
            assert_eq!(want.code(), code);
        }
    }
}
