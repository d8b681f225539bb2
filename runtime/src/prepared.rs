//! A model that one device has prepared, and the ways to execute it.

use std::sync::Arc;

use burst_hal::validate::validate_result;
use burst_hal::{
    Buffer, Burst, Caller, CompilationCache, ErrorStatus, ExecutionOptions, ExecutionResult,
    Failure, Fence, FencedExecution, FencedOptions, Model, OutputShape, PrepareOptions,
    PreparedModel, Request, ResultCode, TimePoint, Timing,
};
use burst_launch::Execution;

use crate::devices::{LiveDevice, guarded};
use crate::error::{Error, Result};
use crate::remote::{Missed, NoBurst, Remote, RemoteBurst, RemoteModel};

/// A model that one device has prepared.
#[derive(Clone)]
pub(crate) enum Prepared {
    /// In this process.
    Local(Arc<dyn PreparedModel>),
    /// By a service.
    Remote(RemoteModel),
}

/// How an execution of one prepared model ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    pub(crate) code: ResultCode,
    /// Empty, or one per output.
    pub(crate) shapes: Vec<OutputShape>,
    pub(crate) timing: Timing,
    /// Whether the device may yet write outputs: then nobody else may use their memory.
    pub(crate) is_under_way: bool,
}

impl Ended {
    /// Without shapes and times.
    pub(crate) fn of(code: ResultCode) -> Self {
        let (shapes, timing) = (Vec::new(), Timing::UNAVAILABLE);
        Ended { code, shapes, timing, is_under_way: false }
    }

    /// A call that a service has not answered.
    fn missed(missed: Missed) -> Self {
        let Missed { error, is_under_way } = missed;
        tracing::debug!(%error, is_under_way, "the execution failed");
        Ended { is_under_way, ..Ended::of(error.code) }
    }

    /// A device's answer. One that breaks the rules of answers is a failure.
    fn of_result(result: ExecutionResult, request: &Request, options: &ExecutionOptions) -> Self {
        if let Err(error) = validate_result(&result, request.outputs.len(), options.measure_timing)
        {
            tracing::warn!(%error, "a device's answer is not one");
            return Ended::of(ResultCode::OpFailed);
        }
        let ExecutionResult { status, output_shapes: shapes, timing } = result;
        Ended { shapes, timing, ..Ended::of(status.into()) }
    }
}

impl Prepared {
    /// Has a device prepare a model, and keep it in files where there are any.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn prepare(
        device: &LiveDevice,
        model: &Model,
        options: &PrepareOptions,
        cache: Option<&CompilationCache>,
    ) -> Result<Self> {
        let caller = Caller::default();
        Ok(match (device, cache) {
            (LiveDevice::Local(device), None) => {
                Prepared::Local(guarded(|| device.prepare_model_for(model, options, &caller))?)
            }
            (LiveDevice::Local(device), Some(cache)) => {
                let keeping = || device.prepare_model_caching(model, options, cache, &caller);
                Prepared::Local(guarded(keeping)?)
            }
            (LiveDevice::Remote(remote), cache) => {
                Prepared::Remote(remote.prepare(model, options, cache)?)
            }
        })
    }

    /// The model that a device has kept in files.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn from_cache(
        device: &LiveDevice,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
    ) -> Result<Self> {
        Ok(match device {
            LiveDevice::Local(device) => {
                let caller = Caller::default();
                let taking = || device.prepare_model_from_cache(cache, deadline, &caller);
                Prepared::Local(guarded(taking)?)
            }
            LiveDevice::Remote(remote) => {
                Prepared::Remote(remote.prepare_from_cache(cache, deadline)?)
            }
        })
    }

    /// As the contract has it.
    pub(crate) fn as_model(&self) -> Arc<dyn PreparedModel> {
        match self {
            Prepared::Local(model) => Arc::clone(model),
            Prepared::Remote(model) => model.as_model(),
        }
    }

    /// Its service; `None` in this process.
    pub(crate) fn service(&self) -> Option<&Remote> {
        match self {
            Prepared::Local(_) => None,
            Prepared::Remote(model) => Some(model.service()),
        }
    }

    /// Whether it can be executed, as far as is known.
    pub(crate) fn is_alive(&self) -> bool {
        self.service().is_none_or(Remote::is_alive)
    }

    /// Whether it is the same one, and not the same model prepared again.
    pub(crate) fn is_same(&self, other: &Prepared) -> bool {
        match (self, other) {
            (Prepared::Local(one), Prepared::Local(other)) => Arc::ptr_eq(one, other),
            (Prepared::Remote(one), Prepared::Remote(other)) => one.is_same(other),
            _ => false,
        }
    }

    /// Whether requests for it may name this buffer: what a service had in its memory is lost with it.
    pub(crate) fn may_use(&self, buffer: &dyn Buffer) -> bool {
        match self {
            Prepared::Local(_) => true,
            Prepared::Remote(model) => model.may_use(buffer),
        }
    }

    /// Runs once and waits, by the device's synchronous call.
    pub(crate) fn execute(&self, request: &Request, options: &ExecutionOptions) -> Ended {
        match self {
            Prepared::Local(model) => {
                let execute = || Ok(model.execute_for(request, options, &Caller::default()));
                match guarded(execute) {
                    Ok(result) => Ended::of_result(result, request, options),
                    Err(failure) => Ended::of(failure.status.into()),
                }
            }
            Prepared::Remote(model) => match model.execute(request, options) {
                Ok(result) => Ended::of_result(result, request, options),
                Err(missed) => Ended::missed(missed),
            },
        }
    }

    /// Runs once and waits, by the device's asynchronous call.
    pub(crate) fn execute_apart(&self, request: &Request, options: &ExecutionOptions) -> Ended {
        let result = match self {
            Prepared::Remote(model) => model.execute_apart(request, options),
            Prepared::Local(model) => {
                match Execution::start(Arc::clone(model), request.clone(), *options) {
                    Ok(execution) => Ok(execution.wait()),
                    Err(failure) => {
                        Err(Missed { error: Error::from(failure), is_under_way: false })
                    }
                }
            }
        };
        match result {
            Ok(result) => Ended::of_result(result, request, options),
            Err(missed) => Ended::missed(missed),
        }
    }

    /// Starts it behind fences, for which the device waits.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn execute_fenced(
        &self,
        request: Request,
        wait_for: &[Fence],
        options: &FencedOptions,
    ) -> std::result::Result<FencedExecution, Failure> {
        match self {
            Prepared::Local(model) => guarded(|| {
                let (model, fences) = (Arc::clone(model), wait_for.to_vec());
                model.execute_fenced(request, fences, *options, Caller::default())
            }),
            Prepared::Remote(model) => model.execute_fenced(request, wait_for, options),
        }
    }

    /// Starts a series of executions, by the deadline of the first one.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn open_burst(
        &self,
        by: Option<TimePoint>,
    ) -> std::result::Result<OpenBurst, NoBurst> {
        match self {
            Prepared::Local(model) => match guarded(|| Arc::clone(model).open_burst()) {
                Ok(burst) => Ok(OpenBurst::Local { burst, is_broken: false }),
                Err(failure) => Err(NoBurst::Refused(failure.into())),
            },
            Prepared::Remote(model) => Ok(OpenBurst::Remote(model.open_burst(by)?)),
        }
    }
}

/// A series of executions of one prepared model.
pub(crate) enum OpenBurst {
    /// Broken where the driver panicked: nobody knows what is left of it.
    Local {
        burst: Box<dyn Burst>,
        is_broken: bool,
    },
    Remote(RemoteBurst),
}

impl OpenBurst {
    /// Runs once. `None` where the burst is over and the model lives: another way may do.
    pub(crate) fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Option<Ended> {
        match self {
            OpenBurst::Local { is_broken: true, .. } => None,
            OpenBurst::Local { burst, is_broken } => {
                let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
                let executed = guarded(|| {
                    burst.execute(request, options, &mut result);
                    Ok(())
                });
                *is_broken = executed.is_err();
                Some(match executed {
                    Ok(()) => Ended::of_result(result, request, options),
                    Err(failure) => Ended::of(failure.status.into()),
                })
            }
            OpenBurst::Remote(burst) => match burst.execute(request, options) {
                Ok(None) => None,
                Ok(Some(result)) => Some(Ended::of_result(result.clone(), request, options)),
                Err(missed) => Some(Ended::missed(missed)),
            },
        }
    }
}
