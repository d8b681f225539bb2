//! The suites a test runs in.

use crate::vectors::Test;

/// A suite of executions, or of mutations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suite {
    /// The model as it is: status NONE and the right values.
    General,
    /// The outputs' sizes unknown to the model; and output 0 one byte too short.
    DynamicShape,
    /// The same model with signed quantized types gives the same results.
    QuantizationCoupling,
    /// A loop that never ends is ended by its time-out.
    InfiniteLoopTimeout,
    /// Broken models and requests are refused.
    Validation,
}

impl Suite {
    /// Every suite.
    pub const ALL: [Suite; 5] = [
        Suite::General,
        Suite::DynamicShape,
        Suite::QuantizationCoupling,
        Suite::InfiniteLoopTimeout,
        Suite::Validation,
    ];

    /// Its name in the vector files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Suite::General => "GENERAL",
            Suite::DynamicShape => "DYNAMIC_SHAPE",
            Suite::QuantizationCoupling => "QUANTIZATION_COUPLING",
            Suite::InfiniteLoopTimeout => "INFINITE_LOOP_TIMEOUT",
            Suite::Validation => "VALIDATION",
        }
    }

    /// The suites this test runs in. A test that names none runs as general.
    pub fn of(test: &Test) -> impl Iterator<Item = Suite> + '_ {
        let named = |suite: &Suite| {
            test.vts.iter().any(|name| name == suite.name())
                || test.vts.is_empty() && *suite == Suite::General
        };
        Suite::ALL.into_iter().filter(named)
    }
}

impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
