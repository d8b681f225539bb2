//! What is known of the CPU beyond its instruction sets. It chooses between ways that lead to the same results.

/// Whether this is AMD's fourth generation ("Zen 4"), known by features that came with it and those that came later. Where
/// a system hides features the answer may be wrong: that costs time and changes no result.
#[must_use]
#[inline]
pub fn is_zen4() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let has_its_own = has!("avx512bf16") && has!("avx512vbmi2");
        let is_newer = has!("avx512fp16") || has!("avxvnni") || has!("avx512vp2intersect");
        has_its_own && !is_newer
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    /// The family that Zen 3 and 4 share, and the features, as the kernel tells them.
    #[test]
    fn it_is_the_family_of_two_generations_with_features_of_the_later() {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let value = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_once(':').map_or("", |(_, value)| value.trim()).to_owned()
        };
        let has = |flag: &str| value("flags").split(' ').any(|each| each == flag);
        let is_amd = value("vendor_id") == "AuthenticAMD";
        let family: u32 = value("cpu family").parse().unwrap_or(0);
        match (is_amd, family) {
            (true, 25) => {
                assert_eq!(super::is_zen4(), has("avx512_bf16") && has("avx512_vbmi2"));
            }
            // Of a newer one the system may hide what tells it.
            (true, 26..) => {}
            _ => assert!(!super::is_zen4()),
        }
    }
}
