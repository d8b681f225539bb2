//! Starting a burst: on a thread of its own, or in a context that the driver brings. Either is opened on
//! a new thread, as it may take as long as the driver likes.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use burst_hal::Caller;
use burst_wire::Features;
use burst_wire::control::QueueDescriptor;
use fmq::Wait;

use super::contexts::{BurstContexts, BurstSetup, BurstTurns};
use super::ender::BurstEnder;
use super::ending::{Ending, Served};
use super::executor::Runner;
use super::handle::{BuffersInSlots, BurstHandle, Server, SharedContext};
use super::idle_monitor::IdleMonitor;
use super::memories::BurstMemories;
use super::memory_cache::MemoryCache;
use super::params::BurstParams;
use super::queues::{Closers, QueueEnds};
use super::spin_shares::SpinShares;
use super::waiting::{Waiting, at_most};
use super::worker::Worker;
use crate::ServerError;
use crate::admission::{Charge, ClientBudgets, Limit};
use crate::client::{ClientLink, Presence};
use crate::metrics::{BurstCounts, Metrics, Probe};
use crate::panics::catch_panic;
use crate::prepared::PreparedEntry;
use crate::process::Performance;
use crate::scheduler::{Run, Scheduler, Work};
use crate::threads;

/// Starts the bursts of a service.
pub(crate) struct BurstStarter {
    /// How a burst waits for requests where its client leaves that to the service.
    pub(crate) wait: Wait,
    /// The most that a client may ask for instead.
    pub(crate) max_wait: Wait,
    pub(crate) spin_shares: Arc<SpinShares>,
    /// After how long without requests a burst releases what it can allocate again.
    pub(crate) idle_time: Option<Duration>,
    /// The longest queue.
    pub(crate) queue_datums: u64,
    /// What makes the servers of bursts, by the name of their device; for others a thread of this crate
    /// each.
    pub(crate) contexts: BTreeMap<String, Arc<dyn BurstContexts>>,
    pub(crate) performance: Arc<Performance>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) scheduler: Arc<Scheduler>,
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

/// Is told what became of starting a burst, on the burst's new thread, before anything is executed.
pub(crate) type Started = Box<dyn FnOnce(Result<BurstHandle, ServerError>) + Send>;

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

    /// Starts a burst on these queues. It returns at once; `started` is told the rest.
    ///
    /// # Errors
    /// [`ServerError::NoThread`]; `started` is not called then.
    pub(crate) fn start(
        &self,
        burst: NewBurst,
        mut queues: QueueEnds,
        started: Started,
    ) -> Result<(), ServerError> {
        let NewBurst { number, params, entry, link, presence, charge } = burst;
        let claimant = presence.claimant(entry.priority);
        let run = self.scheduler.run(claimant, Work::Burst(number), link.cancel_word());
        run.traced_by(link.tracer());
        let wait = at_most(params.wait(entry.preference, self.wait), self.max_wait);
        let waiting = Waiting::new(wait, &self.spin_shares, claimant.user);
        queues.set_wait(waiting.initial());
        let closers = queues.closers(&run);
        let meter = entry.meter.burst();
        let (requests, results) = queues.gauges();
        run.watches(requests.clone());
        meter.observe(Probe {
            burst: number,
            depth: params.depth,
            run: Arc::clone(&run),
            requests,
            results,
            wait,
            polls: waiting.polls(),
            waits_for_room: AtomicBool::new(false),
            since: Instant::now(),
        });
        let cache = Arc::new(MemoryCache::default());
        let memories = BurstMemories::new(number, link, Arc::clone(&cache), closers.clone());
        let metrics = Arc::clone(&self.metrics);
        let thread_name = format!("burst-{}-{number}", presence.client());
        let ending = Ending::new(charge);
        let opening = Opening {
            ender: BurstEnder::new(closers.clone(), memories.clone(), metrics, &presence),
            served: Served::new(&ending, presence),
            ending,
            contexts: self.contexts.get(entry.meter.device()).cloned(),
            counts: BurstCounts::new(&self.metrics, meter),
            idle_time: self.idle_time,
            idle: IdleMonitor::begin(waiting, self.idle_time, &self.performance, entry.preference),
            caller: entry.paying(memories.link().caller().with_turn(Arc::clone(&run) as _)),
            thread_name: thread_name.clone(),
            run,
            params,
            queues,
            closers,
            cache,
            memories,
            entry,
        };
        let parcel = (opening, started);
        threads::start(thread_name, parcel, |(opening, started)| opening.serve(started)).map_err(
            |_| {
                self.metrics.limits.refused(Limit::Threads);
                ServerError::NoThread
            },
        )
    }
}

/// Everything of a burst, on its way to its server. What is dropped last stands last.
struct Opening {
    idle: IdleMonitor,
    idle_time: Option<Duration>,
    queues: QueueEnds,
    closers: Closers,
    caller: Caller,
    run: Arc<Run>,
    cache: Arc<MemoryCache>,
    memories: BurstMemories,
    ender: BurstEnder,
    counts: BurstCounts,
    params: BurstParams,
    entry: Arc<PreparedEntry>,
    contexts: Option<Arc<dyn BurstContexts>>,
    thread_name: String,
    served: Served,
    ending: Arc<Ending>,
}

impl Opening {
    /// Opens the burst, says so, and serves it unless somebody else does. All that the burst had is given
    /// back before its end is reported.
    fn serve(self, started: Started) {
        match self.contexts.clone() {
            Some(contexts) => self.hand_to(&*contexts, started),
            None => self.serve_here(started),
        }
    }

    fn serve_here(self, started: Started) {
        let _entered = self.run.enter();
        let opened = catch_panic(|| Runner::open(&self.entry.model, &self.caller));
        let runner = match opened.map_err(ServerError::from).and_then(|opened| Ok(opened?)) {
            Ok(runner) => runner,
            Err(error) => return self.fail(error, started),
        };
        let Opening { idle, queues, closers, run, cache, memories, ender, .. } = self;
        let Opening { counts, params, entry, served, ending, .. } = self;
        let buffers = buffers_in_slots(params.features, runner.takes_buffers(), &entry);
        let executor = runner.executor();
        let server = Server::Thread { executor };
        let worker = Worker::new(memories, queues, (entry, runner, run), params, counts, idle);
        started(Ok(BurstHandle { cache, closers, server, buffers, ending }));
        worker.run(&ender);
        drop((ender, served));
    }

    fn hand_to(self, contexts: &dyn BurstContexts, started: Started) {
        let Opening { idle, idle_time, queues, closers, caller, run, cache, memories, .. } = self;
        let Opening { ender, counts, params, entry, thread_name, served, ending, .. } = self;
        let QueueEnds { requests, results } = queues;
        let BurstParams { features, depth, .. } = params;
        let turns = BurstTurns { run, entry: Arc::clone(&entry) };
        let buffers = buffers_in_slots(features, contexts.takes_buffers(), &entry);
        let setup = BurstSetup {
            requests,
            results,
            memories,
            features,
            depth,
            counts,
            caller,
            turns,
            ender,
            idle_time,
            idle,
            entry,
        };
        let configured = catch_panic(|| contexts.configure(setup));
        let context = match configured.map_err(ServerError::from).and_then(|context| Ok(context?)) {
            Ok(context) => context,
            Err(error) => {
                drop((closers, cache, served, ending)); // before the reply: see `fail`
                return started(Err(error));
            }
        };
        let server = Server::Context { context: SharedContext::new(context), thread_name, served };
        started(Ok(BurstHandle { cache, closers, server, buffers, ending }));
    }

    /// The burst is not opened. Its client finds room for another one when it hears of that.
    fn fail(self, error: ServerError, started: Started) {
        drop(self);
        started(Err(error));
    }
}

/// Which buffers may lie in the slots of a burst on this model.
fn buffers_in_slots(
    features: Features,
    server_takes_them: bool,
    entry: &PreparedEntry,
) -> BuffersInSlots {
    match (features.contains(Features::TOKENS), server_takes_them) {
        (false, _) => BuffersInSlots::NotNegotiated,
        (true, false) => BuffersInSlots::MemoryOnly,
        (true, true) => BuffersInSlots::Of(entry.device().to_owned()),
    }
}
