//! The table of kernels: a row for each. A test holds it to the folders, and compares every kernel that is
//! compiled for several instruction sets with its reference at every level that this machine has.

use super::simd::KernelInfo;
use super::{
    add_float, add_quantized, argmax, conv, depthwise_float, depthwise_quantized, functions, lstm,
    lut, matmul_float, matmul_quantized, norm, panels, pool, quantize, reduce, requantize, resize,
    rnn, softmax, strided, svdf,
};

/// Declares the table of announcements, and for tests each kernel's comparison with its reference.
macro_rules! kernels {
    ($($info:path $(, compared by $check:path)?;)*) => {
        /// Every kernel, by name.
        pub(crate) static KERNELS: &[&KernelInfo] = &[$(&$info),*];

        /// The comparison of each kernel with its reference, which computes with the instruction sets
        /// that it is given and panics where the two differ.
        #[cfg(test)]
        static COMPARISONS: &[(&KernelInfo, Option<fn(super::simd::Isa)>)] =
            &[$((&$info, [$(Some($check as fn(super::simd::Isa)),)? None][0])),*];
    };
}

kernels! {
    add_float::ADDENDS, compared by add_float::tests::sums;
    add_float::SUMS, compared by add_float::tests::sums;
    add_quantized::SIGNED, compared by add_quantized::tests::signed;
    add_quantized::UNSIGNED, compared by add_quantized::tests::unsigned;
    argmax::POSITIONS, compared by argmax::tests::positions;
    conv::LOOPS;
    depthwise_float::ROWS, compared by depthwise_float::tests::rows;
    depthwise_quantized::COLUMNS, compared by depthwise_quantized::tests::columns;
    depthwise_quantized::PAIRS, compared by depthwise_quantized::tests::pairs;
    depthwise_quantized::ROWS, compared by depthwise_quantized::tests::rows;
    functions::EXP, compared by functions::tests::exponentials;
    functions::LN, compared by functions::tests::logarithms;
    functions::LOGISTIC, compared by functions::tests::logistics;
    functions::TANH, compared by functions::tests::tangents;
    lstm::FLOAT;
    lstm::GATES, compared by lstm::tests::gates;
    lstm::QUANT16;
    lstm::QUANT8, compared by lstm::tests::quant8;
    lut::TABLE;
    matmul_float::CLAMP, compared by matmul_float::tests::clamp;
    matmul_float::LIBRARY;
    matmul_float::PANELS, compared by matmul_float::tests::panels;
    matmul_quantized::COPY_FLIPPED, compared by matmul_quantized::tests::copy_flipped;
    matmul_quantized::FLIP, compared by matmul_quantized::tests::flip;
    matmul_quantized::LIBRARY;
    matmul_quantized::PAIRS, compared by matmul_quantized::tests::pairs;
    matmul_quantized::QUADS, compared by matmul_quantized::tests::quads;
    matmul_quantized::ROW_SUMS, compared by matmul_quantized::tests::row_sums;
    matmul_quantized::SIGNED_SUMS, compared by matmul_quantized::tests::signed_sums;
    matmul_quantized::WIDE_PAIRS, compared by matmul_quantized::tests::wide_pairs;
    norm::INSTANCE;
    norm::L2;
    norm::LOCAL_RESPONSE;
    panels::TURN, compared by panels::tests::turn;
    panels::TURN_PAIRS, compared by panels::tests::turn_pairs;
    pool::WINDOWS;
    quantize::BYTES, compared by quantize::tests::bytes;
    quantize::FLOATS, compared by quantize::tests::floats;
    reduce::FOLD;
    requantize::ROWS, compared by requantize::tests::rows;
    resize::BYTES, compared by resize::tests::bytes;
    resize::FLOATS, compared by resize::tests::floats;
    resize::PIXELS;
    resize::SIGNED, compared by resize::tests::signed;
    rnn::STEP, compared by rnn::tests::steps;
    softmax::BYTES;
    softmax::FLOATS;
    strided::MOVE;
    svdf::STEP, compared by svdf::tests::steps;
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
