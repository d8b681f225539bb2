//! The suites a test runs in, and how requests travel in each.

use burst_hal::Route;

/// A suite of executions, or of mutations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suite {
    /// The model as it is: status NONE and the right values.
    General,
    /// The same with arguments in plain shared memory, and in buffers of the driver.
    MemoryDomain,
    /// The same behind fences, and in a chain of two.
    FencedCompute,
    /// The same with other priorities and with deadlines, which may be missed by the statuses for it.
    Deadline,
    /// The outputs' sizes unknown to the model; and output 0 one byte too short.
    DynamicShape,
    /// The same model with signed quantized types gives the same results.
    QuantizationCoupling,
    /// A loop that never ends is ended by its time-out.
    InfiniteLoopTimeout,
    /// Broken models and requests are refused.
    Validation,
    /// Tests that no suite of the HAL has: right values, or for those that have to fail, any failure.
    CtsOnly,
}

impl Suite {
    /// Every suite.
    pub const ALL: [Suite; 9] = [
        Suite::General,
        Suite::MemoryDomain,
        Suite::FencedCompute,
        Suite::Deadline,
        Suite::DynamicShape,
        Suite::QuantizationCoupling,
        Suite::InfiniteLoopTimeout,
        Suite::Validation,
        Suite::CtsOnly,
    ];

    /// Its name in reports; where the files name it, the name there.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Suite::General => "GENERAL",
            Suite::MemoryDomain => "MEMORY_DOMAIN",
            Suite::FencedCompute => "FENCED_COMPUTE",
            Suite::Deadline => "DEADLINE",
            Suite::DynamicShape => "DYNAMIC_SHAPE",
            Suite::QuantizationCoupling => "QUANTIZATION_COUPLING",
            Suite::InfiniteLoopTimeout => "INFINITE_LOOP_TIMEOUT",
            Suite::Validation => "VALIDATION",
            Suite::CtsOnly => "CTS_ONLY",
        }
    }

    /// The suite that the files call so. They name neither DEADLINE, in which every test runs that does
    /// not have to fail, nor CTS_ONLY, in which those run that name none.
    #[must_use]
    pub fn in_files(name: &str) -> Option<Suite> {
        let is_named = |suite: &Suite| !matches!(suite, Suite::Deadline | Suite::CtsOnly);
        Suite::ALL.into_iter().filter(is_named).find(|suite| suite.name() == name)
    }

    /// How requests travel in it.
    #[must_use]
    pub fn routes(self) -> &'static [Route] {
        use Route::{Asynchronous, Burst, Fenced, Synchronous};
        match self {
            Suite::General | Suite::CtsOnly => &[Synchronous, Asynchronous, Burst],
            Suite::FencedCompute => &[Fenced],
            Suite::Deadline => &[Synchronous, Asynchronous],
            // A burst of HAL 1.2 carries neither buffers nor time-outs.
            Suite::MemoryDomain | Suite::InfiniteLoopTimeout => {
                &[Synchronous, Asynchronous, Fenced]
            }
            Suite::DynamicShape | Suite::QuantizationCoupling | Suite::Validation => &Route::ALL,
        }
    }

    /// Whether it has a part that executes nothing: broken models, or preparations.
    #[must_use]
    pub fn has_models(self) -> bool {
        matches!(self, Suite::Validation | Suite::Deadline)
    }
}

impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
