//! Numeric code over plain slices: no driver types in the signatures but those that end long work
//! ([`Stop`](crate::op::Stop)) or pay for packed constants ([`Budget`](crate::op::Budget)).
//!
//! A folder is a family of kernels: `portable.rs` (or files named for what they hold), bodies for
//! instruction sets (`avx2.rs`, `avx_vnni.rs`, `avx512.rs`, `neon.rs`), `dispatch.rs`, in which each kernel announces itself and
//! the best of its bodies is chosen, `mod.rs` with what operations call, and the tests against the
//! reference. [`table`] lists all kernels. Files beside the folders hold arithmetic that families share,
//! `simd/` what bodies for instruction sets stand on.

pub(crate) mod add_float;
pub(crate) mod add_quantized;
pub(crate) mod argmax;
pub(crate) mod conv;
pub(crate) mod depthwise_float;
pub(crate) mod depthwise_quantized;
pub(crate) mod functions;
pub(crate) mod lanes;
pub(crate) mod lstm;
pub(crate) mod lut;
pub(crate) mod matmul_float;
pub(crate) mod matmul_quantized;
pub(crate) mod norm;
mod panels;
pub(crate) mod peak;
pub(crate) mod pool;
pub(crate) mod quant;
pub(crate) mod quantize;
pub(crate) mod reduce;
pub(crate) mod requantize;
pub(crate) mod resize;
pub(crate) mod rnn;
pub(crate) mod simd;
pub(crate) mod softmax;
pub(crate) mod strided;
pub(crate) mod svdf;
pub(crate) mod table;
#[cfg(test)]
mod testing;

pub use simd::Isa;
