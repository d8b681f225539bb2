//! One request in every way to execute it, and what must hold of each result.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use burst_hal::validate::{RequestRules, UnspecifiedOutputs, validate_result};
use burst_hal::{
    Caller, Dimensions, ErrorStatus, ExecutionInfo, ExecutionOptions, ExecutionResult, FenceState,
    FencedOptions, Model, Operand, PreparedModel, TimePoint,
};

use super::finding::{Finding, caught};
use super::request::{Asked, Draft};

/// How long a loop may take: most of these that end do so within a few rounds.
const LOOP_TIMEOUT: Duration = Duration::from_millis(5);
/// How long preparing a model of any origin may take, and each execution, before it is given up.
pub(super) const TIME_MAX: Duration = Duration::from_secs(2);
/// What an output holds before the first execution, and before the second.
const FILLS: [u8; 2] = [0xA5, 0x5A];

/// What came of a request, as far as anybody counts it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Executed {
    pub(super) executions: u32,
    pub(super) succeeded: u32,
}

/// A prepared model and for whom it executes.
pub(super) struct Judged<'a> {
    pub(super) model: &'a Model,
    pub(super) prepared: &'a Arc<dyn PreparedModel>,
    pub(super) rules: &'a RequestRules,
    pub(super) caller: &'a Caller,
    /// How long anything may take before it is a hang.
    pub(super) patience: Duration,
    /// Whether times are asked for.
    pub(super) measured: bool,
}

impl Judged<'_> {
    /// Executes a request in every way.
    pub(super) fn judge(&self, draft: &Draft) -> Result<Executed, Finding> {
        let mut executed = Executed::default();
        let first = self.synchronously(draft, FILLS[0])?;
        let second = self.synchronously(draft, FILLS[1])?;
        self.same("a second execution", &first.result, &second.result)?;
        self.check_written(draft, &first, &second)?;
        for done in [&first, &second] {
            executed.note(done.result.status);
        }
        for result in self.burst(draft, &first)? {
            executed.note(result.status);
        }
        executed.note(self.asynchronously(draft, &first)?);
        if let Some(status) = self.fenced(draft, &first)? {
            executed.note(status);
        }
        Ok(executed)
    }

    fn options(&self) -> ExecutionOptions {
        ExecutionOptions {
            measure_timing: self.measured,
            deadline: Some(TimePoint::after(TIME_MAX)),
            loop_timeout: Some(LOOP_TIMEOUT),
        }
    }

    fn synchronously(&self, draft: &Draft, fill: u8) -> Result<Done, Finding> {
        const CALL: &str = "execute_for";
        let asked = draft.ask(fill);
        let execute = || self.prepared.execute_for(&asked.request, &self.options(), self.caller);
        let result = caught(CALL, execute)?;
        self.check(CALL, draft, &asked, &result)?;
        Ok(Done { outputs: asked.outputs(), result })
    }

    /// Twice, the second time after everything that can be made again was let go of.
    fn burst(&self, draft: &Draft, first: &Done) -> Result<Vec<ExecutionResult>, Finding> {
        const CALL: &str = "open_burst";
        let opened = caught(CALL, || Arc::clone(self.prepared).open_burst())?;
        let mut burst = match opened {
            Ok(burst) => burst,
            Err(failure) if failure.status == ErrorStatus::InvalidArgument => {
                return Err(Finding::new(CALL, failure));
            }
            Err(_) => return Ok(Vec::new()),
        };
        burst.work_for(self.caller);
        let mut results = Vec::new();
        for _ in 0..2 {
            let asked = draft.ask(FILLS[0]);
            let mut result = ExecutionResult::of(ErrorStatus::None);
            caught("Burst::execute", || {
                burst.execute(&asked.request, &self.options(), &mut result);
            })?;
            self.check("Burst::execute", draft, &asked, &result)?;
            self.same("an execution of a burst", &first.result, &result)?;
            results.push(result);
            caught("Burst::release_resources", || burst.release_resources())?;
        }
        Ok(results)
    }

    fn asynchronously(&self, draft: &Draft, first: &Done) -> Result<ErrorStatus, Finding> {
        const CALL: &str = "execute_asynchronously";
        let asked = draft.ask(FILLS[0]);
        let (tell, told) = channel();
        let callback = Box::new(move |result| {
            // Whoever waited has lost patience; then this is a finding already.
            let _ = tell.send(result);
        });
        let (request, caller) = (asked.request.clone(), self.caller.clone());
        let model = Arc::clone(self.prepared);
        let launched = caught(CALL, || {
            model.execute_asynchronously(request, self.options(), caller, callback)
        })?;
        let result = told
            .recv_timeout(self.patience)
            .map_err(|_| Finding::new(CALL, "the callback was not called"))?;
        self.check(CALL, draft, &asked, &result)?;
        self.same("an asynchronous execution", &first.result, &result)?;
        match launched.map_err(|failure| failure.status) {
            Err(status) if status != ErrorStatus::InvalidArgument || status != result.status => {
                let what = format!("the launch says {status}, the callback {}", result.status);
                Err(Finding::new(CALL, what))
            }
            _ => Ok(result.status),
        }
    }

    /// `None` where the device has no such executions.
    fn fenced(&self, draft: &Draft, first: &Done) -> Result<Option<ErrorStatus>, Finding> {
        const CALL: &str = "execute_fenced";
        let asked = draft.ask(FILLS[0]);
        let is_legal = self.rules.check(&asked.request, UnspecifiedOutputs::Refused).is_ok();
        let options = FencedOptions { execution: self.options(), duration: None };
        let (request, caller) = (asked.request.clone(), self.caller.clone());
        let model = Arc::clone(self.prepared);
        let launched = caught(CALL, || model.execute_fenced(request, Vec::new(), options, caller))?;
        let started = match launched {
            Ok(started) if is_legal => started,
            Ok(_) => return Err(Finding::new(CALL, "it takes a request that is not legal for it")),
            Err(_) => return Ok(None),
        };
        let fence = started.fence.as_ref();
        let until = TimePoint::after(self.patience);
        let state = fence.map_or(FenceState::Done, |fence| fence.wait(Some(until)));
        let info = caught("FencedInfo::execution_info", || started.info.execution_info())?;
        let ended = match (state, info) {
            (FenceState::Pending, _) => {
                return Err(Finding::new(CALL, "the fence is never signalled"));
            }
            (_, Err(failure)) => {
                let what = format!("the fence is {state:?}, and there is no result: {failure}");
                return Err(Finding::new(CALL, what));
            }
            (state, Ok(ExecutionInfo { status, .. }))
                if (state == FenceState::Done) != (status == ErrorStatus::None) =>
            {
                let what = format!("the fence is {state:?}, the status {status}");
                return Err(Finding::new(CALL, what));
            }
            (_, Ok(info)) => info,
        };
        draft.check_untouched(&asked).map_err(|what| Finding::new(CALL, what))?;
        let succeeds = |status| status == ErrorStatus::None;
        let others = first.result.status;
        match succeeds(ended.status) == succeeds(others) || excused(ended.status, others) {
            true => Ok(Some(ended.status)),
            false => {
                let what = format!("status {}, but {others} in other ways", ended.status);
                Err(Finding::new(CALL, what))
            }
        }
    }

    /// What holds of every result, whatever the operations are.
    fn check(
        &self,
        call: &'static str,
        draft: &Draft,
        asked: &Asked,
        result: &ExecutionResult,
    ) -> Result<(), Finding> {
        let finding = |what: &dyn std::fmt::Display| Finding::new(call, what);
        draft.check_untouched(asked).map_err(|what| finding(&what))?;
        let outputs = self.model.main.output_indexes.len();
        validate_result(result, outputs, self.measured).map_err(|fault| finding(&fault))?;
        let legal = self.rules.check(&asked.request, UnspecifiedOutputs::Allowed);
        if let Err(error) = legal {
            return match result.status {
                ErrorStatus::InvalidArgument => Ok(()),
                status if excused(status, status) => Ok(()),
                status => Err(finding(&format!("status {status} for a request of which {error}"))),
            };
        }
        for (index, shape) in result.output_shapes.iter().enumerate() {
            let declared = self.operand(index).map(|operand| operand.dimensions.clone());
            let fits = declared.is_none_or(|declared| agree(&declared, &shape.dimensions));
            if !fits {
                let what = format!(
                    "output {index} has the shape {:?}, which the model excludes",
                    shape.dimensions
                );
                return Err(finding(&what));
            }
            let needed = self.needed(index, &shape.dimensions);
            let room = draft.range(index).map(|range| range.len() as u64);
            if let (Some(needed), Some(room)) = (needed, room)
                && shape.is_sufficient != (needed <= room)
            {
                let is = if shape.is_sufficient { "sufficient" } else { "insufficient" };
                let what = format!("output {index} needs {needed} bytes, has {room}, and is {is}");
                return Err(finding(&what));
            }
        }
        Ok(())
    }

    fn operand(&self, output: usize) -> Option<&Operand> {
        let graph = &self.model.main;
        graph.operands.get(usize::try_from(*graph.output_indexes.get(output)?).ok()?)
    }

    /// Bytes of an output of this shape, where they can be known.
    fn needed(&self, output: usize, shape: &[u32]) -> Option<u64> {
        let ty = self.operand(output)?.ty;
        let is_known = !ty.is_oem() && (!ty.is_tensor() || !shape.is_empty());
        // A size of 0 in a shape that is told is one that is not known, or a value without elements.
        ty.byte_length(shape).filter(|bytes| is_known && *bytes > 0)
    }

    /// Two executions of one request end alike, but for what the moment decides.
    fn same(
        &self,
        what: &str,
        one: &ExecutionResult,
        other: &ExecutionResult,
    ) -> Result<(), Finding> {
        if excused(one.status, other.status) {
            return Ok(());
        }
        let shapes = |result: &ExecutionResult| -> Vec<Dimensions> {
            result.output_shapes.iter().map(|shape| shape.dimensions.clone()).collect()
        };
        let (first, second) = (shapes(one), shapes(other));
        let alike = first == second || first.is_empty() || second.is_empty();
        match one.status == other.status && alike {
            true => Ok(()),
            false => Err(Finding::new(
                "execute",
                format!(
                    "{what} gives {} {second:?}, the first one {} {first:?}",
                    other.status, one.status
                ),
            )),
        }
    }

    /// Every byte of every output is written: none is what it was before, both times.
    fn check_written(&self, draft: &Draft, first: &Done, second: &Done) -> Result<(), Finding> {
        if [first, second].iter().any(|done| done.result.status != ErrorStatus::None) {
            return Ok(());
        }
        for index in 0..draft.outputs.len() {
            let shape = match first.result.output_shapes.get(index) {
                Some(shape) => shape.dimensions.clone(),
                None => self.operand(index).map(|one| one.dimensions.clone()).unwrap_or_default(),
            };
            let (Some(range), Some(needed)) = (draft.range(index), self.needed(index, &shape))
            else {
                continue;
            };
            let value = range.clone().take(usize::try_from(needed).unwrap_or(usize::MAX));
            let is_left = |at: &usize| {
                first.outputs.get(*at) == Some(&FILLS[0])
                    && second.outputs.get(*at) == Some(&FILLS[1])
            };
            if let Some(at) = value.into_iter().find(is_left) {
                let what = format!("byte {} of output {index} is not written", at - range.start);
                return Err(Finding::new("execute_for", what));
            }
        }
        Ok(())
    }
}

/// An execution that has ended.
struct Done {
    result: ExecutionResult,
    outputs: Vec<u8>,
}

impl Executed {
    fn note(&mut self, status: ErrorStatus) {
        self.executions += 1;
        self.succeeded += u32::from(status == ErrorStatus::None);
    }
}

/// Whether one of them depends on the moment: on memory, on time, on whether the device is there.
fn excused(one: ErrorStatus, other: ErrorStatus) -> bool {
    use ErrorStatus::{
        DeviceUnavailable, MissedDeadlinePersistent, MissedDeadlineTransient,
        ResourceExhaustedPersistent, ResourceExhaustedTransient,
    };
    [one, other].iter().any(|status| {
        matches!(
            status,
            DeviceUnavailable
                | MissedDeadlinePersistent
                | MissedDeadlineTransient
                | ResourceExhaustedPersistent
                | ResourceExhaustedTransient
        )
    })
}

/// Whether a shape is one that the model leaves open.
fn agree(declared: &[u32], shape: &[u32]) -> bool {
    let known = |(declared, size): (&u32, &u32)| *declared == 0 || *size == 0 || declared == size;
    declared.is_empty()
        || shape.is_empty()
        || (declared.len() == shape.len() && declared.iter().zip(shape).all(known))
}
