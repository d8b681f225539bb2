//! Chooses the body for the instruction sets that there are.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

#[cfg(target_arch = "aarch64")]
use super::neon;
use super::portable;
#[cfg(target_arch = "x86_64")]
use super::{avx_vnni, avx2, avx512};
use crate::kernels::simd::Isa;
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::{has_avx_vnni, has_avx2, has_avx512, has_vnni};
#[cfg(target_arch = "aarch64")]
use crate::kernels::simd::{has_dotprod, has_i8mm, has_neon};

/// Adds up products of floats so many times, with the best instructions that are allowed; how many there
/// were.
pub(crate) fn floats(isa: Isa, rounds: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512(isa) {
            // SAFETY: the CPU has the features that the function is compiled for: asked in the line above.
            return unsafe { avx512::floats(rounds) };
        }
        if has_avx2(isa) && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { avx2::floats(rounds) };
        }
    }
    #[cfg(target_arch = "aarch64")]
    if has_neon(isa) {
        // SAFETY: the CPU has the features that the function is compiled for: asked in the line above.
        return unsafe { neon::floats(rounds) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = isa;
    portable::floats(rounds)
}

/// The same of stored values of 8 bits.
pub(crate) fn bytes(isa: Isa, rounds: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw")]
        fn avx512_form(rounds: u32) -> u64 {
            portable::bytes(rounds)
        }
        #[target_feature(enable = "avx2")]
        fn avx2_form(rounds: u32) -> u64 {
            portable::bytes(rounds)
        }
        if has_vnni(isa) {
            // SAFETY: the CPU has the features that the function is compiled for: asked in the line above.
            return unsafe { avx512::bytes(rounds) };
        }
        if has_avx_vnni(isa) {
            // SAFETY: as above.
            return unsafe { avx_vnni::bytes(rounds) };
        }
        if has_avx512(isa) {
            // SAFETY: as above.
            return unsafe { avx512_form(rounds) };
        }
        if has_avx2(isa) {
            // SAFETY: as above.
            return unsafe { avx2_form(rounds) };
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        if has_i8mm(isa) {
            // SAFETY: the CPU has the features that the function is compiled for: asked in the line above.
            return unsafe { neon::matrices(rounds) };
        }
        if has_dotprod(isa) {
            // SAFETY: as above.
            return unsafe { neon::dots(rounds) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = isa;
    portable::bytes(rounds)
}
