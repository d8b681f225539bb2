//! One execution of a model: its working memory, and the walk over the steps of its graphs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::trace::{SpanKind, SpanSink};
use burst_hal::{MemoryCharge, TimePoint};

use crate::OpError;
use crate::aligned::AlignedBytes;
use crate::error::DriverError;
use crate::graph_memory::GraphMemory;
use crate::log;
use crate::plan::{GraphPlan, Plan, Step};
use crate::scratch::Scratch;
use crate::stop::Stop;
use crate::threads::Parallelism;

/// Working memory of one execution at a time; used again by the next one.
///
/// A graph never runs inside itself, so one [`GraphMemory`] per graph is enough, however often and from
/// wherever the graph is run.
#[derive(Debug, Default)]
pub(crate) struct Context {
    main: GraphMemory,
    /// By index among the model's referenced graphs; empty for those that nothing runs.
    referenced: Vec<GraphMemory>,
    scratch: Scratch,
    /// Whether the last execution shared work with helpers.
    pub(crate) expects_help: bool,
    /// What the lists take; the rest is charged where it lies.
    _charge: MemoryCharge,
}

impl Context {
    /// Working memory for executions of `plan`, charged to the account of `charge`.
    ///
    /// # Errors
    /// [`OpError::Refused`] when the account does not suffice, [`OpError::Range`] when the system has
    /// no such memory.
    pub(crate) fn new(plan: &Plan, mut charge: MemoryCharge) -> Result<Self, OpError> {
        let lists = plan.referenced.len() * size_of::<GraphMemory>() + size_of::<Self>();
        charge.grow(lists as u64).map_err(OpError::refused)?;
        let mut memory = |graph: &GraphPlan| GraphMemory::new(graph, &mut charge);
        let main = memory(&plan.main)?;
        let referenced = plan
            .referenced
            .iter()
            .map(|graph| graph.as_ref().map_or(Ok(GraphMemory::default()), &mut memory));
        let referenced = referenced.collect::<Result<_, _>>()?;
        let mut scratch = Scratch::paid_by(charge.same_account());
        scratch.f32(plan.scratch_floats())?;
        Ok(Context { main, referenced, scratch, expects_help: false, _charge: charge })
    }

    /// Marks input `position` of the model as left out.
    pub(crate) fn omit_input(&mut self, plan: &Plan, position: usize) {
        self.main.omit_input(&plan.main, position);
    }

    /// Memory for input `position` of the model with this shape (empty: the planned one), to be
    /// filled.
    pub(crate) fn input(
        &mut self,
        plan: &Plan,
        position: usize,
        dims: &[u32],
    ) -> Result<&mut [u8], OpError> {
        self.main.input(&plan.main, position, dims)
    }

    /// Lets operations read input `position` where it lies.
    pub(crate) fn lend_input(
        &mut self,
        plan: &Plan,
        position: usize,
        dims: &[u32],
        value: Arc<AlignedBytes>,
    ) -> Result<(), OpError> {
        self.main.lend_input(&plan.main, position, dims, value)
    }

    /// Ends what [`Context::lend_input`] began.
    pub(crate) fn return_input(&mut self, plan: &Plan, position: usize) {
        self.main.return_input(&plan.main, position);
    }

    /// Lets the operation that makes output `position` write it to this memory, which is exchanged for
    /// some of the context's until [`Context::return_output`]. `false` where no operation makes it.
    ///
    /// # Errors
    /// As [`AlignedBytes::resize`]: memory that is empty gets the length of the output, where it is known.
    pub(crate) fn lend_output(
        &mut self,
        plan: &Plan,
        position: usize,
        memory: &mut AlignedBytes,
    ) -> Result<bool, OpError> {
        self.main.lend_output(&plan.main, position, memory)
    }

    /// Exchanges the memory back.
    pub(crate) fn return_output(
        &mut self,
        plan: &Plan,
        position: usize,
        memory: &mut AlignedBytes,
    ) {
        self.main.return_output(&plan.main, position, memory);
    }

    /// Shape and bytes of output `position` of the model after a run.
    pub(crate) fn output<'a>(&'a self, plan: &'a Plan, position: usize) -> (&'a [u32], &'a [u8]) {
        self.main.output(&plan.main, position)
    }

    /// Runs the model on these threads; each loop in it may take `loop_timeout`. Inputs must have
    /// been filled or omitted.
    pub(crate) fn run(
        &mut self,
        plan: &Plan,
        stop: Stop,
        loop_timeout: Duration,
        parallelism: Parallelism<'_>,
    ) -> Result<(), DriverError> {
        let Context { main, referenced, scratch, .. } = self;
        let spans = stop.tracing();
        let memories = referenced;
        let mut runner = Runner { plan, memories, scratch, loop_timeout, parallelism, spans };
        runner.graph(&plan.main, main, stop)
    }

    /// As [`Context::run`]; adds what each step of the model's main graph took to `times`.
    pub(crate) fn run_timed(
        &mut self,
        plan: &Plan,
        stop: Stop,
        loop_timeout: Duration,
        parallelism: Parallelism<'_>,
        times: &mut [Duration],
    ) -> Result<(), DriverError> {
        let Context { main, referenced, scratch, .. } = self;
        let (memories, spans) = (referenced, None);
        let mut runner = Runner { plan, memories, scratch, loop_timeout, parallelism, spans };
        for (step, time) in plan.main.steps.iter().zip(times) {
            let started = Instant::now();
            runner.step(&plan.main, step, main, stop)?;
            *time += started.elapsed();
        }
        Ok(())
    }
}

/// An execution in progress.
pub(crate) struct Runner<'c> {
    pub(crate) plan: &'c Plan,
    /// Of the referenced graphs. That of a graph that is running is not in its slot.
    pub(crate) memories: &'c mut [GraphMemory],
    scratch: &'c mut Scratch,
    pub(crate) loop_timeout: Duration,
    parallelism: Parallelism<'c>,
    /// Where the span of each step goes, where somebody wants them.
    spans: Option<&'c dyn SpanSink>,
}

impl Runner<'_> {
    /// Runs every step of a graph whose inputs have been filled.
    pub(crate) fn graph(
        &mut self,
        graph: &GraphPlan,
        memory: &mut GraphMemory,
        stop: Stop,
    ) -> Result<(), DriverError> {
        for step in &graph.steps {
            self.step(graph, step, memory, stop)?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        graph: &GraphPlan,
        step: &Step,
        memory: &mut GraphMemory,
        stop: Stop,
    ) -> Result<(), DriverError> {
        stop.check().map_err(|cause| graph.error(step, cause))?;
        log::computing(graph, step);
        let begun = self.spans.map(|spans| (spans, TimePoint::now().nanos));
        let executed = match step.control {
            None => memory
                .step(graph, step, self.scratch, stop, self.parallelism)
                .map_err(|cause| graph.error(step, cause)),
            Some(control) => self.control(graph, step, control, memory, stop),
        };
        if let Some((spans, begun)) = begun {
            spans.record(&graph.span(step, begun, SpanKind::Operation));
        }
        executed
    }
}
