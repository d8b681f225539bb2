//! The four versions of the HAL.

/// A version of the Neural Networks HAL. Later versions contain the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HalVersion {
    /// HAL 1.0 (NDK feature level 27).
    V1_0,
    /// HAL 1.1 (NDK feature level 28).
    V1_1,
    /// HAL 1.2 (NDK feature level 29).
    V1_2,
    /// HAL 1.3 (NDK feature level 30).
    V1_3,
}

impl HalVersion {
    /// The newest version this crate speaks.
    pub const LATEST: HalVersion = HalVersion::V1_3;

    /// Every version, oldest first.
    pub const ALL: [HalVersion; 4] =
        [HalVersion::V1_0, HalVersion::V1_1, HalVersion::V1_2, HalVersion::V1_3];

    /// The NDK feature level that came with this version.
    #[must_use]
    pub const fn feature_level(self) -> u32 {
        match self {
            HalVersion::V1_0 => 27,
            HalVersion::V1_1 => 28,
            HalVersion::V1_2 => 29,
            HalVersion::V1_3 => 30,
        }
    }
}

impl std::fmt::Display for HalVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HalVersion::V1_0 => "1.0",
            HalVersion::V1_1 => "1.1",
            HalVersion::V1_2 => "1.2",
            HalVersion::V1_3 => "1.3",
        })
    }
}
