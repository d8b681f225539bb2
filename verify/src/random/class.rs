//! How large random models are.

use serde::Serialize;

/// The classes of the original random tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// One operation, with what it needs to get values that it can compute with; dimensions up to 1,000.
    Single,
    /// Five operations.
    Small,
    /// Forty operations.
    Large,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 3] = [Class::Single, Class::Small, Class::Large];

    /// The name on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Class::Single => "single",
            Class::Small => "small",
            Class::Large => "large",
        }
    }

    /// Operations of a model's main graph, at least.
    #[must_use]
    pub const fn operations(self) -> usize {
        match self {
            Class::Single => 1,
            Class::Small => 5,
            Class::Large => 40,
        }
    }
}
