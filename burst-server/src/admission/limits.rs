//! What one client may use, so that none can take the service from the others.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ServerError;
use crate::metrics::LimitMeters;

/// Limits of a service. The defaults suit a machine with some GiB of memory.
///
/// What each answers when it is reached stands in `docs/SPEC.md`, with the test that reaches it.
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

/// What a limit is of: those in [`Limits`], and two of the system.
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

/// How much of something is in use, against a limit.
#[derive(Debug)]
pub(crate) struct Budget {
    what: Limit,
    limit: u64,
    used: AtomicU64,
    meters: Arc<LimitMeters>,
}

/// A part of a [`Budget`], given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    amount: u64,
}

impl Budget {
    pub(crate) fn new(what: Limit, limit: u64, meters: &Arc<LimitMeters>) -> Arc<Self> {
        Arc::new(Budget { what, limit, used: AtomicU64::new(0), meters: Arc::clone(meters) })
    }

    /// Takes `amount`.
    ///
    /// # Errors
    /// [`ServerError::NeverAllowed`] when it is over the limit by itself,
    /// [`ServerError::Exhausted`] when it would fit once others have given back.
    pub(crate) fn charge(self: &Arc<Self>, amount: u64) -> Result<Charge, ServerError> {
        let Budget { what, limit, .. } = **self;
        self.meters.within(what, amount, limit)?;
        // Relaxed: a count, which orders no other memory.
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(amount).filter(|sum| *sum <= limit)
            })
            .map_err(|_| {
                self.meters.refused(what);
                ServerError::Exhausted { what, limit }
            })?;
        self.meters.took(what, amount);
        Ok(Charge { budget: Arc::clone(self), amount })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.amount, Ordering::Relaxed);
        self.budget.meters.gave_back(self.budget.what, self.amount);
    }
}

/// The budgets of one client.
#[derive(Debug)]
pub(crate) struct Budgets {
    pub(crate) models: Arc<Budget>,
    pub(crate) bursts: Arc<Budget>,
    pub(crate) memories: Arc<Budget>,
    pub(crate) mapped_bytes: Arc<Budget>,
    pub(crate) allocated_bytes: Arc<Budget>,
    pub(crate) slow_calls: Arc<Budget>,
}

impl Budgets {
    pub(crate) fn new(limits: &Limits, meters: &Arc<LimitMeters>) -> Self {
        let budget = |what, limit| Budget::new(what, limit, meters);
        Budgets {
            models: budget(Limit::Models, limits.models),
            bursts: budget(Limit::Bursts, limits.bursts),
            memories: budget(Limit::Memories, limits.memories),
            mapped_bytes: budget(Limit::MappedBytes, limits.mapped_bytes),
            allocated_bytes: budget(Limit::AllocatedBytes, limits.allocated_bytes),
            slow_calls: budget(Limit::SlowCalls, limits.slow_calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_charged_is_given_back_and_the_limit_says_which_kind_it_is() {
        let meters = Arc::new(LimitMeters::default());
        let budget = Budget::new(Limit::Models, 10, &meters);
        let six = budget.charge(6).unwrap();
        assert!(matches!(
            budget.charge(5),
            Err(ServerError::Exhausted { what: Limit::Models, limit: 10 })
        ));
        assert!(matches!(
            budget.charge(11),
            Err(ServerError::NeverAllowed { what: Limit::Models, asked: 11, limit: 10 })
        ));
        assert_eq!((meters.used(Limit::Models), meters.refusals(Limit::Models)), (6, 2));
        let four = budget.charge(4).unwrap();
        drop(six);
        let _again = budget.charge(6).unwrap();
        drop(four);
        assert_eq!(meters.used(Limit::Models), 6);
    }

    #[test]
    fn every_limit_has_a_name_of_its_own() {
        let mut names: Vec<_> = Limit::ALL.iter().map(|limit| limit.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Limit::ALL.len());
        for (index, limit) in Limit::ALL.iter().enumerate() {
            assert_eq!(*limit as usize, index, "meters are kept by index");
        }
    }
}
