//! Why a launch is refused.

use burst_hal::validate::ValidationError;
use burst_hal::{ErrorStatus, Failure};
use rustix::io::Errno;

/// Why an execution is not started.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A descriptor that nobody may wait for as a fence.
    #[error(
        "fence {index} is {found}; a fence is an eventfd, a sync_file or the read end of a pipe"
    )]
    NotAFence {
        /// Which of the list.
        index: usize,
        /// What it is instead.
        found: &'static str,
    },
    /// What a fence stands for has failed already.
    #[error("fence {index} has failed already")]
    FailedFence {
        /// Which of the list.
        index: usize,
    },
    /// More executions wait for a thread than may.
    #[error("{waiting} executions wait for a thread already")]
    QueueFull {
        /// How many may.
        waiting: usize,
    },
    /// The system has no thread left.
    #[error("the system has no thread left")]
    NoThread,
    /// A system call failed.
    #[error("{call}: {errno}")]
    System {
        /// Which.
        call: &'static str,
        /// The system's reason.
        errno: Errno,
    },
    /// The request is not legal for the model.
    #[error(transparent)]
    Request(#[from] ValidationError),
}

impl LaunchError {
    /// What failed with which error number.
    pub(crate) fn system(call: &'static str) -> impl Fn(Errno) -> LaunchError {
        move |errno| LaunchError::System { call, errno }
    }

    /// The status that a client of the HAL receives.
    #[must_use]
    pub fn status(&self) -> ErrorStatus {
        match self {
            LaunchError::NotAFence { .. } | LaunchError::FailedFence { .. } => {
                ErrorStatus::InvalidArgument
            }
            LaunchError::Request(error) => error.status(),
            LaunchError::QueueFull { .. } | LaunchError::NoThread => {
                ErrorStatus::ResourceExhaustedTransient
            }
            LaunchError::System { errno, .. } => match *errno {
                Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOSPC => {
                    ErrorStatus::ResourceExhaustedTransient
                }
                _ => ErrorStatus::GeneralFailure,
            },
        }
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        Failure::new(error.status(), error)
    }
}
