//! One step on its device; and on the device of last resort, where that may be.

use std::sync::Arc;

use burst_hal::{
    Dimensions, ExecutionOptions, HalVersion, HeapMemory, Model, OperationType, OutputShape, Pool,
    Request, ResultCode, TimePoint, Timing,
};

use super::job::RunOptions;
use super::judge::{Verdict, judge};
use super::request::request;
use super::value::{Bytes, Value};
use crate::compiled::{Body, Compiled, DeviceCode, Fallback, Port};
use crate::devices::RuntimeDevice;
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::prepared::{Ended, Prepared};

/// Ports, and a value for each.
type Arguments<'a> = (&'a [Port], &'a [Value]);

/// Why the steps do not go on.
#[derive(Debug)]
pub(super) enum Stop {
    /// That is how it ended.
    Final(ResultCode),
    /// An output of the graph has too little room: the shapes of all of them, as far as known.
    Insufficient(Vec<OutputShape>),
    /// The device of last resort may still run the whole model.
    Whole(ResultCode),
}

/// What a step gave.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) dimensions: Vec<Dimensions>,
    pub(super) timing: Timing,
}

/// What steps are executed with.
pub(super) struct Steps<'a> {
    pub(super) compiled: &'a Compiled,
    pub(super) frame: &'a mut Frame,
    pub(super) options: RunOptions,
    /// Whether a loop or a branch is being interpreted.
    pub(super) is_interpreting: bool,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        tracing::debug!(%error, "the execution failed");
        Stop::Final(error.code)
    }
}

impl Steps<'_> {
    /// Whether there is time left.
    pub(super) fn check_deadline(&self) -> std::result::Result<(), Stop> {
        match self.options.deadline.is_some_and(TimePoint::has_passed) {
            true => Err(Stop::Final(ResultCode::MissedDeadlineTransient)),
            false => Ok(()),
        }
    }

    /// Runs one step; where its device fails and may be replaced, on the device of last resort.
    pub(super) fn device(
        &mut self,
        step: &DeviceCode,
        inputs: &[Value],
        outputs: &[Value],
    ) -> std::result::Result<Done, Stop> {
        self.check_deadline()?;
        let prepared = step.ready(&self.compiled.options, self.options.deadline);
        let asked = request((&step.inputs, inputs), (&step.outputs, outputs));
        let ended = match inputs.iter().chain(outputs).all(|value| value.may_go_to(&prepared)) {
            true => self.execute(&step.device, &prepared, Some(step.number), &asked),
            false => Ended::of(ResultCode::DeadObject),
        };
        if ended.is_under_way {
            self.frame.spoil();
        }
        let code = match judge(&ended, &step.outputs, outputs) {
            Verdict::Done(dimensions) => return Ok(Done { dimensions, timing: ended.timing }),
            Verdict::Insufficient(shapes) => return Err(Stop::Insufficient(shapes)),
            Verdict::Failed(code) => code,
        };
        tracing::info!(device = step.device.name(), %code, "a step has failed");
        if self.is_final(code, &step.model) {
            return Err(Stop::Final(code));
        }
        let compiled = self.compiled;
        let Some(fallback) = &compiled.fallback else { return Err(Stop::Final(code)) };
        let is_whole = matches!(compiled.body, Body::Simple(_));
        if step.device.is_reference() {
            return Err(if is_whole { Stop::Final(code) } else { Stop::Whole(code) });
        }
        let prepared = if is_whole { fallback.whole(&step.model) } else { fallback.step(step) };
        let (inputs, outputs) = ((&*step.inputs, inputs), (&*step.outputs, outputs));
        match self.last_resort(fallback, prepared, inputs, outputs) {
            Err(Stop::Final(code)) if !is_whole && !self.is_final(code, &step.model) => {
                Err(Stop::Whole(code))
            }
            ended => ended,
        }
    }

    /// Runs the whole model on the device of last resort.
    pub(super) fn whole(
        &mut self,
        code: ResultCode,
        inputs: &[Value],
        outputs: &[Value],
    ) -> std::result::Result<Done, Stop> {
        let compiled = self.compiled;
        let Some(fallback) = &compiled.fallback else { return Err(Stop::Final(code)) };
        let prepared = fallback.whole(&compiled.model);
        let (inputs, outputs) = ((&*compiled.inputs, inputs), (&*compiled.outputs, outputs));
        self.last_resort(fallback, prepared, inputs, outputs)
    }

    /// Runs a model on the device of last resort, for which buffers of another device are copied.
    fn last_resort(
        &mut self,
        fallback: &Fallback,
        prepared: Result<Prepared>,
        (input_ports, inputs): Arguments<'_>,
        (output_ports, outputs): Arguments<'_>,
    ) -> std::result::Result<Done, Stop> {
        self.check_deadline()?;
        let prepared = prepared?;
        let here_inputs = here(input_ports, inputs, true)?;
        let here_outputs = here(output_ports, outputs, false)?;
        let asked = request((input_ports, &here_inputs), (output_ports, &here_outputs));
        let ended = self.execute(&fallback.device, &prepared, None, &asked);
        match judge(&ended, output_ports, &here_outputs) {
            Verdict::Done(dimensions) => {
                for ((copy, output), dimensions) in
                    here_outputs.into_iter().zip(outputs).zip(&dimensions)
                {
                    if let (Value::Bytes(bytes), Value::Buffer(..)) = (&copy, output) {
                        let length = bytes.length.into();
                        copy.clone().with_dimensions(dimensions.clone()).copy_to(output, length)?;
                    }
                }
                Ok(Done { dimensions, timing: ended.timing })
            }
            Verdict::Insufficient(shapes) => Err(Stop::Insufficient(shapes)),
            Verdict::Failed(code) => Err(Stop::Final(code)),
        }
    }

    /// Whether nobody else would do better: there is no time left, or the model itself may take it all.
    fn is_final(&self, code: ResultCode, model: &Model) -> bool {
        let is_late = matches!(
            code,
            ResultCode::MissedDeadlineTransient | ResultCode::MissedDeadlinePersistent
        );
        let has_loop = || {
            let graphs = std::iter::once(&model.main).chain(&model.referenced);
            let mut operations = graphs.flat_map(|graph| &graph.operations);
            operations.any(|operation| operation.ty == OperationType::While)
        };
        let no_time_left = self.options.deadline.is_some_and(TimePoint::has_passed);
        is_late && (no_time_left || self.is_interpreting || has_loop())
    }

    /// One execution, in the way that suits the device: burst, synchronous call, asynchronous call.
    fn execute(
        &mut self,
        device: &RuntimeDevice,
        prepared: &Prepared,
        step: Option<usize>,
        request: &Request,
    ) -> Ended {
        let RunOptions { measure, deadline, loop_timeout, all_bursts, switches } = self.options;
        let options = ExecutionOptions { measure_timing: measure, deadline, loop_timeout };
        // A service has bursts whatever its device speaks.
        let has_bursts = all_bursts && device.hal_version() >= HalVersion::V1_2;
        let wants_burst = has_bursts || matches!(prepared, Prepared::Remote(_));
        if let Some(step) = step.filter(|_| wants_burst) {
            match self.frame.burst(step, prepared, deadline) {
                Ok(Some(burst)) => match burst.execute(request, &options) {
                    Some(ended) => return ended,
                    None => self.frame.drop_burst(step),
                },
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(step, %error, "the execution was not begun");
                    return Ended::of(error.code);
                }
            }
        }
        let is_synchronous = match device.is_reference() {
            true => switches.sync_reference,
            false => switches.sync_devices,
        };
        match is_synchronous {
            true => prepared.execute(request, &options),
            false => prepared.execute_apart(request, &options),
        }
    }
}

/// The same values, with those in buffers of a device in memory of this process.
fn here(ports: &[Port], values: &[Value], is_input: bool) -> Result<Vec<Value>> {
    let here = |(port, value): (&Port, &Value)| {
        let Value::Buffer(buffer, dimensions) = value else { return Ok(value.clone()) };
        let bytes = port.bytes(dimensions).and_then(|bytes| u32::try_from(bytes).ok());
        let length = bytes.ok_or_else(|| Error::op_failed("a buffer of unknown size"))?;
        let pool: Pool = Arc::new(HeapMemory::new(vec![0; length as usize]));
        if is_input {
            buffer.copy_to(&pool)?;
        }
        Ok(Value::Bytes(Bytes { pool, offset: 0, length, dimensions: dimensions.clone() }))
    };
    ports.iter().zip(values).map(here).collect()
}
