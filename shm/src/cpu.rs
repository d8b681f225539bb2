//! What is known of the CPU beyond its instruction sets, and an instruction that waits. They choose between ways that lead to the same
//! results.

#![allow(unsafe_code, reason = "an instruction that waits")]

/// Whether this is AMD's fourth generation ("Zen 4"), known by features that came with it and those that came later. Where
/// a system hides features the answer may be wrong: that costs time and changes no result.
#[must_use]
#[inline]
pub fn is_zen4() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        is_zen4_or_zen5() && !(has!("avxvnni") || has!("avx512vp2intersect"))
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether this is AMD's fourth generation or its fifth ("Zen 5"), known likewise.
#[must_use]
#[inline]
pub fn is_zen4_or_zen5() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        has!("avx512bf16") && has!("avx512vbmi2") && !has!("avx512fp16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether this CPU can hand a line to the cache that all CPUs share ([`Region::give_away`](crate::Region::give_away)).
/// Asks the CPU: for who keeps the answer.
#[must_use]
pub fn gives_lines_away() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        /// Extended features.
        const LEAF: u32 = 7;
        /// In its register `ecx`.
        const CLDEMOTE: u32 = 1 << 25;
        __cpuid(0).eax >= LEAF && __cpuid_count(LEAF, 0).ecx & CLDEMOTE != 0
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

/// Begins nothing more before all loads up to here are done: for who polls a word while the other half of its core works, which gets what
/// this half would have begun in vain. Elsewhere than on x86-64 a [hint](std::hint::spin_loop) that this thread waits.
#[inline(always)]
pub fn finish_loads() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: waits, and changes nothing; every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    std::hint::spin_loop();
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    /// What the kernel says of this CPU.
    fn cpuinfo(name: &str) -> String {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("", |(_, value)| value.trim()).to_owned()
    }

    fn has(flag: &str) -> bool {
        cpuinfo("flags").split(' ').any(|each| each == flag)
    }

    /// The family that Zen 3 and 4 share, that of Zen 5, and the features, as the kernel tells them.
    #[test]
    fn they_are_families_with_features_of_their_later_generations() {
        let is_amd = cpuinfo("vendor_id") == "AuthenticAMD";
        let family: u32 = cpuinfo("cpu family").parse().unwrap_or(0);
        let has_zen4s = has("avx512_bf16") && has("avx512_vbmi2") && !has("avx512_fp16");
        let has_zen5s = has("avx_vnni") || has("avx512_vp2intersect");
        let (is_zen4, is_zen4_or_zen5) = match (is_amd, family) {
            (true, 25) => (has_zen4s, has_zen4s),
            // Of a newer one the system may hide what tells it.
            (true, 26..) => (has_zen4s && !has_zen5s, has_zen4s),
            _ => (false, false),
        };
        assert_eq!(super::is_zen4(), is_zen4);
        assert_eq!(super::is_zen4_or_zen5(), is_zen4_or_zen5);
    }

    #[cfg(not(miri))]
    #[test]
    fn it_gives_lines_away_where_the_kernel_says_so_too() {
        assert_eq!(super::gives_lines_away(), has("cldemote"));
    }
}
