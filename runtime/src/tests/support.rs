//! Devices that fail when they are told to, and small models.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use burst_driver::ReferenceDevice;
use burst_hal::*;

use crate::{Argument, Compilation, Execution, Model, OperandTypeDesc, Registry, RuntimeDevice};

/// What a device does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    Nothing,
    /// It says nothing of itself.
    Capabilities,
    /// It does not say what it supports.
    Query,
    /// It says so of one operation too many.
    Count,
    /// It does not prepare.
    Prepare(ErrorStatus),
    /// It prepares without a look at the deadline, and is done when that has passed.
    Late,
    /// It does not execute.
    Execute(ErrorStatus),
    /// It has other shapes than the model.
    Shapes,
    /// It claims that an output had too little room.
    Insufficient,
    /// It panics.
    Panic,
}

/// The reference device behind a list of operations, with faults.
pub(super) struct Faulty {
    name: String,
    inner: Arc<dyn Device>,
    takes: Vec<OperationType>,
    shared: Arc<Shared>,
}

struct Shared {
    fault: Mutex<Fault>,
    prepared: AtomicUsize,
    executed: AtomicUsize,
}

/// The test's hand on such a device.
#[derive(Clone)]
pub(super) struct Hand(Arc<Shared>);

impl Hand {
    pub(super) fn set(&self, fault: Fault) {
        *self.0.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    pub(super) fn executed(&self) -> usize {
        self.0.executed.load(Ordering::SeqCst)
    }

    pub(super) fn prepared(&self) -> usize {
        self.0.prepared.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device that runs these operations, twice as fast as the reference.
pub(super) fn faulty(name: &str, takes: &[OperationType]) -> (Arc<dyn Device>, Hand) {
    around(Arc::new(ReferenceDevice::default()), name, takes)
}

/// The same around another device.
pub(super) fn around(
    inner: Arc<dyn Device>,
    name: &str,
    takes: &[OperationType],
) -> (Arc<dyn Device>, Hand) {
    let shared = Arc::new(Shared {
        fault: Mutex::new(Fault::Nothing),
        prepared: AtomicUsize::new(0),
        executed: AtomicUsize::new(0),
    });
    let hand = Hand(Arc::clone(&shared));
    let (name, takes) = (name.to_owned(), takes.to_vec());
    (Arc::new(Faulty { name, inner, takes, shared }), hand)
}

/// Every type takes so long.
pub(super) fn capabilities_of(time: f32) -> Capabilities {
    let info = PerformanceInfo { exec_time: time, power_usage: time };
    let types = OperandType::ALL.iter().filter(|ty| **ty != OperandType::Subgraph);
    Capabilities {
        relaxed_float32_to_float16_scalar: info,
        relaxed_float32_to_float16_tensor: info,
        operand_performance: types.map(|ty| (*ty, info)).collect(),
        if_performance: info,
        while_performance: info,
    }
}

impl Device for Faulty {
    fn name(&self) -> &str {
        &self.name
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        if self.shared.fault() == Fault::Capabilities {
            return Err(Failure::general("no capabilities"));
        }
        Ok(capabilities_of(0.5))
    }

    fn supported_operations(&self, model: &burst_hal::Model) -> Result<Vec<bool>, Failure> {
        let operations = model.main.operations.iter();
        let mut supported: Vec<bool> = operations.map(|one| self.takes.contains(&one.ty)).collect();
        match self.shared.fault() {
            Fault::Query => return Err(Failure::general("no answer")),
            Fault::Count => supported.push(true),
            _ => {}
        }
        Ok(supported)
    }

    fn prepare_model(&self, model: &burst_hal::Model, options: &PrepareOptions) -> PrepareResult {
        self.shared.prepared.fetch_add(1, Ordering::SeqCst);
        if let Fault::Prepare(status) = self.shared.fault() {
            return Err(Failure::new(status, "not prepared"));
        }
        while self.shared.fault() == Fault::Late && !options.deadline.unwrap().has_passed() {
            std::thread::yield_now();
        }
        Ok(self.wrapped(self.inner.prepare_model(model, options)?))
    }

    fn cache_files_needed(&self) -> CacheFiles {
        self.inner.cache_files_needed()
    }

    fn prepare_model_caching(
        &self,
        model: &burst_hal::Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        caller: &Caller,
    ) -> PrepareResult {
        self.shared.prepared.fetch_add(1, Ordering::SeqCst);
        Ok(self.wrapped(self.inner.prepare_model_caching(model, options, cache, caller)?))
    }

    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> PrepareResult {
        Ok(self.wrapped(self.inner.prepare_model_from_cache(cache, deadline, caller)?))
    }
}

impl Faulty {
    fn wrapped(&self, model: Arc<dyn PreparedModel>) -> Arc<dyn PreparedModel> {
        Arc::new(FaultyModel { model, shared: Arc::clone(&self.shared) })
    }
}

struct FaultyModel {
    model: Arc<dyn PreparedModel>,
    shared: Arc<Shared>,
}

impl PreparedModel for FaultyModel {
    fn request_rules(&self) -> Option<&validate::RequestRules> {
        self.model.request_rules()
    }

    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.shared.executed.fetch_add(1, Ordering::SeqCst);
        let shapes = |dimensions: &[u32], is_sufficient| {
            vec![
                OutputShape { dimensions: dimensions.into(), is_sufficient };
                request.outputs.len()
            ]
        };
        let status = match self.shared.fault() {
            Fault::Execute(status) => return ExecutionResult::of(status),
            Fault::Panic => panic!("as the test wants it"),
            Fault::Shapes => (ErrorStatus::None, shapes(&[77], true)),
            Fault::Insufficient => (ErrorStatus::OutputInsufficientSize, shapes(&[4], false)),
            _ => return self.model.execute_synchronously(request, options),
        };
        let (status, output_shapes) = status;
        ExecutionResult { output_shapes, ..ExecutionResult::of(status) }
    }
}

/// The device of last resort.
pub(super) fn reference() -> Arc<RuntimeDevice> {
    static REFERENCE: OnceLock<Arc<RuntimeDevice>> = OnceLock::new();
    let make = || RuntimeDevice::reference(Arc::new(ReferenceDevice::default())).unwrap();
    Arc::clone(REFERENCE.get_or_init(make))
}

/// Two devices with one operation each, and the reference.
pub(super) struct Two {
    pub(super) registry: Registry,
    pub(super) adder: Hand,
    pub(super) multiplier: Hand,
}

/// Devices among which [`chain`] falls into three steps.
pub(super) fn two() -> Two {
    let (first, adder) = faulty("adder", &[OperationType::Add]);
    let (second, multiplier) = faulty("multiplier", &[OperationType::Mul]);
    let devices = [first, second].map(|device| RuntimeDevice::local(device).unwrap());
    let registry = Registry::of(devices.into_iter().chain([reference()]).collect());
    Two { registry, adder, multiplier }
}

/// Adds operands and operations to a model.
pub(super) struct Net(pub(super) Arc<Model>);

impl Net {
    pub(super) fn new() -> Self {
        Net(Model::new())
    }

    pub(super) fn floats(&self, dimensions: &[u32]) -> u32 {
        self.0.add_operand(&floats(dimensions)).unwrap()
    }

    pub(super) fn int(&self, value: i32) -> u32 {
        let index = self.0.add_operand(&of(OperandType::Int32)).unwrap();
        self.0.set_operand_value(signed(index), Some(&value.to_le_bytes())).unwrap();
        index
    }

    pub(super) fn constant(&self, dimensions: &[u32], values: &[f32]) -> u32 {
        let index = self.floats(dimensions);
        self.0.set_operand_value(signed(index), Some(&bytes(values))).unwrap();
        index
    }

    pub(super) fn run(&self, ty: OperationType, inputs: &[u32], output: u32) {
        self.0.add_operation(ty.code(), inputs, &[output]).unwrap();
    }

    pub(super) fn finish(self, inputs: &[u32], outputs: &[u32]) -> Arc<Model> {
        self.0.identify_inputs_and_outputs(inputs, outputs).unwrap();
        self.0.finish().unwrap();
        self.0
    }
}

pub(super) fn signed(index: u32) -> i32 {
    i32::try_from(index).unwrap()
}

pub(super) fn of(ty: OperandType) -> OperandTypeDesc {
    OperandTypeDesc { code: ty.code(), ..OperandTypeDesc::default() }
}

pub(super) fn floats(dimensions: &[u32]) -> OperandTypeDesc {
    OperandTypeDesc { dimensions: dimensions.to_vec(), ..of(OperandType::TensorFloat32) }
}

pub(super) fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(super) fn values(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}

/// `(x + x) * x + x` of four floats: ADD, MUL, ADD.
pub(super) fn chain() -> Arc<Model> {
    let net = Net::new();
    let x = net.floats(&[4]);
    let none = net.int(0);
    let (twice, square, y) = (net.floats(&[4]), net.floats(&[4]), net.floats(&[4]));
    net.run(OperationType::Add, &[x, x, none], twice);
    net.run(OperationType::Mul, &[twice, x, none], square);
    net.run(OperationType::Add, &[square, x, none], y);
    net.finish(&[x], &[y])
}

pub(super) const CHAIN_IN: [f32; 4] = [0.0, 1.0, 2.0, -3.0];
pub(super) const CHAIN_OUT: [f32; 4] = [0.0, 3.0, 10.0, 15.0];

/// `x + x` of floats whose number only the execution says.
pub(super) fn open_sum() -> Arc<Model> {
    let net = Net::new();
    let x = net.floats(&[0]);
    let none = net.int(0);
    let y = net.floats(&[0]);
    net.run(OperationType::Add, &[x, x, none], y);
    net.finish(&[x], &[y])
}

pub(super) fn compiled(model: &Arc<Model>, registry: &Registry) -> Arc<Compilation> {
    let compilation = Compilation::new(model, registry).unwrap();
    compilation.finish().unwrap();
    compilation
}

pub(super) fn heap(length: usize) -> Arc<HeapMemory> {
    Arc::new(HeapMemory::new(vec![0; length]))
}

pub(super) fn host(values: &[f32]) -> Argument {
    Argument::Host(Arc::new(HeapMemory::new(bytes(values))))
}

/// An execution of a model with one input and one output, and the memory of the latter.
pub(super) fn execution(
    compilation: &Arc<Compilation>,
    input: &[f32],
) -> (Arc<Execution>, Arc<HeapMemory>) {
    let execution = Execution::new(compilation).unwrap();
    execution.set_input(0, None, host(input)).unwrap();
    let output = heap(input.len() * 4);
    execution.set_output(0, None, Argument::Host(output.clone())).unwrap();
    (execution, output)
}

/// What a model with one input and one output makes of this.
pub(super) fn run(compilation: &Arc<Compilation>, input: &[f32]) -> crate::Result<Vec<f32>> {
    let (execution, output) = execution(compilation, input);
    execution.compute()?;
    Ok(values(&output.to_vec()))
}

/// The code that a call answered.
pub(super) fn code<T>(result: crate::Result<T>) -> ResultCode {
    result.err().map_or(ResultCode::NoError, |error| error.code)
}

pub(super) fn bools() -> OperandTypeDesc {
    OperandTypeDesc { dimensions: vec![1], ..of(OperandType::TensorBool8) }
}

/// `x` with itself by the first operation, and the result with `x` by the second.
fn branch([first, second]: [OperationType; 2]) -> Arc<Model> {
    let net = Net::new();
    let (x, none) = (net.floats(&[4]), net.int(0));
    let (between, y) = (net.floats(&[4]), net.floats(&[4]));
    net.run(first, &[x, x, none], between);
    net.run(second, &[between, x, none], y);
    net.finish(&[x], &[y])
}

/// A branch of one of two such pairs of operations, and `+ x` behind it.
pub(super) fn branching(then: [OperationType; 2], otherwise: [OperationType; 2]) -> Arc<Model> {
    let net = Net::new();
    let condition = net.0.add_operand(&bools()).unwrap();
    let (x, none) = (net.floats(&[4]), net.int(0));
    let graphs = [branch(then), branch(otherwise)].map(|model| {
        let graph = net.0.add_operand(&of(OperandType::Subgraph)).unwrap();
        net.0.set_operand_value_from_model(signed(graph), &model).unwrap();
        graph
    });
    let (chosen, y) = (net.floats(&[4]), net.floats(&[4]));
    net.run(OperationType::If, &[condition, graphs[0], graphs[1], x], chosen);
    net.run(OperationType::Add, &[chosen, x, none], y);
    net.finish(&[condition, x], &[y])
}

/// What comes of it.
pub(super) fn branched(compilation: &Arc<Compilation>, holds: bool) -> crate::Result<Vec<f32>> {
    let execution = Execution::new(compilation)?;
    let byte = HeapMemory::new(vec![u8::from(holds)]);
    execution.set_input(0, None, Argument::Host(Arc::new(byte)))?;
    execution.set_input(1, None, host(&CHAIN_IN))?;
    let output = heap(16);
    execution.set_output(0, None, Argument::Host(output.clone()))?;
    execution.compute()?;
    Ok(values(&output.to_vec()))
}
