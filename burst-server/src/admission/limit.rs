//! What is limited, and how a limit that was reached is reported.

use std::fmt;
use std::time::Duration;

use burst_hal::ErrorStatus;

/// Makes [`Limit`] with its names, so that a limit cannot lack one.
macro_rules! limits {
    ($($(#[$doc:meta])+ $limit:ident $name:literal $words:literal,)+) => {
        /// What is limited: every field of [`Limits`](crate::Limits), and what a burst may have under way
        /// or a client may lend for its spans.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Limit {
            $($(#[$doc])+ $limit,)+
        }

        impl Limit {
            /// All of them.
            pub const ALL: &[Limit] = &[$(Limit::$limit),+];

            /// Its name where metrics are read.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Limit::$limit => $name,)+
                }
            }
        }

        /// What is counted, as it stands in a sentence.
        impl fmt::Display for Limit {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Limit::$limit => $words,)+
                })
            }
        }
    };
}

limits! {
    /// [`Limits::clients`](crate::Limits::clients).
    Clients "clients" "clients of all users",
    /// [`Limits::clients_per_user`](crate::Limits::clients_per_user).
    ClientsPerUser "clients_per_user" "clients of one user",
    /// [`Limits::ungreeted_per_user`](crate::Limits::ungreeted_per_user).
    UngreetedPerUser "ungreeted_per_user" "connections of one user that have not greeted",
    /// [`Limits::memory_bytes`](crate::Limits::memory_bytes).
    MemoryBytes "memory_bytes" "bytes of memory for all users",
    /// [`Limits::memory_bytes_per_user`](crate::Limits::memory_bytes_per_user).
    MemoryBytesPerUser "memory_bytes_per_user" "bytes of memory for one user",
    /// [`Limits::address_space_bytes`](crate::Limits::address_space_bytes).
    AddressSpaceBytes "address_space_bytes" "bytes of address space for all users",
    /// [`Limits::address_space_bytes_per_user`](crate::Limits::address_space_bytes_per_user).
    AddressSpaceBytesPerUser "address_space_bytes_per_user" "bytes of address space for one user",
    /// [`Limits::threads`](crate::Limits::threads), and the threads that the system has for the process.
    Threads "threads" "threads for all users",
    /// [`Limits::threads_per_user`](crate::Limits::threads_per_user).
    ThreadsPerUser "threads_per_user" "threads for one user",
    /// [`Limits::descriptors`](crate::Limits::descriptors), and those that the system has for the
    /// process.
    Descriptors "descriptors" "file descriptors for all users",
    /// [`Limits::descriptors_per_user`](crate::Limits::descriptors_per_user).
    DescriptorsPerUser "descriptors_per_user" "file descriptors for one user",
    /// [`Limits::all_slow_calls`](crate::Limits::all_slow_calls).
    AllSlowCalls "all_slow_calls" "slow calls of all users at once",
    /// [`Limits::slow_calls_per_user`](crate::Limits::slow_calls_per_user).
    SlowCallsPerUser "slow_calls_per_user" "slow calls of one user at once",
    /// [`Limits::slow_calls`](crate::Limits::slow_calls).
    SlowCalls "slow_calls" "slow calls at once",
    /// [`Limits::models`](crate::Limits::models).
    Models "models" "prepared models",
    /// [`Limits::buffers`](crate::Limits::buffers).
    Buffers "buffers" "buffers of a driver",
    /// [`Limits::buffers_per_user`](crate::Limits::buffers_per_user).
    BuffersPerUser "buffers_per_user" "buffers of a driver for one user",
    /// [`Limits::bursts`](crate::Limits::bursts).
    Bursts "bursts" "bursts",
    /// [`Limits::memories`](crate::Limits::memories).
    Memories "memories" "memories",
    /// [`Limits::mapped_bytes`](crate::Limits::mapped_bytes).
    MappedBytes "mapped_bytes" "mapped bytes",
    /// [`Limits::allocated_bytes`](crate::Limits::allocated_bytes).
    AllocatedBytes "allocated_bytes" "allocated bytes",
    /// [`Limits::model_bytes`](crate::Limits::model_bytes).
    ModelBytes "model_bytes" "bytes of a model",
    /// [`Limits::queue_datums`](crate::Limits::queue_datums).
    QueueDatums "queue_datums" "datums of a queue",
    /// Requests under way on one burst: [`burst_wire::PIPELINE_DEPTH_MAX`].
    PipelineDepth "pipeline_depth" "requests under way on one burst",
    /// [`Limits::pending_executions`](crate::Limits::pending_executions).
    PendingExecutions "pending_executions" "executions that are not waited for",
    /// [`Limits::pending_executions_per_user`](crate::Limits::pending_executions_per_user).
    PendingExecutionsPerUser "pending_executions_per_user" "executions of one user that are not waited for",
    /// Fences of one execution: [`burst_wire::control::FENCES_MAX`].
    Fences "fences" "fences of one execution",
    /// [`Limits::fence_wait_ms`](crate::Limits::fence_wait_ms).
    FenceWait "fence_wait_ms" "milliseconds that an execution waits for fences",
    /// Bytes of a memory for spans: [`burst_wire::trace::TRACE_BYTES_MAX`].
    TraceBytes "trace_bytes" "bytes of a memory for spans",
    /// [`Limits::setup_rate`](crate::Limits::setup_rate) and [`Limits::setup_burst`](crate::Limits::setup_burst).
    SetupRate "setup_rate" "set-up calls per second",
}

/// A limit was reached; [`ServerError`](crate::ServerError) has the same three cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitError {
    /// It would fit once this client, or another one, has given something back.
    #[error("the limit of {limit} on {what} is reached")]
    Exhausted { what: Limit, limit: u64 },
    /// It is over the limit by itself, and so will never fit.
    #[error("{asked} {what} are over the limit of {limit}")]
    NeverAllowed { what: Limit, asked: u64, limit: u64 },
    /// It would be allowed after `wait`, at `rate` per second.
    #[error("set-up calls come faster than {rate} per second; the next is due in {} ms", wait.as_millis())]
    TooFast { rate: u64, wait: Duration },
}

impl LimitError {
    /// The status that a HAL client receives.
    pub(crate) fn status(&self) -> ErrorStatus {
        match self {
            LimitError::NeverAllowed { .. } => ErrorStatus::ResourceExhaustedPersistent,
            LimitError::Exhausted { .. } | LimitError::TooFast { .. } => {
                ErrorStatus::ResourceExhaustedTransient
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_name_of_its_own() {
        let mut names: Vec<_> = Limit::ALL.iter().map(|limit| limit.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Limit::ALL.len());
        for (index, limit) in Limit::ALL.iter().enumerate() {
            assert_eq!(*limit as usize, index, "LimitMeters are indexed by it");
        }
    }
}
