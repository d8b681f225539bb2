//! Numeric code over plain slices: no driver types in the signatures.
//!
//! `simd/` holds what needs instruction-set intrinsics, the only `unsafe` of this crate.

pub(crate) mod arg_bytes;
pub mod conv_geometry;
pub mod conv_reference;
pub mod depthwise;
pub mod float_panels;
pub(crate) mod float_rows;
pub mod gemm;
pub mod gemm_pairs;
pub mod gemm_quads;
pub mod im2col;
pub mod lanes;
pub mod lstm;
pub mod lstm_fixed;
pub mod lstm_packed;
pub mod lstm_quant16;
pub mod lstm_quant8;
pub mod lut;
pub mod norm;
pub(crate) mod panels;
pub mod pool;
pub mod quant;
pub mod reduce;
pub mod requantize;
pub mod resize;
pub(crate) mod resize_lines;
pub mod rnn;
pub(crate) mod sigmoid;
pub(crate) mod simd;
pub mod softmax;
pub mod softmax_fixed;
pub mod strided;
pub mod sum;
pub mod svdf;

/// Instruction sets that kernels may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa {
    /// AVX2 and FMA.
    pub avx2: bool,
    /// AVX-512 F, BW, DQ and VL.
    pub avx512: bool,
    /// AVX-512 VNNI.
    pub vnni: bool,
}

impl Isa {
    /// None: portable code only.
    pub const PORTABLE: Isa = Isa { avx2: false, avx512: false, vnni: false };

    /// What this machine has.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma");
            let avx512 =
                avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
            Isa { avx2, avx512, vnni: avx512 && has!("avx512vnni") }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Isa::PORTABLE
    }
}
