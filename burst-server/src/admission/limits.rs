//! What one client may use, so that none can take the service from the others.

use std::fmt;
use std::time::Duration;

/// Limits of a service. The defaults suit a machine with some GiB of memory.
///
/// `docs/SPEC.md` lists the status with which the service answers a client that reaches a limit, and
/// the test that reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at once. Each costs a thread or two and its descriptors.
    pub clients: u64,
    /// Connections of one user at once, so that one user cannot keep all others out.
    pub clients_per_user: u64,
    /// Prepared models of one client. Each may hold hundreds of MiB of packed weights.
    pub models: u64,
    /// Bursts of one client. Each is a thread with an execution context.
    pub bursts: u64,
    /// Memories of one client: shared ones, those in slots, those of models. Each keeps a
    /// descriptor open, of which a process often has no more than 1024.
    pub memories: u64,
    /// Bytes of all these memories together. They are the client's own, but mapping them takes
    /// page tables and address space here.
    pub mapped_bytes: u64,
    /// Bytes of one model, constants included.
    pub model_bytes: u64,
    /// Datums of a queue. A packet can be as long as the queue, and is copied.
    pub queue_datums: u64,
    /// Bytes that the service allocates for a client (output memories it makes), in all.
    pub allocated_bytes: u64,
    /// Calls of one client that may take long (queries about a model, preparing it, executions
    /// over the socket) in progress at once. Each keeps a thread.
    pub slow_calls: u64,
    /// Set-up calls (connecting, models, memories, bursts) of one user per second, over time. They
    /// start threads and map memory: work that no other limit bounds when things are let go of
    /// again at once. 0 for as many as the client likes.
    pub setup_rate: u64,
    /// Set-up calls that may come at once after a pause.
    pub setup_burst: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            clients: 256,
            clients_per_user: 192,
            models: 64,
            bursts: 256,
            memories: 512,
            mapped_bytes: 8 << 30,
            model_bytes: 2 << 30,
            queue_datums: 64 << 10,
            allocated_bytes: 1 << 30,
            slow_calls: burst_wire::control::SLOW_CALLS_MAX as u64,
            setup_rate: 5000,
            setup_burst: 20_000,
        }
    }
}

/// What is limited: every field of [`Limits`], and two things that the system limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::clients`].
    Clients,
    /// [`Limits::clients_per_user`].
    ClientsPerUser,
    /// [`Limits::models`].
    Models,
    /// [`Limits::bursts`].
    Bursts,
    /// [`Limits::memories`].
    Memories,
    /// [`Limits::mapped_bytes`].
    MappedBytes,
    /// [`Limits::model_bytes`].
    ModelBytes,
    /// [`Limits::queue_datums`].
    QueueDatums,
    /// Requests under way on one burst: [`burst_wire::PIPELINE_DEPTH_MAX`].
    PipelineDepth,
    /// [`Limits::allocated_bytes`].
    AllocatedBytes,
    /// [`Limits::slow_calls`].
    SlowCalls,
    /// [`Limits::setup_rate`] and [`Limits::setup_burst`].
    SetupRate,
    /// File descriptors of the process.
    Descriptors,
    /// Threads that the system has for the process.
    Threads,
}

impl Limit {
    /// All of them.
    pub const ALL: [Limit; 14] = [
        Limit::Clients,
        Limit::ClientsPerUser,
        Limit::Models,
        Limit::Bursts,
        Limit::Memories,
        Limit::MappedBytes,
        Limit::ModelBytes,
        Limit::QueueDatums,
        Limit::PipelineDepth,
        Limit::AllocatedBytes,
        Limit::SlowCalls,
        Limit::SetupRate,
        Limit::Descriptors,
        Limit::Threads,
    ];

    /// Its name where metrics are read.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Limit::Clients => "clients",
            Limit::ClientsPerUser => "clients_per_user",
            Limit::Models => "models",
            Limit::Bursts => "bursts",
            Limit::Memories => "memories",
            Limit::MappedBytes => "mapped_bytes",
            Limit::ModelBytes => "model_bytes",
            Limit::QueueDatums => "queue_datums",
            Limit::PipelineDepth => "pipeline_depth",
            Limit::AllocatedBytes => "allocated_bytes",
            Limit::SlowCalls => "slow_calls",
            Limit::SetupRate => "setup_rate",
            Limit::Descriptors => "descriptors",
            Limit::Threads => "threads",
        }
    }
}

/// What is counted, as it stands in a sentence.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Clients => "clients",
            Limit::ClientsPerUser => "clients of one user",
            Limit::Models => "prepared models",
            Limit::Bursts => "bursts",
            Limit::Memories => "memories",
            Limit::MappedBytes => "mapped bytes",
            Limit::ModelBytes => "bytes of a model",
            Limit::QueueDatums => "datums of a queue",
            Limit::PipelineDepth => "requests under way on one burst",
            Limit::AllocatedBytes => "allocated bytes",
            Limit::SlowCalls => "slow calls at once",
            Limit::SetupRate => "set-up calls per second",
            Limit::Descriptors => "file descriptors",
            Limit::Threads => "threads",
        })
    }
}

/// A limit was reached; [`ServerError`](crate::ServerError) has the same three cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitError {
    /// It would fit once this client, or another one, has given something back.
    Exhausted { what: Limit, limit: u64 },
    /// It is over the limit by itself, and so will never fit.
    NeverAllowed { what: Limit, asked: u64, limit: u64 },
    /// It would be allowed after `wait`, at `rate` per second.
    TooFast { rate: u64, wait: Duration },
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
