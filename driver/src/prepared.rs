//! A prepared model: its plan, and the contexts (working memory) that executions borrow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::log_tags::MEMORY;
use burst_hal::trace::{Marks, SpanKind};
use burst_hal::validate::{Direction, RequestRules, UnspecifiedOutputs};
use burst_hal::{
    Burst, Caller, ErrorStatus, ExecutionOptions, ExecutionPreference, ExecutionResult, Failure,
    MemoryCharge, Model, Pace, PrepareOptions, PreparedModel, Request,
};

use crate::OpError;
use crate::arguments::Arguments;
use crate::context::Context;
use crate::device_memory::{DeviceMemory, IdleContexts};
use crate::engine::Engine;
use crate::entry::{Entry, loop_timeout};
use crate::error::DriverError;
use crate::log;
use crate::offer::Offer;
use crate::op::PrepareContext;
use crate::plan::{GraphPlan, Plan};
use crate::planner::plan;
use crate::stop::Stop;
use crate::threads::{Parallelism, Scope, ThreadPool};
use crate::weight_room::WeightPages;

/// A model that this driver can execute.
#[derive(Debug)]
pub struct CpuPreparedModel {
    plan: Plan,
    /// Dropped after the plan, whose weights lie there.
    weights: WeightPages,
    pub(crate) rules: RequestRules,
    options: PrepareOptions,
    idle: Arc<IdleContexts>,
    /// The engine's, which other models share.
    memory: Arc<DeviceMemory>,
    pub(crate) pace: Pace,
    /// The device's helpers, if it has any and the preference lets it use them.
    pool: Option<Arc<ThreadPool>>,
    pub(crate) preference: ExecutionPreference,
    /// What this value takes besides its plan; contexts are charged to the same account.
    charge: MemoryCharge,
}

impl CpuPreparedModel {
    pub(crate) fn new(
        model: &Model,
        offer: Offer<'_>,
        context: &PrepareContext<'_>,
        preference: ExecutionPreference,
        engine: &Engine,
    ) -> Result<Self, DriverError> {
        let plan = plan(model, offer, context)?;
        let mut rules = RequestRules::new(model)?;
        for position in plan.main.required_inputs() {
            rules.require(Direction::Input, position);
        }
        // No operation has a form in which it does without a result that the model lists.
        for position in 0..plan.main.outputs.len() {
            rules.require(Direction::Output, position);
        }
        describe_extensions(&plan.main, &mut rules);
        let lists = size_of::<Self>() + rules.held_bytes() + plan.list_bytes();
        context.budget.charge(lists).map_err(|cause| no_memory(&plan, &cause))?;
        let charge = context.budget.take_charge();
        Ok(CpuPreparedModel {
            plan,
            weights: context.budget.finish_room(),
            rules,
            options: PrepareOptions::default(),
            idle: engine.memory().idle_contexts(charge.same_account()),
            memory: Arc::clone(engine.memory()),
            pace: Pace::of(model),
            // Helpers poll while they wait for work: nothing for who saves energy.
            pool: match preference {
                ExecutionPreference::LowPower => None,
                _ => engine.pool(),
            },
            preference,
            charge,
        })
    }

    /// An empty charge to the account that pays for this model.
    pub(crate) fn payer(&self) -> MemoryCharge {
        self.charge.same_account()
    }

    /// Remembers how it was prepared.
    #[must_use]
    pub(crate) fn with_options(self, options: &PrepareOptions) -> Self {
        CpuPreparedModel { options: PrepareOptions { deadline: None, ..*options }, ..self }
    }

    /// Bytes of pages that its packed weights have for themselves, beside the heap: none where the model is small.
    /// What they have beyond the weights is charged like these.
    #[must_use]
    pub fn weight_page_bytes(&self) -> usize {
        self.weights.bytes()
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether it was prepared by the device with this memory.
    pub(crate) fn is_of(&self, device: &Arc<DeviceMemory>) -> bool {
        Arc::ptr_eq(&self.memory, device)
    }

    fn take_context(&self) -> Result<Context, DriverError> {
        self.idle.take().map_or_else(|| self.new_context(), Ok)
    }

    /// A new context. Where the account refuses it memory, contexts that no execution uses go first.
    pub(crate) fn new_context(&self) -> Result<Context, DriverError> {
        let make = || Context::new(&self.plan, self.charge.same_account());
        let bytes = self.plan.arena_bytes();
        tracing::debug!(target: MEMORY, bytes, "working memory for executions");
        let context = match make() {
            Err(OpError::Refused(_)) if self.memory.release_idle(&self.charge) => make(),
            other => other,
        };
        context.map_err(|cause| no_memory(&self.plan, &cause))
    }

    /// The threads of an execution in this context.
    pub(crate) fn begin(&self, context: &Context) -> Option<Scope<'_>> {
        let begin = match self.keeps_up_speed() {
            true => ThreadPool::begin_beside_others,
            false => ThreadPool::begin,
        };
        self.pool.as_deref().map(|pool| begin(pool, context.expects_help))
    }

    /// Whether it is to compute much over time rather than each answer soon.
    fn keeps_up_speed(&self) -> bool {
        self.preference == ExecutionPreference::SustainedSpeed
    }

    fn execute_once(&self, request: &Request, wanted: Wanted<'_>) -> ExecutionResult {
        let mut result = ExecutionResult::of(ErrorStatus::None);
        let mut context = None;
        self.execute(&mut context, request, wanted, &mut result);
        log::executed(result.status);
        if let Some(context) = context {
            self.idle.give_back(context);
        }
        result
    }

    /// Runs in this context, which is made where there is none, and is gone afterwards where the
    /// account refused it memory.
    pub(crate) fn execute(
        &self,
        context: &mut Option<Context>,
        request: &Request,
        wanted: Wanted<'_>,
        result: &mut ExecutionResult,
    ) {
        let entry = Entry::now(wanted.options);
        result.reset(ErrorStatus::None);
        // A request that is not legal is told so, however little time it has.
        let arguments = match self.arguments(request) {
            Ok(arguments) => arguments,
            Err(error) => return entry.settle(Err(error), &self.pace, result),
        };
        if let Some(status) = entry.refusal(&self.pace) {
            return result.reset(status);
        }
        let mut outcome = self.try_execute(context, arguments, wanted, result);
        if let Err(DriverError::Refused(_)) = outcome {
            *context = None;
            // The account has more room once the contexts that nobody uses are gone.
            if wanted.makes_room && self.memory.release_idle(&self.charge) {
                result.reset(ErrorStatus::None);
                let arguments = self.arguments(request);
                outcome = arguments
                    .and_then(|arguments| self.try_execute(context, arguments, wanted, result));
            }
            if outcome.is_err() {
                *context = None;
            }
        }
        entry.settle(outcome, &self.pace, result);
    }

    /// The arguments of a request, which is legal.
    pub(crate) fn arguments<'r>(&self, request: &'r Request) -> Result<Arguments<'r>, DriverError> {
        self.rules.check(request, UnspecifiedOutputs::Allowed)?;
        Arguments::find(&self.memory.buffers, self, request)
    }

    /// Returns the time the steps took; the status is NONE or OUTPUT_INSUFFICIENT_SIZE.
    fn try_execute(
        &self,
        context: &mut Option<Context>,
        mut arguments: Arguments<'_>,
        Wanted { options, caller, .. }: Wanted<'_>,
        result: &mut ExecutionResult,
    ) -> Result<Duration, DriverError> {
        let context = match context {
            Some(context) => context,
            None => context.insert(self.take_context()?),
        };
        let stop = Stop { caller, deadline: options.deadline, loop_deadline: None };
        let outcome = self.compute(context, &mut arguments, stop, options, result);
        let ended_well = outcome.is_ok() && result.status == ErrorStatus::None;
        arguments.end(context, &self.plan, ended_well);
        outcome
    }

    /// From the arguments to the outputs; returns the time the steps took.
    fn compute(
        &self,
        context: &mut Context,
        arguments: &mut Arguments<'_>,
        stop: Stop,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) -> Result<Duration, DriverError> {
        let mut marks = Marks::begin(stop.tracing());
        // Helpers wake while inputs are copied.
        let scope = self.begin(context);
        let threads = Parallelism::of(scope.as_ref());
        arguments.bring(context, &self.plan, threads)?;
        marks.mark(SpanKind::BringInputs);
        let started = Instant::now();
        context.run(&self.plan, stop, loop_timeout(options), threads)?;
        context.expects_help = scope.as_ref().is_some_and(Scope::has_shared_work);
        let computed = started.elapsed();
        marks.skip(); // each step has its own span
        arguments.take(context, &self.plan, threads, result)?;
        marks.mark(SpanKind::TakeOutputs);
        self.pace.note(computed);
        Ok(computed)
    }
}

/// Tells the rules for requests how long the values of an extension's types are.
fn describe_extensions(graph: &GraphPlan, rules: &mut RequestRules) {
    let sides = [(Direction::Input, &graph.inputs), (Direction::Output, &graph.outputs)];
    for (direction, operands) in sides {
        for (position, operand) in operands.iter().enumerate() {
            if let Some(ty) = &graph.operands[*operand].info.extension {
                rules.describe(direction, position, &ty.def.information());
            }
        }
    }
}

/// Why there is no memory for what a plan needs.
fn no_memory(plan: &Plan, cause: &OpError) -> DriverError {
    DriverError::given_up(cause).unwrap_or_else(|| DriverError::TooLarge {
        bytes: plan.arena_bytes() as u64,
        limit: crate::plan::MAX_ARENA_BYTES as u64,
    })
}

/// How an execution is to be run, and for whom.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) options: &'a ExecutionOptions,
    pub(crate) caller: Option<&'a Caller>,
    /// Whether contexts that nobody uses go where the account has no room.
    pub(crate) makes_room: bool,
}

impl PreparedModel for CpuPreparedModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.execute_once(request, Wanted { options, caller: None, makes_room: true })
    }

    fn execute_for(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        self.execute_once(request, Wanted { options, caller: Some(caller), makes_room: true })
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.rules)
    }

    fn pace(&self) -> Option<&Pace> {
        Some(&self.pace)
    }

    fn prepare_options(&self) -> Option<PrepareOptions> {
        Some(self.options)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        let context = Some(self.take_context()?);
        Ok(Box::new(CpuBurst { model: self, caller: None, context }))
    }
}

/// Consecutive executions that keep one context.
struct CpuBurst {
    model: Arc<CpuPreparedModel>,
    caller: Option<Caller>,
    /// `None` after idle time; the next execution allocates it again.
    context: Option<Context>,
}

/// A context in use: one that a panic leaves half-way is not used again.
struct DroppedByPanic<'a>(&'a mut Option<Context>);

impl Drop for DroppedByPanic<'_> {
    fn drop(&mut self) {
        *self.0 = None;
    }
}

impl Burst for CpuBurst {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        let context = DroppedByPanic(&mut self.context);
        let wanted = Wanted { options, caller: self.caller.as_ref(), makes_room: true };
        self.model.execute(context.0, request, wanted, result);
        log::executed(result.status);
        std::mem::forget(context);
    }

    fn work_for(&mut self, caller: &Caller) {
        self.caller = Some(caller.clone());
    }

    /// A model that is to keep up its speed keeps its working memory, which its user goes on paying for.
    fn release_resources(&mut self) {
        if !self.model.keeps_up_speed() {
            self.context = None;
        }
    }
}

impl Drop for CpuBurst {
    fn drop(&mut self) {
        if let Some(context) = self.context.take() {
            self.model.idle.give_back(context);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_context_that_a_panic_leaves_half_way_is_not_used_again() {
        let mut context = Some(Context::default());
        std::mem::forget(DroppedByPanic(&mut context));
        assert!(context.is_some());
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _in_use = DroppedByPanic(&mut context);
            std::panic::resume_unwind(Box::new("half-way"));
        }));
        assert!(unwound.is_err());
        assert!(context.is_none());
    }
}
