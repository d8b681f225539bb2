//! A device that runs FLOOR in all four ways and on buffers, right or with one fault; and vectors for it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

mod buffers;
mod fenced;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use burst_hal::validate::{UnspecifiedOutputs, validate_model, validate_request};
use burst_hal::{
    Buffer, BufferRequest, Burst, Caller, Capabilities, Device, DeviceType, Dimensions,
    ErrorStatus, ExecutionCallback, ExecutionOptions, ExecutionResult, Failure, Fence,
    FencedExecution, FencedOptions, HalVersion, Model, OperandType, OperationType, OutputShape,
    PlainBurst, PrepareOptions, PreparedModel, Request, RequestPool, TimePoint, Timing,
};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

/// What is wrong with the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    WrongValue,
    NoShapes,
    WrongShape,
    TimingUnasked,
    DeviceSlowerThanDriver,
    WritesBehindTheOutput,
    IgnoresLength,
    DeclinesDynamicShapes,
    TakesAnyType,
    TakesAnyConsumers,
    RefusesWithAnotherStatus,
    TakesAnyArguments,
    TimingOnFailure,
    Lacks,
    LacksButPrepares,
    HasButRefuses,
    Panics,
    FewAnswers,
    // Of executions that nobody waits for.
    DropsCallback,
    LaunchTellsDeadline,
    LaunchTellsAnotherStatus,
    TakesWrongLaunches,
    SignalsBeforeWriting,
    InfoBeforeTheEnd,
    IgnoresFences,
    FailsFenced,
    SignalsFailures,
    TakesUnknownOutputs,
    RefusesUnknownOutputsOtherwise,
    TakesAnyFence,
    // Of deadlines and priorities.
    DeadlineIsAFailure,
    PreparingDeadlineIsAFailure,
    NoPriorities,
    UnlimitedIsMissed,
    // Of buffers.
    MakesNoBuffers,
    CallsBuffersInvalid,
    ForgetsBuffers,
    OneTokenForAll,
}

#[derive(Debug, Clone, Copy)]
pub struct Floor(pub Fault);

impl Floor {
    fn check(self, model: &Model) -> Result<(), Failure> {
        let mut model = model.clone();
        if self.0 == Fault::TakesAnyConsumers {
            let counts = model.main.count_consumers();
            let operands = model.main.operands.iter_mut();
            operands.zip(counts).for_each(|(operand, count)| operand.number_of_consumers = count);
        }
        let refused = match self.0 {
            Fault::RefusesWithAnotherStatus => ErrorStatus::GeneralFailure,
            _ => ErrorStatus::InvalidArgument,
        };
        validate_model(&model, HalVersion::LATEST).map_err(|e| Failure::new(refused, e))?;
        let float = |index: &u32| {
            let ty = model.main.operands[*index as usize].ty;
            ty == OperandType::TensorFloat32 || self.0 == Fault::TakesAnyType
        };
        let is_floor = model.main.operations.iter().all(|op| {
            let floor = op.ty == OperationType::Floor;
            floor && op.inputs.len() == 1 && op.outputs.len() == 1 && {
                op.inputs.iter().chain(&op.outputs).all(float)
            }
        });
        if is_floor { Ok(()) } else { Err(Failure::new(refused, "no FLOOR of float32")) }
    }
}

impl Device for Floor {
    fn name(&self) -> &str {
        "floor"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        Err(ErrorStatus::GeneralFailure.into())
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.check(model)?;
        let supported = !matches!(self.0, Fault::Lacks | Fault::LacksButPrepares);
        let missing = usize::from(self.0 == Fault::FewAnswers);
        Ok(vec![supported; model.main.operations.len() - missing])
    }

    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        self.check(model)?;
        if options.deadline.is_some_and(TimePoint::has_passed) {
            return Err(match self.0 {
                Fault::PreparingDeadlineIsAFailure => ErrorStatus::GeneralFailure,
                _ => ErrorStatus::MissedDeadlinePersistent,
            }
            .into());
        }
        if self.0 == Fault::NoPriorities && options.priority != burst_hal::Priority::Medium {
            return Err(ErrorStatus::GeneralFailure.into());
        }
        match self.0 {
            Fault::Lacks | Fault::HasButRefuses => Err(ErrorStatus::GeneralFailure.into()),
            fault => Ok(Arc::new(PreparedFloor(fault, model.clone()))),
        }
    }

    fn allocate(
        &self,
        request: &BufferRequest,
        _caller: &Caller,
    ) -> Result<Arc<dyn Buffer>, Failure> {
        buffers::allocate(self.0, request)
    }
}

struct PreparedFloor(Fault, Model);

impl PreparedModel for PreparedFloor {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        let checked = validate_request(request, &self.1, UnspecifiedOutputs::Allowed);
        if checked.is_err() && self.0 != Fault::TakesAnyArguments {
            return ExecutionResult::of(ErrorStatus::InvalidArgument);
        }
        if let Some(deadline) = options.deadline
            && (deadline.has_passed() || self.0 == Fault::UnlimitedIsMissed)
        {
            return ExecutionResult::of(match self.0 {
                Fault::DeadlineIsAFailure => ErrorStatus::GeneralFailure,
                _ => ErrorStatus::MissedDeadlineTransient,
            });
        }
        let mut result = self.run(request, options);
        if self.0 == Fault::TimingOnFailure
            && options.measure_timing
            && result.status != ErrorStatus::None
        {
            result.timing = Timing { time_on_device_us: 1, time_in_driver_us: 1 };
        }
        result
    }

    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        options: ExecutionOptions,
        _caller: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        if self.0 == Fault::DropsCallback {
            return Ok(());
        }
        let result = self.execute_synchronously(&request, &options);
        let status = result.status;
        callback(result);
        match (status, self.0) {
            (ErrorStatus::InvalidArgument, Fault::TakesWrongLaunches) => Ok(()),
            (ErrorStatus::InvalidArgument, Fault::LaunchTellsAnotherStatus) => {
                Err(ErrorStatus::GeneralFailure.into())
            }
            (ErrorStatus::InvalidArgument, _) => Err(status.into()),
            (ErrorStatus::MissedDeadlineTransient, Fault::LaunchTellsDeadline) => {
                Err(status.into())
            }
            _ => Ok(()),
        }
    }

    fn execute_fenced(
        self: Arc<Self>,
        request: Request,
        wait_for: Vec<Fence>,
        options: FencedOptions,
        _caller: Caller,
    ) -> Result<FencedExecution, Failure> {
        let unspecified = match self.0 {
            Fault::TakesUnknownOutputs | Fault::RefusesUnknownOutputsOtherwise => {
                UnspecifiedOutputs::Allowed
            }
            _ => UnspecifiedOutputs::Refused,
        };
        let checked = validate_request(&request, &self.1, unspecified);
        if checked.is_err() && self.0 != Fault::TakesAnyArguments {
            return Err(ErrorStatus::InvalidArgument.into());
        }
        if self.0 == Fault::RefusesUnknownOutputsOtherwise
            && validate_request(&request, &self.1, UnspecifiedOutputs::Refused).is_err()
        {
            return Err(ErrorStatus::GeneralFailure.into());
        }
        let fault = self.0;
        let run = move || self.run(&request, &options.execution);
        fenced::start(fault, wait_for, options.execution.measure_timing, run)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        Ok(Box::new(PlainBurst::new(self)))
    }
}

impl PreparedFloor {
    fn run(&self, request: &Request, options: &ExecutionOptions) -> ExecutionResult {
        let fault = self.0;
        assert_ne!(fault, Fault::Panics, "as it was told to");
        let (Some(input), Some(output)) = (request.inputs.first(), request.outputs.first()) else {
            return ExecutionResult::of(ErrorStatus::None);
        };
        let graph = &self.1.main;
        let dimensions = graph.operands[graph.input_indexes[0] as usize].dimensions.clone();
        let declared = &graph.operands[graph.output_indexes[0] as usize].dimensions;
        let is_dynamic = declared.contains(&0);
        if is_dynamic && fault == Fault::DeclinesDynamicShapes {
            return ExecutionResult::of(ErrorStatus::GeneralFailure);
        }
        let pool = |index: u32| &request.pools[index as usize];
        let mut bytes = vec![0; input.location.length as usize];
        match pool(input.location.pool_index) {
            RequestPool::Memory(memory) => {
                memory.read(input.location.offset.into(), &mut bytes).unwrap();
            }
            RequestPool::Token(token) => bytes = buffers::value(*token),
        }
        let shift = if fault == Fault::WrongValue { 1.0 } else { 0.0 };
        let floors = bytes.chunks_exact(4).flat_map(|b| {
            (f32::from_ne_bytes([b[0], b[1], b[2], b[3]]).floor() + shift).to_ne_bytes()
        });
        let floors: Vec<u8> = floors.collect();
        let is_buffer = matches!(pool(output.location.pool_index), RequestPool::Token(_));
        let fits = is_buffer || output.location.length as usize >= floors.len();
        let shape = |dimensions: Dimensions| {
            vec![OutputShape { dimensions, is_sufficient: fits || fault == Fault::IgnoresLength }]
        };
        let mut result = ExecutionResult::of(ErrorStatus::None);
        result.output_shapes = match fault {
            Fault::NoShapes => Vec::new(),
            Fault::WrongShape => shape(dimensions.iter().rev().copied().collect()),
            _ => shape(dimensions),
        };
        if !fits && fault != Fault::IgnoresLength {
            if fault == Fault::WritesBehindTheOutput {
                write(pool(output.location.pool_index), output.location.offset, &floors);
            }
            result.status = ErrorStatus::OutputInsufficientSize;
            return result;
        }
        write(pool(output.location.pool_index), output.location.offset, &floors);
        if options.measure_timing || fault == Fault::TimingUnasked {
            let slow = fault == Fault::DeviceSlowerThanDriver;
            let time_on_device_us = if slow { 3 } else { 1 };
            result.timing = Timing { time_on_device_us, time_in_driver_us: 2 };
        }
        result
    }
}

fn write(pool: &RequestPool, offset: u32, bytes: &[u8]) {
    match pool {
        RequestPool::Memory(memory) => memory.write(offset.into(), bytes).unwrap(),
        RequestPool::Token(token) => buffers::set_value(*token, bytes),
    }
}

/// A test of FLOOR in these suites: 2.5 and -0.25 become 2 and -1, and a third value of 7 stays.
pub fn floor_test(name: &str, suites: &[&str]) -> Value {
    let operand = |lifetime: &str, consumers: u32, offset: usize| {
        json!({
            "type": "TENSOR_FLOAT32", "dims": [3, 1], "lifetime": lifetime,
            "consumers": consumers, "data": [offset, 12],
        })
    };
    json!({
        "name": name, "relaxed": false, "expect_failure": false, "multinomial_tolerance": 0.0,
        "main": {
            "operands": [operand("SUBGRAPH_INPUT", 1, 0), operand("SUBGRAPH_OUTPUT", 0, 12)],
            "operations": [{ "type": "FLOOR", "inputs": [0], "outputs": [1] }],
            "inputs": [0],
            "outputs": [1],
        },
        "referenced": [],
        "vts": suites,
    })
}

/// The bytes of [`floor_test`].
pub fn floor_blob() -> Vec<u8> {
    [2.5f32, -0.25, 7.0, 2.0, -1.0, 7.0].iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// Writes a spec.
pub fn write_spec(folder: &Path, name: &str, tests: &[Value], blob: &[u8]) {
    let folder = folder.join("V1_0");
    std::fs::create_dir_all(&folder).unwrap();
    let pack = |path: &str, bytes: &[u8]| {
        let file = std::fs::File::create(folder.join(path)).unwrap();
        let mut packed = GzEncoder::new(file, Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap();
    };
    let document = json!({ "format": 1, "spec": name, "tests": tests });
    pack(&format!("{name}.json.gz"), document.to_string().as_bytes());
    pack(&format!("{name}.bin.gz"), blob);
}
