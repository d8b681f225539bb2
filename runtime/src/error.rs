//! What a call of the framework comes to where it does not work.

use std::fmt;
use std::sync::Arc;

use burst_client::ClientError;
use burst_hal::validate::ValidationError;
use burst_hal::{Failure, MemoryError, ResultCode};

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// A call that did not work: the code that the C API answers, and the cause in words.
#[derive(Debug, Clone)]
pub struct Error {
    /// The code, for a program.
    pub code: ResultCode,
    /// The cause, for a person.
    cause: Arc<dyn std::error::Error + Send + Sync>,
}

impl Error {
    /// An error with its cause.
    pub fn new(
        code: ResultCode,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Error { code, cause: Arc::from(cause.into()) }
    }

    /// An argument is illegal.
    pub fn bad_data(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::new(ResultCode::BadData, cause)
    }

    /// The object is not in a state for this call.
    pub fn bad_state(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::new(ResultCode::BadState, cause)
    }

    /// It failed for a reason that no other code names.
    pub fn op_failed(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::new(ResultCode::OpFailed, cause)
    }

    /// The cause, for a person.
    #[must_use]
    pub fn cause(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.cause
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.cause)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.cause)
    }
}

/// A device's refusal. One whose process has died is a DEAD_OBJECT, which the HAL has no status for.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let code = match failure.cause.downcast_ref::<ClientError>() {
            Some(error) => code_of(error),
            None => failure.status.into(),
        };
        Error { code, cause: failure.cause }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        Error::new(code_of(&error), error)
    }
}

impl From<ValidationError> for Error {
    fn from(error: ValidationError) -> Self {
        Error::new(error.status().into(), error)
    }
}

/// A memory that cannot be reached as it has to be.
impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        Error::op_failed(error)
    }
}

fn code_of(error: &ClientError) -> ResultCode {
    match error {
        error if error.is_loss() => ResultCode::DeadObject,
        ClientError::Forked => ResultCode::UnavailableDevice,
        error => error.status().into(),
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::ErrorStatus;

    use super::*;

    #[test]
    fn a_failure_keeps_its_meaning_and_its_words() {
        for (failure, want) in [
            (Failure::invalid("x"), ResultCode::BadData),
            (Failure::general("x"), ResultCode::OpFailed),
            (
                Failure::new(ErrorStatus::ResourceExhaustedTransient, "x"),
                ResultCode::ResourceExhaustedTransient,
            ),
            (Failure::from(ClientError::Timeout), ResultCode::MissedDeadlineTransient),
            (Failure::from(ClientError::PeerDied { pid: 7 }), ResultCode::DeadObject),
            (Failure::from(ClientError::Forked), ResultCode::UnavailableDevice),
        ] {
            let error = Error::from(failure);
            assert_eq!(error.code, want, "{error}");
            assert!(!error.cause().to_string().is_empty());
        }
    }
}
