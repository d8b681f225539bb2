//! A burst: one prepared model, two queues, many executions.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use burst_hal::{Caller, CancelWord, ExecutionOptions, ExecutionResult, Pool, Request};
use burst_wire::control::{
    Answer, Call, List, PoolSource, QueueDescriptor, QueueGrantor, StatedLimit, WaitStyle,
};
use burst_wire::{DATUM_BYTES, Features};
use fmq::{Consumer, Deadline, Descriptor, Producer, QueueConfig, Wait};

use crate::ClientError;
use crate::connection::{BurstWatch, Link};
use crate::model_handle::ModelHandle;
use crate::waiting::{Patience, answer_by};

mod execute;
mod pipeline;
mod queue_length;
mod results;

use execute::Scratch;
use pipeline::Pipeline;
use results::Results;

pub use pipeline::Ticket;
pub use queue_length::PAGE_DATUMS;

/// How a burst is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BurstOptions {
    /// How this end waits for results; the service is asked to wait for requests likewise. For a model that
    /// was prepared for low power both sleep, whatever is asked for here.
    pub wait: Wait,
    /// Length of each queue; several requests under way share it. A request needs 2 datums, one per
    /// pool, and per argument one and one per dimension given; one that does not fit goes over the
    /// socket. `None`: a page, or as much more as the model's requests need and the service takes.
    pub queue_datums: Option<usize>,
    /// Length of the result queue, where it should differ. A second request is sent only where the results of all that
    /// are under way have room, of which each may take 4 datums and 9 per output.
    pub result_datums: Option<usize>,
    /// Additions to HAL 1.2 to use, of those both ends know.
    pub features: Features,
    /// Requests that may be under way at once, up to
    /// [`PIPELINE_DEPTH_MAX`](burst_wire::PIPELINE_DEPTH_MAX). More than one needs
    /// [`Features::PIPELINING`] at both ends; otherwise it is one all the same.
    pub depth: u16,
}

impl Default for BurstOptions {
    fn default() -> Self {
        BurstOptions {
            wait: Wait::default(),
            queue_datums: None,
            result_datums: None,
            features: Features::ALL,
            depth: 1,
        }
    }
}

impl BurstOptions {
    /// These options with another way to wait.
    #[must_use]
    pub fn waiting(self, wait: Wait) -> Self {
        BurstOptions { wait, ..self }
    }

    /// These options with queues of another length.
    #[must_use]
    pub fn with_queue_datums(self, queue_datums: usize) -> Self {
        BurstOptions { queue_datums: Some(queue_datums), ..self }
    }

    /// These options with a result queue of another length.
    #[must_use]
    pub fn with_result_datums(self, result_datums: usize) -> Self {
        BurstOptions { result_datums: Some(result_datums), ..self }
    }

    /// These options with other additions to HAL 1.2.
    #[must_use]
    pub fn with_features(self, features: Features) -> Self {
        BurstOptions { features, ..self }
    }

    /// These options with so many requests under way at once.
    #[must_use]
    pub fn with_depth(self, depth: u16) -> Self {
        BurstOptions { depth, ..self }
    }

    /// What is in use of what was asked for, with a peer that knows these additions. One
    /// request at a time needs no number, and no framing.
    fn agreed(&self, peer: Features) -> (Features, u16) {
        let features = self.features.intersection(peer);
        match self.depth {
            2.. if features.contains(Features::PIPELINING) => (features, self.depth),
            _ => (features.without(Features::PIPELINING), 1),
        }
    }
}

/// Executions on one prepared model through shared memory, one at a time and in order.
///
/// [`execute`](Burst::execute) waits for each result. With a [`depth`](BurstOptions::with_depth)
/// above one, [`submit`](Burst::submit) sends the next request while the service is still busy
/// with the one before, and [`wait`](Burst::wait) takes the results. Programs with an event loop
/// wait for [`completion_fd`](Burst::completion_fd) instead.
///
/// While both sides are awake an execution makes no system call, and from the second on it
/// allocates nothing. Memories of requests cross the socket once: with
/// [`push_memory`](Burst::push_memory), or else with their first use.
#[derive(Debug)]
pub struct Burst {
    model: Arc<ModelHandle>,
    number: u32,
    requests: Producer,
    results: Results,
    result_capacity: usize,
    watch: Arc<BurstWatch>,
    features: Features,
    /// Whether buffers of the driver may lie in its slots.
    takes_buffers: bool,
    scratch: Scratch,
    pipeline: Pipeline,
    /// By which the caller of its executions calls them off; `None` while nobody can.
    cancel: Option<CancelWord>,
}

impl Burst {
    pub(crate) fn configure(
        model: &Arc<ModelHandle>,
        options: &BurstOptions,
        patience: Patience<'_>,
    ) -> Result<Self, ClientError> {
        let link = model.link();
        let fitting = || {
            let longest = link.peer.limits.get(StatedLimit::QueueDatums);
            queue_length::queue_datums(model.longest_packet(), options.depth, longest)
        };
        let queue_datums = options.queue_datums.unwrap_or_else(fitting);
        let result_datums = options.result_datums.unwrap_or(queue_datums);
        let mut requests = Producer::create(&QueueConfig::new(DATUM_BYTES, queue_datums))?;
        let mut results = Consumer::create(&QueueConfig::new(DATUM_BYTES, result_datums))?;
        let wait = model.waiting(options.wait);
        requests.set_wait(wait);
        results.set_wait(wait);
        let (features, depth) = options.agreed(link.peer.features);
        let (request_queue, result_queue) = (requests.descriptor()?, results.descriptor()?);
        let call = Call::ConfigureBurst {
            model: model.number(),
            request_queue: wire_descriptor(&request_queue),
            result_queue: wire_descriptor(&result_queue),
            features: features.bits(),
            wait: wait_style(wait),
            depth,
        };
        let fds = request_queue.fds.iter().chain(&result_queue.fds);
        let fds: Vec<_> = fds.map(std::os::fd::AsFd::as_fd).collect();
        let (Answer::Burst { burst: number }, _) = link.quick_call(call, &fds, patience)? else {
            return Err(ClientError::UnexpectedAnswer);
        };
        let watch = Arc::new(BurstWatch::new([requests.closer(), results.closer()]));
        link.add_burst(number, &watch)?;
        let model = Arc::clone(model);
        Ok(Burst {
            model,
            number,
            requests,
            result_capacity: results.capacity(),
            results: Results::new(results, features),
            watch,
            features,
            takes_buffers: features.contains(Features::TOKENS),
            scratch: Scratch::new(features),
            pipeline: Pipeline::new(depth.into()),
            cancel: None,
        })
    }

    /// Runs once and waits for the result until `deadline`. A service that dies ends the wait at
    /// once.
    ///
    /// A request that the burst cannot carry (longer than its queue, with memory that has no
    /// descriptor, or with buffers of a driver that takes none in bursts) goes over the control socket instead; [`Burst::fell_back`] then says so.
    ///
    /// # Errors
    /// [`ClientError::PeerDied`], [`ClientError::BurstEnded`], [`ClientError::Timeout`]. What
    /// the execution itself came to is in the result's status.
    pub fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        deadline: Deadline,
    ) -> Result<&ExecutionResult, ClientError> {
        self.run(request, options, deadline)?;
        Ok(self.scratch.result.get())
    }

    /// The result of the last execution.
    #[must_use]
    pub fn last_result(&self) -> &ExecutionResult {
        self.scratch.result.get()
    }

    /// How long the last execution took in the driver, where it was asked for: from taking the
    /// request off the queue until just before the result was queued.
    #[must_use]
    pub fn driver_time(&self) -> Option<Duration> {
        self.scratch.driver_time
    }

    /// Whether the last execution went over the control socket.
    #[must_use]
    pub fn fell_back(&self) -> bool {
        self.scratch.fell_back
    }

    /// Requests that may be under way at once.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.pipeline.depth()
    }

    /// A descriptor for event loops: it can be read (`POLLIN`, `EPOLLIN`) while a result is there
    /// that was not taken, and once the burst has ended. Then [`try_wait`](Burst::try_wait) takes
    /// what there is; do not read from the descriptor itself. It lives as long as the burst.
    ///
    /// The first call starts a thread that sleeps at the queue in place of the caller, which costs
    /// each result one more change of threads; without this call there is none.
    ///
    /// With epoll: `examples/src/bin/event_loop.rs`. With tokio nothing else is needed either:
    ///
    /// ```ignore
    /// let fd = AsyncFd::new(burst.completion_fd()?.try_clone_to_owned()?)?;
    /// let ticket = burst.submit(&request, &options, Deadline::never())?;
    /// let result = loop {
    ///     let mut ready = fd.readable().await?;
    ///     match burst.try_wait(&ticket)? {
    ///         Some(result) => break result.clone(),
    ///         None => ready.clear_ready(),
    ///     }
    /// };
    /// ```
    ///
    /// # Errors
    /// The system has no descriptor or thread left; [`ClientError::Forked`].
    pub fn completion_fd(&mut self) -> Result<BorrowedFd<'_>, ClientError> {
        self.model.link().check_not_forked()?;
        self.results.descriptor()
    }

    pub(crate) fn link(&self) -> &Link {
        self.model.link()
    }

    /// Whether the service is still there and has not ended this burst, as far as is known.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.link().is_usable() && !self.watch.is_ended()
    }

    /// How many memories that the program still holds are in its slots.
    #[must_use]
    pub fn memories_in_slots(&self) -> usize {
        self.memories().len()
    }

    /// The memories in its slots.
    pub(crate) fn memories(&self) -> Vec<Pool> {
        self.watch.slots.memories()
    }

    /// Additions to HAL 1.2 in use.
    #[must_use]
    pub fn features(&self) -> Features {
        self.features
    }

    /// Whether a request says by when its result is wanted. One that says it although this is not so goes over the
    /// control socket.
    #[must_use]
    pub fn takes_deadlines(&self) -> bool {
        self.features.contains(Features::DEADLINES)
    }

    /// Process id of the driver service.
    #[must_use]
    pub fn driver_pid(&self) -> u32 {
        self.model.driver_pid()
    }

    /// Sends a memory to the service now, rather than with the first request that uses it.
    ///
    /// # Errors
    /// The service refuses it, or is gone; [`ClientError::NoDescriptor`] where it has no descriptor.
    pub fn push_memory(&mut self, memory: &Pool) -> Result<(), ClientError> {
        self.push_memory_with(memory, Deadline::never().into())
    }

    /// The same, for somebody who waits for so long.
    pub(crate) fn push_memory_with(
        &mut self,
        memory: &Pool,
        patience: Patience<'_>,
    ) -> Result<(), ClientError> {
        self.model.link().check_not_forked()?;
        match self.slot_of(memory, patience)? {
            Some(_) => Ok(()),
            None => Err(ClientError::NoDescriptor),
        }
    }

    /// Sends a memory before a request needs it. One that is refused, or has no descriptor, is left to the first
    /// request that uses it: only the loss of the service is an error.
    pub(crate) fn push_ahead(
        &mut self,
        memory: &Pool,
        patience: Patience<'_>,
    ) -> Result<(), ClientError> {
        match self.push_memory_with(memory, patience) {
            Err(error) if !error.is_loss() => {
                tracing::debug!(%error, "a memory is left to the first request that uses it");
                Ok(())
            }
            pushed => pushed,
        }
    }

    /// Takes a memory away from the burst; one it does not have is no error. When this returns
    /// the service uses it no more, unless another burst or the model has it too.
    ///
    /// Memories that were dropped are taken away by themselves before another one is sent or
    /// allocated.
    ///
    /// # Errors
    /// [`ClientError::MemoryInUse`] while a request under way uses it, also one whose caller has given up; the
    /// service is gone.
    pub fn free_memory(&mut self, memory: &Pool) -> Result<(), ClientError> {
        self.model.link().check_not_forked()?;
        if self.pipeline.uses(memory) {
            return Err(ClientError::MemoryInUse);
        }
        match self.watch.slots.slot(memory) {
            Some(slot) => self.free_slot(slot, Deadline::never()),
            None => Ok(()),
        }
    }

    /// The slot of a memory, which the service knows when this returns.
    pub(crate) fn slot_of(
        &mut self,
        memory: &Pool,
        patience: Patience<'_>,
    ) -> Result<Option<i32>, ClientError> {
        if let Some(slot) = self.watch.slots.slot(memory) {
            return Ok(Some(slot));
        }
        let link = self.model.link();
        link.give_back_dropped(patience)?;
        let Some(number) = link.share_memory(memory, patience)? else { return Ok(None) };
        let slots = &self.watch.slots;
        let Some(slot) = slots.reserve() else { return Ok(None) };
        let source = PoolSource::Shared { memory: number };
        link.call_acknowledged(
            Call::PushMemory { burst: self.number, slot, source },
            &[],
            patience,
        )?;
        slots.insert(slot, memory);
        Ok(Some(slot))
    }

    /// The slot of a buffer of the driver, which the service knows when this returns; `None` where it
    /// cannot have one.
    fn slot_of_buffer(
        &mut self,
        token: u32,
        patience: Patience<'_>,
    ) -> Result<Option<i32>, ClientError> {
        let (link, slots) = (self.model.link(), &self.watch.slots);
        // Of a token that this connection does not have, the service says over the socket what is wrong.
        let Some(buffer) = link.find_buffer(token).filter(|_| self.takes_buffers) else {
            return Ok(None);
        };
        if let Some(slot) = slots.slot_of_buffer(&buffer) {
            return Ok(Some(slot));
        }
        link.give_back_dropped(patience)?;
        let Some(slot) = slots.reserve() else { return Ok(None) };
        let source = PoolSource::Token { token };
        let call = Call::PushMemory { burst: self.number, slot, source };
        match link.call_acknowledged(call, &[], patience) {
            Ok(()) => {}
            Err(ClientError::Refused { detail, .. }) => {
                tracing::debug!(burst = self.number, detail, "buffers go over the socket");
                self.takes_buffers = false;
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        slots.insert_buffer(slot, &buffer);
        Ok(Some(slot))
    }

    /// Frees a slot; it is forgotten only after the service said that it is free.
    fn free_slot(&self, slot: i32, deadline: Deadline) -> Result<(), ClientError> {
        self.model.link().call_acknowledged(
            Call::FreeMemory { burst: self.number, slot },
            &[],
            deadline,
        )?;
        self.watch.slots.remove(slot);
        Ok(())
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        let link = self.model.link();
        if link.is_forked() {
            self.results.forget_thread();
            return;
        }
        // Before the service hears of it: from then on it may give the number to another burst.
        link.remove_burst(self.number);
        let call = Call::CloseBurst { burst: self.number };
        match self.pipeline.is_late() {
            true => link.release_later(call, "a burst", self.number),
            false => link.release_remote(call, "a burst", self.number),
        }
    }
}

impl burst_hal::Burst for Burst {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        match self.run(request, options, answer_by(options.deadline)) {
            Ok(()) => self.scratch.result.swap(result),
            Err(error) => {
                tracing::debug!(%error, "execution failed");
                result.reset(error.status());
            }
        }
    }

    /// There is no call that takes a request of a burst back: whoever cancels is not kept waiting, and the service
    /// goes on with it until its end or its deadline. Its result is dropped; the next request waits for that.
    fn work_for(&mut self, caller: &Caller) {
        self.cancel = Some(caller.cancel_word().clone());
    }

    /// [Pushes](Burst::push_memory) it. Memory without a descriptor stays here: requests that name it go over the
    /// control socket, with its bytes.
    fn cache_memory(&mut self, memory: &Pool) {
        let cancel = self.cancel.clone();
        // Of a service that is gone the first execution tells.
        let _ = self.push_ahead(memory, Patience::by(cancel.as_ref(), Deadline::never()));
    }
}

fn wire_descriptor(descriptor: &Descriptor) -> QueueDescriptor {
    let grantor = |grantor: &fmq::Grantor| QueueGrantor {
        fd_index: grantor.fd_index,
        offset: grantor.offset,
        extent: grantor.extent,
    };
    QueueDescriptor {
        quantum: descriptor.quantum,
        flags: descriptor.flags,
        // A queue of ours has one or two.
        descriptors: u8::try_from(descriptor.fds.len()).unwrap_or(u8::MAX),
        grantors: List(descriptor.grantors.iter().map(grantor).collect()),
    }
}

fn wait_style(wait: Wait) -> WaitStyle {
    match wait {
        Wait::Spin => WaitStyle::Spin,
        Wait::Adaptive { .. } => WaitStyle::Adaptive,
        Wait::Sleep => WaitStyle::Sleep,
        _ => WaitStyle::Service,
    }
}
