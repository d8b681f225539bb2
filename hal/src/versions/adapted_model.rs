//! A model that an older driver has made ready, as a current one.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use super::convert::{execution_options_to, request_to};
use super::interfaces::{BurstV1_2, PreparedModelV1_0, PreparedModelV1_2};
use super::listener::Listener;
use super::once::launch_once;
use super::types::RequestV1_0;
use crate::validate::{ArgumentOperand, Direction, RequestRules, UnspecifiedOutputs};
use crate::{
    Burst, BurstExecutor, Caller, ErrorStatus, ExecutionCallback, ExecutionOptions,
    ExecutionResult, Failure, Fence, FencedExecution, FencedOptions, HalVersion, OutputShape, Pace,
    PlainBurst, Pool, PrepareOptions, PreparedModel, Request, RequestArgument, RequestPool,
    TimePoint,
};

/// What a prepared model of a driver before HAL 1.3 says of everything that came later.
macro_rules! unknown_before_1_3 {
    () => {
        /// No older driver knows of callers.
        fn execute_for(
            &self,
            request: &Request,
            options: &ExecutionOptions,
            _: &Caller,
        ) -> ExecutionResult {
            self.execute_synchronously(request, options)
        }

        fn execute_fenced(
            self: Arc<Self>,
            _: Request,
            _: Vec<Fence>,
            _: FencedOptions,
            _: Caller,
        ) -> Result<FencedExecution, Failure> {
            Err(Failure::general("HAL 1.3 was the first to have fenced executions"))
        }

        /// Nobody could ask the driver.
        fn pace(&self) -> Option<&Pace> {
            None
        }

        /// The driver's model is of another trait.
        fn wrapped(&self) -> Option<&Arc<dyn PreparedModel>> {
            None
        }

        fn open_executor(self: Arc<Self>) -> Result<Option<Box<dyn BurstExecutor>>, Failure> {
            Ok(None)
        }
    };
}

/// Of HAL 1.0 or 1.1: it only executes asynchronously, and only says how that ended.
pub(super) struct AdaptedV1_0 {
    pub(super) model: Arc<dyn PreparedModelV1_0>,
    pub(super) version: HalVersion,
    pub(super) rules: RequestRules,
    pub(super) options: PrepareOptions,
    pub(super) listener: Listener,
}

impl AdaptedV1_0 {
    fn launch(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        self.listener.tell(&execution_options_to(options, self.version).lost);
        let request = match self.checked(request) {
            Ok(Some(request)) => request,
            Ok(None) => {
                callback(ExecutionResult {
                    output_shapes: self.shapes(request),
                    ..ExecutionResult::of(ErrorStatus::OutputInsufficientSize)
                });
                return Ok(());
            }
            Err(failure) => {
                callback(ExecutionResult::of(failure.status));
                return Err(failure);
            }
        };
        if let Some(early) = missed(options) {
            callback(early);
            return Ok(());
        }
        let version = self.version;
        let launched = launch_once(callback, |callback| {
            let listener = self.listener.clone();
            let callback = move |status| {
                callback(ExecutionResult::of(told(&listener, status, version)));
            };
            let launched = Arc::clone(&self.model).execute(request, Box::new(callback));
            launched.map_err(|failure| self.listener.failure(failure, version))
        });
        only_arguments(launched)
    }

    /// The request for the driver; `None` where an output has too little room, which such a driver has no
    /// way to say.
    fn checked(&self, request: &Request) -> Result<Option<RequestV1_0>, Failure> {
        self.rules.check(request, UnspecifiedOutputs::Refused)?;
        let old = RequestV1_0::of(request_to(request, self.version)?)?;
        let has_room = self.shapes(request).iter().all(|shape| shape.is_sufficient);
        Ok(has_room.then_some(old))
    }

    /// The outputs' shapes, all of which are known, and whether there is room for them.
    fn shapes(&self, request: &Request) -> Vec<OutputShape> {
        let outputs = request.outputs.iter().enumerate();
        outputs
            .filter_map(|(position, argument)| {
                let operand = self.rules.operand(Direction::Output, position)?;
                Some(shape_of(&operand, argument, &request.pools))
            })
            .collect()
    }
}

#[deny(clippy::missing_trait_methods, reason = "all that the driver can do has to reach it")]
impl PreparedModel for AdaptedV1_0 {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        let (tell, told) = sync_channel(1);
        let callback = move |result| {
            // An error means that nobody waits any more, which cannot be before this.
            let _ = tell.send(result);
        };
        // Where it fails the callback has the same status.
        let _ = self.launch(request, options, Box::new(callback));
        told.recv().unwrap_or_else(|_| ExecutionResult::of(ErrorStatus::GeneralFailure))
    }

    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        options: ExecutionOptions,
        _: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        self.launch(&request, &options, callback)
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.rules)
    }

    fn prepare_options(&self) -> Option<PrepareOptions> {
        Some(self.options)
    }

    /// HAL 1.2 was the first to have bursts.
    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        Ok(Box::new(PlainBurst::new(self)))
    }

    unknown_before_1_3!();
}

fn shape_of(
    operand: &ArgumentOperand<'_>,
    argument: &RequestArgument,
    pools: &[RequestPool],
) -> OutputShape {
    let dimensions = match argument.dimensions.is_empty() {
        true => operand.dimensions.into(),
        false => argument.dimensions.clone(),
    };
    let pool = usize::try_from(argument.location.pool_index).ok().and_then(|pool| pools.get(pool));
    let room = match pool {
        Some(RequestPool::Memory(pool)) if !argument.has_no_value => {
            argument.location.range_in(pool.len()).map_or(0, |range| range.end - range.start)
        }
        _ => 0,
    };
    // Of a type that only the device knows, only the device knows the size.
    let needed = operand.ty.byte_length(&dimensions).filter(|_| !operand.ty.is_oem());
    OutputShape { dimensions, is_sufficient: needed.is_none_or(|needed| needed <= room) }
}

/// Of HAL 1.2.
pub(super) struct AdaptedV1_2 {
    pub(super) model: Arc<dyn PreparedModelV1_2>,
    /// Where the model was seen; of one from files the driver knows them.
    pub(super) rules: Option<RequestRules>,
    pub(super) options: Option<PrepareOptions>,
    pub(super) listener: Listener,
}

#[deny(clippy::missing_trait_methods, reason = "all that the driver can do has to reach it")]
impl PreparedModel for AdaptedV1_2 {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.listener.tell(&execution_options_to(options, HalVersion::V1_2).lost);
        let request = match RequestV1_0::of(request) {
            Ok(request) => request,
            Err(failure) => return ExecutionResult::of(failure.status),
        };
        match missed(options) {
            Some(early) => early,
            None => {
                let result = self.model.execute_synchronously(&request, options.measure_timing);
                old(&self.listener, result)
            }
        }
    }

    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        options: ExecutionOptions,
        _: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        self.listener.tell(&execution_options_to(&options, HalVersion::V1_2).lost);
        let request = match RequestV1_0::of(&request) {
            Ok(request) => request,
            Err(failure) => {
                callback(ExecutionResult::of(failure.status));
                return Err(failure);
            }
        };
        if let Some(early) = missed(&options) {
            callback(early);
            return Ok(());
        }
        let launched = launch_once(callback, |callback| {
            let listener = self.listener.clone();
            let callback = Box::new(move |result| callback(old(&listener, result)));
            let model = Arc::clone(&self.model);
            let launched = model.execute(request, options.measure_timing, callback);
            launched.map_err(|failure| self.listener.failure(failure, HalVersion::V1_2))
        });
        only_arguments(launched)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        let burst = Arc::clone(&self.model).open_burst();
        let burst = burst.map_err(|failure| self.listener.failure(failure, HalVersion::V1_2))?;
        Ok(Box::new(AdaptedBurst { burst, listener: self.listener.clone() }))
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        self.rules.as_ref().or_else(|| self.model.request_rules())
    }

    fn prepare_options(&self) -> Option<PrepareOptions> {
        self.options
    }

    unknown_before_1_3!();
}

struct AdaptedBurst {
    burst: Box<dyn BurstV1_2>,
    listener: Listener,
}

#[deny(clippy::missing_trait_methods, reason = "all that the driver can do has to reach it")]
impl Burst for AdaptedBurst {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        self.listener.tell(&execution_options_to(options, HalVersion::V1_2).lost);
        match (RequestV1_0::of(request), missed(options)) {
            (Err(failure), _) => result.reset(failure.status),
            (Ok(_), Some(early)) => *result = early,
            (Ok(request), None) => {
                self.burst.execute(&request, options.measure_timing, result);
                result.status = self.listener.status(result.status, HalVersion::V1_2);
            }
        }
    }

    /// No older driver knows of callers, of memories ahead of a request, or of idle time.
    fn work_for(&mut self, _: &Caller) {}

    fn cache_memory(&mut self, _: &Pool) {}

    fn release_resources(&mut self) {}
}

/// The deadline is looked at before the call, and no more after that.
fn missed(options: &ExecutionOptions) -> Option<ExecutionResult> {
    let has_passed = options.deadline.is_some_and(TimePoint::has_passed);
    has_passed.then(|| ExecutionResult::of(ErrorStatus::MissedDeadlinePersistent))
}

/// What a driver's status means. One without shapes cannot say which output is too short, and was asked
/// with enough room for all.
fn told(listener: &Listener, status: ErrorStatus, version: HalVersion) -> ErrorStatus {
    match status {
        ErrorStatus::OutputInsufficientSize => ErrorStatus::GeneralFailure,
        status => listener.status(status, version),
    }
}

/// A driver of HAL 1.2 cannot say more than that version.
fn old(listener: &Listener, result: ExecutionResult) -> ExecutionResult {
    ExecutionResult { status: listener.status(result.status, HalVersion::V1_2), ..result }
}

/// A launch fails for its arguments alone; whatever else went wrong is a result, which the callback has.
fn only_arguments(launched: Result<(), Failure>) -> Result<(), Failure> {
    launched.or_else(|failure| match failure.status {
        ErrorStatus::InvalidArgument => Err(failure),
        _ => Ok(()),
    })
}
