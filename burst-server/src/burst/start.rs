//! Starting a burst: on a thread of its own, or in a context that the driver brings.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use burst_wire::control::QueueDescriptor;
use fmq::Wait;

use super::contexts::{BurstContexts, BurstSetup};
use super::ending::{Ending, Served};
use super::executor::Runner;
use super::handle::{BurstHandle, Server, SharedContext};
use super::idle_monitor::IdleMonitor;
use super::memories::BurstMemories;
use super::memory_cache::MemoryCache;
use super::params::BurstParams;
use super::queues::QueueEnds;
use super::worker::Worker;
use crate::ServerError;
use crate::admission::{Charge, ClientBudgets, Limit};
use crate::client::{ClientLink, Presence};
use crate::metrics::{BurstCounts, Metrics};
use crate::panics::catch_panic;
use crate::prepared::PreparedEntry;
use crate::process::Performance;
use crate::threads;

/// Starts the bursts of a service.
pub(crate) struct BurstStarter {
    /// How a burst waits for requests where its client leaves that to the service.
    pub(crate) wait: Wait,
    /// After how long without requests a burst releases what it can allocate again.
    pub(crate) idle_time: Option<Duration>,
    /// The longest queue.
    pub(crate) queue_datums: u64,
    /// Makes the servers of bursts; `None` for a thread of this crate each.
    pub(crate) contexts: Option<Arc<dyn BurstContexts>>,
    pub(crate) performance: Arc<Performance>,
    pub(crate) metrics: Arc<Metrics>,
}

/// A burst that is about to start.
pub(crate) struct NewBurst {
    pub(crate) number: u32,
    pub(crate) params: BurstParams,
    pub(crate) entry: Arc<PreparedEntry>,
    pub(crate) link: Arc<ClientLink>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) charge: Charge,
}

impl BurstStarter {
    /// Attaches to the queues of a client, who pays for them.
    pub(crate) fn attach(
        &self,
        queues: &[QueueDescriptor; 2],
        descriptors: Vec<OwnedFd>,
        budgets: &ClientBudgets,
    ) -> Result<(QueueEnds, Charge), ServerError> {
        let datums_max = self.queue_datums;
        QueueEnds::attach(queues, descriptors, datums_max, &self.metrics.limits, budgets)
    }

    /// Starts a burst on these queues.
    pub(crate) fn start(
        &self,
        burst: NewBurst,
        mut queues: QueueEnds,
    ) -> Result<BurstHandle, ServerError> {
        let NewBurst { number, params, entry, link, presence, charge } = burst;
        queues.set_wait(params.wait(entry.preference, self.wait));
        let closers = queues.closers();
        let cache = Arc::new(MemoryCache::default());
        let thread_name = format!("burst-{}-{number}", presence.client());
        let ending = Ending::new(charge);
        let served = Served::new(&ending, presence);
        let counts = BurstCounts::new(&self.metrics, entry.meter.burst());
        let memories = BurstMemories::new(number, link, Arc::clone(&cache));
        let server = match &self.contexts {
            Some(contexts) => {
                let BurstParams { features, depth, .. } = params;
                let QueueEnds { requests, results } = queues;
                let setup =
                    BurstSetup { requests, results, memories, features, depth, counts, entry };
                let context = catch_panic(|| contexts.configure(setup))??;
                Server::Context { context: SharedContext::new(context), thread_name, served }
            }
            None => {
                let caller = memories.link().caller();
                let runner = catch_panic(|| Runner::open(&entry.model, &caller))??;
                let executor = runner.executor();
                let idle = IdleMonitor::begin(self.idle_time, &self.performance, entry.preference);
                let worker =
                    Worker::new(memories, queues, (entry, runner), params.features, counts, idle);
                self.start_thread(thread_name, worker, served)?;
                Server::Thread { executor }
            }
        };
        Ok(BurstHandle { cache, closers, server, ending })
    }

    /// Starts the thread of a burst. The thread releases everything that the burst had before it
    /// reports the burst's end.
    fn start_thread(
        &self,
        name: String,
        worker: Worker,
        served: Served,
    ) -> Result<(), ServerError> {
        let started = threads::start(name, (served, worker), |(served, worker)| {
            worker.run();
            drop(served);
        });
        started.map_err(|_| {
            self.metrics.limits.refused(Limit::Threads);
            ServerError::NoThread
        })
    }
}
