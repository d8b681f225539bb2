//! Status codes, and the failure that carries one across a trait boundary.

use std::error::Error;
use std::sync::Arc;

use crate::HalVersion;

/// Declares a HAL enum of i32 codes with conversion both ways.
macro_rules! hal_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $code:literal $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i32)]
        pub enum $name {
            $($(#[$vmeta])* $variant = $code,)*
        }

        impl $name {
            /// The value with this code, if there is one.
            #[must_use]
            pub const fn from_code(code: i32) -> Option<Self> {
                match code {
                    $($code => Some($name::$variant),)*
                    _ => None,
                }
            }

            /// The number of this value in the HAL, on the wire and in files.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self {
                    $($name::$variant => $code,)*
                }
            }

            /// The name in the specification.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(crate) use hal_enum;

hal_enum! {
    /// How a call ended. Codes 5 to 8 exist since HAL 1.3.
    ErrorStatus {
        /// It worked.
        None = 0 "NONE",
        /// The device cannot be reached.
        DeviceUnavailable = 1 "DEVICE_UNAVAILABLE",
        /// It failed for a reason no other code names.
        GeneralFailure = 2 "GENERAL_FAILURE",
        /// An output buffer is too small; the shapes say what is needed.
        OutputInsufficientSize = 3 "OUTPUT_INSUFFICIENT_SIZE",
        /// An argument is illegal.
        InvalidArgument = 4 "INVALID_ARGUMENT",
        /// The deadline was missed; a retry might meet it.
        MissedDeadlineTransient = 5 "MISSED_DEADLINE_TRANSIENT",
        /// The deadline was missed and always will be.
        MissedDeadlinePersistent = 6 "MISSED_DEADLINE_PERSISTENT",
        /// A resource is short right now.
        ResourceExhaustedTransient = 7 "RESOURCE_EXHAUSTED_TRANSIENT",
        /// A resource will never suffice for this task.
        ResourceExhaustedPersistent = 8 "RESOURCE_EXHAUSTED_PERSISTENT",
    }
}

impl ErrorStatus {
    /// The status that a client of this version receives: a later version's codes become
    /// GENERAL_FAILURE.
    #[must_use]
    pub fn for_version(self, version: HalVersion) -> Self {
        match self {
            ErrorStatus::MissedDeadlineTransient
            | ErrorStatus::MissedDeadlinePersistent
            | ErrorStatus::ResourceExhaustedTransient
            | ErrorStatus::ResourceExhaustedPersistent
                if version < HalVersion::V1_3 =>
            {
                ErrorStatus::GeneralFailure
            }
            _ => self,
        }
    }
}

hal_enum! {
    /// Whether a device takes work.
    DeviceStatus {
        /// Idle.
        Available = 0 "AVAILABLE",
        /// Working; calls may wait.
        Busy = 1 "BUSY",
        /// Not operational.
        Offline = 2 "OFFLINE",
        /// The status is not known.
        Unknown = 3 "UNKNOWN",
    }
}

hal_enum! {
    /// What kind of hardware a device is (HAL 1.2).
    DeviceType {
        /// None of the others.
        Other = 1 "OTHER",
        /// General-purpose cores.
        Cpu = 2 "CPU",
        /// Graphics processor.
        Gpu = 3 "GPU",
        /// Dedicated accelerator.
        Accelerator = 4 "ACCELERATOR",
    }
}

hal_enum! {
    /// What a compilation should be good at (HAL 1.1).
    ExecutionPreference {
        /// Save energy.
        LowPower = 0 "LOW_POWER",
        /// The single answer as fast as can be.
        FastSingleAnswer = 1 "FAST_SINGLE_ANSWER",
        /// Throughput over a stream of frames.
        SustainedSpeed = 2 "SUSTAINED_SPEED",
    }
}

hal_enum! {
    /// How urgent a model is among those of one client (HAL 1.3).
    Priority {
        /// Yields to everybody.
        Low = 0 "LOW",
        /// The default.
        Medium = 1 "MEDIUM",
        /// Before the others.
        High = 2 "HIGH",
    }
}

hal_enum! {
    /// The activation that some operations apply to their result.
    FusedActivation {
        /// None.
        None = 0 "NONE",
        /// `max(0, x)`.
        Relu = 1 "RELU",
        /// `x` clamped to −1..1.
        Relu1 = 2 "RELU1",
        /// `x` clamped to 0..6.
        Relu6 = 3 "RELU6",
    }
}

impl FusedActivation {
    /// The activation of one value.
    #[must_use]
    pub fn apply(self, x: f32) -> f32 {
        match self {
            FusedActivation::None => x,
            FusedActivation::Relu => x.max(0.0),
            FusedActivation::Relu1 => x.clamp(-1.0, 1.0),
            FusedActivation::Relu6 => x.clamp(0.0, 6.0),
        }
    }
}

/// A call that did not work: the status the HAL has for it, and the cause in words.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{status}: {cause}")]
pub struct Failure {
    /// The status, for a HAL client.
    pub status: ErrorStatus,
    /// The cause, for a person.
    pub cause: Arc<dyn Error + Send + Sync>,
}

impl Failure {
    /// A failure with its cause.
    pub fn new(status: ErrorStatus, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Failure { status, cause: Arc::from(cause.into()) }
    }

    /// [`ErrorStatus::InvalidArgument`] with its cause.
    pub fn invalid(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Failure::new(ErrorStatus::InvalidArgument, cause)
    }

    /// [`ErrorStatus::GeneralFailure`] with its cause.
    pub fn general(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Failure::new(ErrorStatus::GeneralFailure, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_clamp() {
        let of =
            |x: f32| [0, 1, 2, 3].map(|code| FusedActivation::from_code(code).unwrap().apply(x));
        assert_eq!(of(-3.0), [-3.0, 0.0, -1.0, 0.0]);
        assert_eq!(of(7.5), [7.5, 7.5, 1.0, 6.0]);
    }

    #[test]
    fn an_earlier_client_is_told_statuses_it_knows() {
        for code in 0..=8 {
            let status = ErrorStatus::from_code(code).unwrap();
            assert_eq!(status.for_version(HalVersion::V1_3), status);
            let want = if code > 4 { ErrorStatus::GeneralFailure } else { status };
            assert_eq!(status.for_version(HalVersion::V1_2), want);
            assert_eq!(status.for_version(HalVersion::V1_0), want);
        }
        assert_eq!(ErrorStatus::from_code(9), None);
    }
}
