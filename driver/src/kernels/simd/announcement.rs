//! What a kernel says of itself, and the macro that says it.

use burst_hal::{OperandType, OperationType};

use super::isa::{Isa, Level};

/// A kernel as it announces itself.
#[derive(Debug)]
pub(crate) struct KernelInfo {
    /// The family, which is the folder of the same name, then the kernel: `family/kernel`.
    pub(crate) name: &'static str,
    /// Operations that it computes, or is a part of.
    pub(crate) operations: &'static [OperationType],
    /// Types of the tensors that it computes.
    pub(crate) types: &'static [OperandType],
    /// The levels that it is compiled for, from the lowest to the highest.
    pub(crate) compiled_for: &'static [Level],
    /// Those of them that it has a body of its own for.
    pub(crate) written_for: &'static [Level],
}

impl KernelInfo {
    /// The level that it runs at where these instruction sets are allowed and there; `None` where it
    /// cannot run.
    pub(crate) fn level(&self, isa: Isa) -> Option<Level> {
        self.compiled_for.iter().copied().filter(|level| isa.has(*level)).max()
    }
}

/// Defines a kernel's function and its announcement, a [`KernelInfo`].
///
/// The function takes the allowed instruction sets first and runs the portable body, compiled for
/// the best of them that the CPU has. Where the kernel has a body of its own for AVX2 or AVX-512 it
/// is named as `avx2: path` and `avx512: path` and runs there instead. On 64-bit Arm, where the compiler
/// may use NEON everywhere, the portable body is compiled once, and one of its own is named as
/// `neon: path`. Only for files named `dispatch.rs`: this expands to `unsafe` calls.
macro_rules! kernel {
    (
        $(#[$doc:meta])*
        fn $function:ident($($arg:ident: $ty:ty),* $(,)?);
        announced as $info:ident = $name:literal,
        operations: [$($operation:ident),* $(,)?],
        types: [$($operand:ident),* $(,)?],
        portable: $portable:path
        $(, avx2: $avx2:path)?
        $(, avx512: $avx512:path)?
        $(, neon: $neon:path)?
        $(,)?
    ) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "those of the kernel, and the instructions")]
        pub(crate) fn $function(isa: $crate::kernels::simd::Isa, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512_form($($arg: $ty),*) {
                    $crate::kernels::simd::own_or!([$($avx512)?] $portable)($($arg),*);
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2_form($($arg: $ty),*) {
                    $crate::kernels::simd::own_or!([$($avx2)?] $portable)($($arg),*);
                }
                if $crate::kernels::simd::has_avx512(isa) {
                    // SAFETY: the CPU has the features that the function is compiled for: asked
                    // in the line above.
                    return unsafe { avx512_form($($arg),*) };
                }
                if $crate::kernels::simd::has_avx2(isa) {
                    // SAFETY: as above.
                    return unsafe { avx2_form($($arg),*) };
                }
            }
            #[cfg(target_arch = "aarch64")]
            $crate::kernels::simd::neon_or_on!([$($neon)?] isa, $($arg),*);
            #[cfg(not(target_arch = "x86_64"))]
            let _ = isa;
            $portable($($arg),*);
        }

        #[doc = concat!("`", $name, "`: see [`", stringify!($function), "`].")]
        pub(crate) const $info: $crate::kernels::simd::KernelInfo =
            $crate::kernels::simd::KernelInfo {
                name: $name,
                operations: &[$(burst_hal::OperationType::$operation),*],
                types: &[$(burst_hal::OperandType::$operand),*],
                compiled_for: &[
                    $crate::kernels::simd::Level::Portable,
                    $crate::kernels::simd::Level::Avx2,
                    $crate::kernels::simd::Level::Avx512,
                    $($crate::kernels::simd::level_of!(Neon $neon),)?
                ],
                written_for: &[
                    $crate::kernels::simd::Level::Portable,
                    $($crate::kernels::simd::level_of!(Avx2 $avx2),)?
                    $($crate::kernels::simd::level_of!(Avx512 $avx512),)?
                    $($crate::kernels::simd::level_of!(Neon $neon),)?
                ],
            };
    };
}

/// Defines the announcement of a kernel of which there is only the portable form.
macro_rules! portable_kernel {
    (
        $(#[$doc:meta])*
        $info:ident = $name:literal,
        operations: [$($operation:ident),* $(,)?],
        types: [$($operand:ident),* $(,)?] $(,)?
    ) => {
        $(#[$doc])*
        pub(crate) const $info: $crate::kernels::simd::KernelInfo =
            $crate::kernels::simd::KernelInfo {
                name: $name,
                operations: &[$(burst_hal::OperationType::$operation),*],
                types: &[$(burst_hal::OperandType::$operand),*],
                compiled_for: &[$crate::kernels::simd::Level::Portable],
                written_for: &[$crate::kernels::simd::Level::Portable],
            };
    };
}

/// The body of its own that a kernel has, or else the portable one.
#[cfg(target_arch = "x86_64")]
macro_rules! own_or {
    ([$own:path] $portable:path) => {
        $own
    };
    ([] $portable:path) => {
        $portable
    };
}

/// Returns what a kernel's own body for NEON does, where it has one that may run; else goes on.
#[cfg(target_arch = "aarch64")]
macro_rules! neon_or_on {
    ([$own:path] $isa:ident, $($arg:ident),*) => {
        if $crate::kernels::simd::has_neon($isa) {
            // SAFETY: the CPU has the features that the function is compiled for: asked in the line
            // above.
            return unsafe { $own($($arg),*) };
        }
    };
    ([] $isa:ident, $($arg:ident),*) => {};
}

/// The level that a body is for.
macro_rules! level_of {
    ($level:ident $body:path) => {
        $crate::kernels::simd::Level::$level
    };
}

#[cfg(target_arch = "aarch64")]
pub(crate) use neon_or_on;
#[cfg(target_arch = "x86_64")]
pub(crate) use own_or;
pub(crate) use {kernel, level_of, portable_kernel};
