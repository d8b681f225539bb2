//! The result codes of the NDK, and which status of the HAL each stands for.
//!
//! Source: `NeuralNetworks.h`, NDK levels 27 to 30, `ANEURALNETWORKS_*`.

use crate::ErrorStatus;
use crate::status::hal_enum;

hal_enum! {
    /// How a call of the NDK ended.
    ResultCode {
        /// It worked.
        NoError = 0 "NO_ERROR",
        /// Memory ran out.
        OutOfMemory = 1 "OUT_OF_MEMORY",
        /// Something is not finished yet.
        Incomplete = 2 "INCOMPLETE",
        /// A null pointer.
        UnexpectedNull = 3 "UNEXPECTED_NULL",
        /// An argument is illegal.
        BadData = 4 "BAD_DATA",
        /// It failed for a reason no other code names.
        OpFailed = 5 "OP_FAILED",
        /// The object is not in a state for this call.
        BadState = 6 "BAD_STATE",
        /// A file could not be mapped.
        Unmappable = 7 "UNMAPPABLE",
        /// An output buffer is too small.
        OutputInsufficientSize = 8 "OUTPUT_INSUFFICIENT_SIZE",
        /// The device cannot be reached.
        UnavailableDevice = 9 "UNAVAILABLE_DEVICE",
        /// The deadline was missed; a retry might meet it.
        MissedDeadlineTransient = 10 "MISSED_DEADLINE_TRANSIENT",
        /// The deadline was missed and always will be.
        MissedDeadlinePersistent = 11 "MISSED_DEADLINE_PERSISTENT",
        /// A resource is short right now.
        ResourceExhaustedTransient = 12 "RESOURCE_EXHAUSTED_TRANSIENT",
        /// A resource will never suffice for this task.
        ResourceExhaustedPersistent = 13 "RESOURCE_EXHAUSTED_PERSISTENT",
        /// The driver's process has died.
        DeadObject = 14 "DEAD_OBJECT",
    }
}

impl From<ErrorStatus> for ResultCode {
    fn from(status: ErrorStatus) -> Self {
        match status {
            ErrorStatus::None => ResultCode::NoError,
            ErrorStatus::DeviceUnavailable => ResultCode::UnavailableDevice,
            ErrorStatus::GeneralFailure => ResultCode::OpFailed,
            ErrorStatus::OutputInsufficientSize => ResultCode::OutputInsufficientSize,
            ErrorStatus::InvalidArgument => ResultCode::BadData,
            ErrorStatus::MissedDeadlineTransient => ResultCode::MissedDeadlineTransient,
            ErrorStatus::MissedDeadlinePersistent => ResultCode::MissedDeadlinePersistent,
            ErrorStatus::ResourceExhaustedTransient => ResultCode::ResourceExhaustedTransient,
            ErrorStatus::ResourceExhaustedPersistent => ResultCode::ResourceExhaustedPersistent,
        }
    }
}

impl ResultCode {
    /// The code for a status as it came over a boundary; a number no status has is a failure.
    #[must_use]
    pub fn from_status_code(code: i32) -> Self {
        ErrorStatus::from_code(code).map_or(ResultCode::OpFailed, ResultCode::from)
    }
}

impl From<ResultCode> for ErrorStatus {
    fn from(code: ResultCode) -> Self {
        match code {
            ResultCode::NoError => ErrorStatus::None,
            ResultCode::BadData | ResultCode::UnexpectedNull => ErrorStatus::InvalidArgument,
            ResultCode::OutputInsufficientSize => ErrorStatus::OutputInsufficientSize,
            ResultCode::UnavailableDevice => ErrorStatus::DeviceUnavailable,
            ResultCode::OutOfMemory
            | ResultCode::Incomplete
            | ResultCode::OpFailed
            | ResultCode::BadState
            | ResultCode::Unmappable
            | ResultCode::DeadObject => ErrorStatus::GeneralFailure,
            ResultCode::MissedDeadlineTransient => ErrorStatus::MissedDeadlineTransient,
            ResultCode::MissedDeadlinePersistent => ErrorStatus::MissedDeadlinePersistent,
            ResultCode::ResourceExhaustedTransient => ErrorStatus::ResourceExhaustedTransient,
            ResultCode::ResourceExhaustedPersistent => ErrorStatus::ResourceExhaustedPersistent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_ndk_become_statuses() {
        let want = [0, 2, 2, 4, 4, 2, 2, 2, 3, 1, 5, 6, 7, 8, 2];
        for (code, status) in (0..).zip(want) {
            let code = ResultCode::from_code(code).unwrap();
            assert_eq!(ErrorStatus::from(code).code(), status, "{code}");
        }
        assert_eq!(ResultCode::from_code(15), None);
    }

    #[test]
    fn statuses_become_codes_of_the_ndk() {
        let want = [0, 9, 5, 8, 4, 10, 11, 12, 13];
        for (status, code) in (0..).zip(want) {
            assert_eq!(ResultCode::from_status_code(status).code(), code, "{status}");
        }
        for unknown in [-1, 9, i32::MAX] {
            assert_eq!(ResultCode::from_status_code(unknown), ResultCode::OpFailed);
        }
    }
}
