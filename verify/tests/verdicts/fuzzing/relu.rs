//! A device that runs one RELU, right or with one fault.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_hal::validate::{Direction, RequestRules, UnspecifiedOutputs, validate_model};
use burst_hal::{
    Burst, Caller, Capabilities, Device, Dimensions, ErrorStatus, ExecutionCallback, ExecutionInfo,
    ExecutionOptions, ExecutionResult, Failure, Fence, FencedExecution, FencedInfo, FencedOptions,
    HalVersion, MemoryCharge, Model, OperandType, OperationType, OutputShape, PerformanceInfo,
    PrepareOptions, PrepareResult, PreparedModel, Request, RequestPool, Timing, forms, performance,
};

/// What is wrong with the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    PanicsWhenAsked,
    FewAnswers,
    AnswersOtherwise,
    TakesIllegal,
    RefusesOtherwise,
    NoFigures,
    HasButRefuses,
    LacksButPrepares,
    PanicsOnNan,
    LeavesAByte,
    WritesBehind,
    WritesInputs,
    WrongShape,
    IgnoresRoom,
    NoShapes,
    TimesUnasked,
    TakesAnyRequest,
    DiffersInBursts,
    DropsCallback,
    LaunchSaysOtherwise,
    FenceOfNothing,
    KeepsCharge,
}

#[derive(Debug)]
pub(super) struct Relu {
    fault: Fault,
    asked: AtomicU64,
}

impl Relu {
    pub(super) fn new(fault: Fault) -> Self {
        Relu { fault, asked: AtomicU64::new(0) }
    }

    /// For each operation whether it runs here.
    fn survey(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        let refused = match self.fault {
            Fault::RefusesOtherwise => ErrorStatus::GeneralFailure,
            _ => ErrorStatus::InvalidArgument,
        };
        if self.fault != Fault::TakesIllegal {
            validate_model(model, HalVersion::LATEST).map_err(|e| Failure::new(refused, e))?;
        }
        let graph = &model.main;
        let operations = graph.operations.iter();
        if self.fault != Fault::TakesIllegal {
            for operation in operations.clone() {
                if forms::since(model, graph, operation).is_none() {
                    return Err(Failure::invalid("an operation of other operands"));
                }
            }
        }
        let shape = |list: &[u32]| {
            let operand = graph.operands.get(*list.first()? as usize)?;
            (operand.ty == OperandType::TensorFloat32).then(|| operand.dimensions.clone())
        };
        let runs = |operation: &burst_hal::Operation| {
            let (inputs, outputs) = (&operation.inputs, &operation.outputs);
            let is_relu = operation.ty == OperationType::Relu
                && graph.input_indexes == *inputs
                && graph.output_indexes == *outputs;
            is_relu && shape(inputs).is_some() && shape(outputs).is_some()
        };
        let supported: Vec<bool> =
            operations.map(|operation| graph.operations.len() == 1 && runs(operation)).collect();
        if supported == [true] {
            let (from, to) = (shape(&graph.input_indexes), shape(&graph.output_indexes));
            if !from.zip(to).is_some_and(|(from, to)| agree(&from, &to)) {
                return Err(Failure::invalid("a result of another shape"));
            }
        }
        Ok(supported)
    }
}

/// Whether one of two shapes can be the other.
fn agree(one: &[u32], other: &[u32]) -> bool {
    let alike = |(one, other): (&u32, &u32)| *one == 0 || *other == 0 || one == other;
    one.is_empty()
        || other.is_empty()
        || (one.len() == other.len() && one.iter().zip(other).all(alike))
}

impl Device for Relu {
    fn name(&self) -> &str {
        "relu"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        let exec_time = if self.fault == Fault::NoFigures { 0.0 } else { 1.0 };
        let info = PerformanceInfo { exec_time, power_usage: 1.0 };
        let operand_performance = performance::of_version(HalVersion::LATEST, info);
        Ok(Capabilities { operand_performance, ..Capabilities::default() })
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        assert!(self.fault != Fault::PanicsWhenAsked, "as it was told to");
        let mut supported = self.survey(model)?;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Fault::FewAnswers => supported.truncate(supported.len().saturating_sub(1)),
            Fault::AnswersOtherwise => supported.fill(asked.is_multiple_of(2)),
            Fault::LacksButPrepares => supported.fill(false),
            _ => {}
        }
        Ok(supported)
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        self.prepare_model_for(model, options, &Caller::default())
    }

    fn prepare_model_for(
        &self,
        model: &Model,
        _: &PrepareOptions,
        caller: &Caller,
    ) -> PrepareResult {
        let supported = self.survey(model)?;
        if supported != [true] || self.fault == Fault::HasButRefuses {
            return Err(Failure::general("not one RELU"));
        }
        let charge = caller.charge(64)?;
        if self.fault == Fault::KeepsCharge {
            std::mem::forget(caller.charge(7)?);
        }
        let mut rules = RequestRules::new(model)?;
        rules.require(Direction::Input, 0);
        let operand = |index: u32| model.main.operands[index as usize].dimensions.clone();
        let input = operand(model.main.input_indexes[0]);
        let output = operand(model.main.output_indexes[0]);
        let fault = self.fault;
        Ok(Arc::new(Ready { fault, rules, input, output, _charge: charge }))
    }
}

struct Ready {
    fault: Fault,
    rules: RequestRules,
    input: Dimensions,
    output: Dimensions,
    _charge: MemoryCharge,
}

impl Ready {
    fn run(&self, request: &Request, options: &ExecutionOptions) -> ExecutionResult {
        let illegal = self.rules.check(request, UnspecifiedOutputs::Allowed).is_err();
        if illegal {
            return match self.fault {
                Fault::TakesAnyRequest => ExecutionResult::of(ErrorStatus::None),
                _ => ExecutionResult::of(ErrorStatus::InvalidArgument),
            };
        }
        match self.compute(request) {
            Ok(mut result) => {
                let is_timed = options.measure_timing && result.status == ErrorStatus::None;
                if is_timed || self.fault == Fault::TimesUnasked {
                    result.timing = Timing { time_on_device_us: 1, time_in_driver_us: 2 };
                }
                result
            }
            Err(failure) => ExecutionResult::of(failure.status),
        }
    }

    /// A legal request.
    fn compute(&self, request: &Request) -> Result<ExecutionResult, Failure> {
        let (from, to) = (&request.inputs[0], &request.outputs[0]);
        let shape = match from.dimensions.is_empty() {
            true => self.input.clone(),
            false => from.dimensions.clone(),
        };
        if !agree(&self.output, &shape) {
            return Err(Failure::general("a result of another shape"));
        }
        let pool = |index: u32| match &request.pools[index as usize] {
            RequestPool::Memory(pool) => Ok(pool),
            RequestPool::Token(_) => Err(Failure::invalid("no such buffer")),
        };
        let (source, target) = (pool(from.location.pool_index)?, pool(to.location.pool_index)?);
        let range = from.location.range_in(source.len()).unwrap();
        let length = OperandType::TensorFloat32.byte_length(&shape).unwrap();
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        source.read(range.start, &mut bytes).map_err(Failure::general)?;
        for value in bytes.as_chunks_mut::<4>().0 {
            let number = f32::from_le_bytes(*value);
            assert!(self.fault != Fault::PanicsOnNan || !number.is_nan(), "not a number");
            *value = number.max(0.0).to_le_bytes();
        }
        let room = to.location.range_in(target.len()).unwrap();
        let fits = room.end - room.start >= length;
        let is_sufficient = fits || self.fault == Fault::IgnoresRoom;
        let told = match self.fault {
            Fault::WrongShape => shape.iter().map(|size| size + 1).collect(),
            _ => shape,
        };
        let shapes = vec![OutputShape { dimensions: told, is_sufficient }];
        let output_shapes = if self.fault == Fault::NoShapes { Vec::new() } else { shapes };
        let mut result = ExecutionResult::of(ErrorStatus::None);
        result.output_shapes = output_shapes;
        if !is_sufficient {
            result.status = ErrorStatus::OutputInsufficientSize;
            return Ok(result);
        }
        if fits {
            let left = usize::from(self.fault == Fault::LeavesAByte);
            let written = &bytes[..bytes.len() - left];
            target.write(room.start, written).map_err(Failure::general)?;
        }
        match self.fault {
            Fault::WritesBehind => target.write(room.end, &[0]).map_err(Failure::general)?,
            Fault::WritesInputs => source.write(range.start, &[9]).map_err(Failure::general)?,
            _ => {}
        }
        Ok(result)
    }
}

impl PreparedModel for Ready {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.run(request, options)
    }

    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        options: ExecutionOptions,
        _: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        let result = self.run(&request, &options);
        let status = result.status;
        match self.fault {
            Fault::DropsCallback => drop(callback),
            _ => callback(result),
        }
        match status {
            ErrorStatus::InvalidArgument => Err(status.into()),
            _ if self.fault == Fault::LaunchSaysOtherwise => {
                Err(ErrorStatus::GeneralFailure.into())
            }
            _ => Ok(()),
        }
    }

    fn execute_fenced(
        self: Arc<Self>,
        request: Request,
        _: Vec<Fence>,
        options: FencedOptions,
        _: Caller,
    ) -> Result<FencedExecution, Failure> {
        self.rules.check(&request, UnspecifiedOutputs::Refused)?;
        let status = self.run(&request, &options.execution).status;
        let ended = (self.fault != Fault::FenceOfNothing).then_some(status);
        // A pipe without a writer: done with a byte, else failed.
        let (read, mut write) = std::io::pipe().map_err(Failure::general)?;
        if status == ErrorStatus::None {
            std::io::Write::write_all(&mut write, &[1]).map_err(Failure::general)?;
        }
        let fence = Some(Fence::from(OwnedFd::from(read)));
        Ok(FencedExecution { fence, info: Arc::new(Info(ended)) })
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.rules)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        Ok(Box::new(ReluBurst(self)))
    }
}

struct ReluBurst(Arc<Ready>);

impl Burst for ReluBurst {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        *result = self.0.run(request, options);
        if self.0.fault == Fault::DiffersInBursts && result.status == ErrorStatus::None {
            result.reset(ErrorStatus::GeneralFailure);
        }
    }
}

/// How a fenced execution ended.
struct Info(Option<ErrorStatus>);

impl FencedInfo for Info {
    fn execution_info(&self) -> Result<ExecutionInfo, Failure> {
        let status = self.0.ok_or_else(|| Failure::general("it has not ended"))?;
        let none = Timing::UNAVAILABLE;
        Ok(ExecutionInfo { status, timing_launched: none, timing_fenced: none })
    }
}
