//! What the tests of client and service share: a fake device, a service around it, and a client
//! that can say anything.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "a module of several tests, each of which uses its part"
)]
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

pub mod raw;
pub mod tour;

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burst_client::{Client, Deadline};
use burst_hal::validate::RequestRules;
use burst_hal::{
    Buffer, BufferHandle, BufferRequest, BufferRole, BufferRoles, BufferTracker, Burst,
    BurstExecutor, Caller, Capabilities, CompilationCache, DataLocation, Device, DeviceType,
    ErrorStatus, ExecutionOptions, ExecutionResult, Failure, MemoryCharge, Model, ModelBuilder,
    OperandType, OperationType, OutputShape, OutputSpec, PerformanceInfo, PlainBurst, Pool,
    PrepareOptions, PreparedModel, Request, RequestArgument, RequestBuffers, RequestPool,
    TimePoint, Timing,
};
use burst_server::{Service, ServiceOptions};

/// Turns a hang into a failure.
pub const LONG: Duration = Duration::from_secs(60);

/// A request of the fake device: 16 bytes in at the beginning of `memory`, 16 out behind them.
pub fn request_in(memory: &Pool) -> Request {
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 16 },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(16)],
        pools: vec![RequestPool::Memory(Pool::clone(memory))],
    }
}

/// The same with a memory of its own for each: 16 bytes from one, 16 into the other.
pub fn request_between(input: &Pool, output: &Pool) -> Request {
    let argument = |pool_index| RequestArgument {
        location: DataLocation { pool_index, offset: 0, length: 16 },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(1)],
        pools: [input, output].map(|pool| RequestPool::Memory(Pool::clone(pool))).to_vec(),
    }
}

/// What is asked for where a buffer is to be the first input of the model, and its first output.
#[must_use]
pub fn buffer_for(model: &Arc<dyn PreparedModel>) -> BufferRequest {
    let role = BufferRole { model: 0, position: 0, frequency: 1.0 };
    BufferRequest {
        models: vec![Arc::clone(model)],
        inputs: vec![role],
        outputs: vec![role],
        ..BufferRequest::default()
    }
}

/// A request whose input is all of one pool, and its output all of another one.
#[must_use]
pub fn request_whole(input: RequestPool, output: RequestPool) -> Request {
    let argument = |pool_index| RequestArgument {
        location: DataLocation { pool_index, offset: 0, length: 0 },
        ..RequestArgument::default()
    };
    Request { inputs: vec![argument(0)], outputs: vec![argument(1)], pools: vec![input, output] }
}

/// A deadline that only a hang misses.
#[must_use]
pub fn long() -> Deadline {
    Deadline::after(LONG)
}

/// What the fake device does with an execution.
#[derive(Debug, Default)]
pub struct Controls {
    /// Executions begun.
    pub begun: AtomicU64,
    /// Answer that the output is too small.
    pub insufficient: AtomicBool,
    /// Panic.
    pub panic: AtomicBool,
    /// Answer a question about operations with this many more than the model has.
    pub more_operations: AtomicU64,
    /// Bring an executor for bursts; whether it takes buffers.
    pub executor: Mutex<Option<bool>>,
    /// Claim this many microseconds on the device.
    pub device_us: AtomicU64,
    /// The device's buffers.
    pub buffers: BufferTracker<Vec<u8>>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    closed: bool,
    /// Threads that wait for anything: notifying nobody is a system call all the same.
    waiting: u32,
}

impl Controls {
    /// Executions wait from now on until [`Controls::open_gate`].
    pub fn close_gate(&self) {
        self.gate.lock().unwrap().closed = true;
    }

    /// Executions go on.
    pub fn open_gate(&self) {
        self.gate.lock().unwrap().closed = false;
        self.changed.notify_all();
    }

    /// Waits until so many executions have begun.
    pub fn wait_begun(&self, count: u64) {
        let gate = self.gate.lock().unwrap();
        self.wait_while(gate, |_| self.begun.load(Ordering::SeqCst) < count);
    }

    fn pass(&self) {
        let gate = self.gate.lock().unwrap();
        self.begun.fetch_add(1, Ordering::SeqCst);
        if gate.waiting > 0 {
            self.changed.notify_all();
        }
        self.wait_while(gate, |gate| gate.closed);
    }

    fn wait_while(&self, mut gate: MutexGuard<'_, Gate>, is_so: impl Fn(&Gate) -> bool) {
        while is_so(&gate) {
            gate.waiting += 1;
            let (next, waited) = self.changed.wait_timeout(gate, LONG).unwrap();
            assert!(!waited.timed_out(), "nothing happened");
            gate = next;
            gate.waiting -= 1;
        }
    }
}

/// An input at which the fake device panics, for a service that the test cannot reach otherwise.
pub const PANIC_INPUT: &[u8; 16] = b"panic when read!";

/// A device that adds 1 to every byte of each input and writes it to the output of the same
/// number.
#[derive(Debug, Default)]
pub struct FakeDevice(pub Arc<Controls>);

impl Device for FakeDevice {
    fn name(&self) -> &str {
        "fake"
    }

    fn version_string(&self) -> &str {
        "fake-1"
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        let info = PerformanceInfo { exec_time: 0.5, power_usage: 2.0 };
        Ok(Capabilities {
            relaxed_float32_to_float16_scalar: info,
            relaxed_float32_to_float16_tensor: info,
            operand_performance: vec![(OperandType::TensorFloat32, info)],
            if_performance: PerformanceInfo::UNSUPPORTED,
            while_performance: info,
        })
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        let more = usize::try_from(self.0.more_operations.load(Ordering::SeqCst)).unwrap();
        let runs = model.main.operations.iter().map(|one| one.ty == OperationType::Relu);
        Ok(runs.chain(std::iter::repeat_n(true, more)).collect())
    }

    fn prepare_model(
        &self,
        model: &Model,
        _: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        if !self.supported_operations(model)?.into_iter().all(|runs| runs) {
            return Err(Failure::invalid("the fake device runs RELU alone"));
        }
        Ok(Arc::new(FakeModel(Arc::clone(&self.0), RequestRules::new(model)?)))
    }

    /// Whatever the files hold.
    fn prepare_model_from_cache(
        &self,
        _: &CompilationCache,
        _: Option<TimePoint>,
        _: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        self.prepare_model(&model(), &PrepareOptions::default())
    }

    fn allocate(
        &self,
        request: &BufferRequest,
        caller: &Caller,
    ) -> Result<Arc<dyn Buffer>, Failure> {
        let roles = BufferRoles::new(request)?;
        let bytes = roles.operand().bytes().ok_or_else(|| Failure::general("how long?"))?;
        let charge = caller.charge(bytes)?;
        let zeros = vec![0; usize::try_from(bytes).unwrap()];
        let handle = self.0.buffers.add(roles, zeros);
        Ok(Arc::new(FakeBuffer { handle, _charge: charge }))
    }
}

/// A buffer of the fake device.
struct FakeBuffer {
    handle: BufferHandle<Vec<u8>>,
    _charge: MemoryCharge,
}

impl Buffer for FakeBuffer {
    fn token(&self) -> u32 {
        self.handle.token()
    }

    fn copy_to(&self, destination: &Pool) -> Result<(), Failure> {
        self.handle.check_copy_to(&self.handle.lock(), destination.len())?;
        let bytes = self.handle.lock().storage.clone();
        destination.write(0, &bytes).map_err(Failure::general)
    }

    fn copy_from(&self, source: &Pool, dimensions: &[u32]) -> Result<(), Failure> {
        self.handle.lock().clear();
        let dimensions = self.handle.check_copy_from(source.len(), dimensions)?;
        let mut bytes = vec![0; usize::try_from(source.len()).unwrap()];
        source.read(0, &mut bytes).map_err(Failure::general)?;
        let mut state = self.handle.lock();
        state.storage = bytes;
        state.set(dimensions);
        Ok(())
    }
}

struct FakeModel(Arc<Controls>, RequestRules);

impl PreparedModel for FakeModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        let controls = &self.0;
        let buffers = match controls.buffers.find(self, request) {
            Ok(buffers) => buffers,
            Err(refused) => return ExecutionResult::of(refused.status),
        };
        controls.pass();
        assert!(!controls.panic.load(Ordering::SeqCst), "asked to panic");
        let mut result = ExecutionResult::of(ErrorStatus::None);
        let sufficient = !controls.insufficient.load(Ordering::SeqCst);
        if !sufficient {
            result.status = ErrorStatus::OutputInsufficientSize;
        }
        for (input, output) in request.inputs.iter().zip(&request.outputs) {
            result.output_shapes.push(OutputShape {
                dimensions: [1, 2, 3].as_slice().into(),
                is_sufficient: sufficient,
            });
            if sufficient && add_one(request, &buffers, input, output).is_err() {
                return ExecutionResult::of(ErrorStatus::GeneralFailure);
            }
        }
        if sufficient {
            result.output_shapes.clear();
        }
        let _ = options;
        let device = controls.device_us.load(Ordering::SeqCst);
        result.timing = Timing { time_on_device_us: device, time_in_driver_us: device };
        result
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.1)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        Ok(Box::new(PlainBurst::new(self)))
    }

    fn open_executor(self: Arc<Self>) -> Result<Option<Box<dyn BurstExecutor>>, Failure> {
        let asked_for = *self.0.executor.lock().unwrap();
        Ok(asked_for.map(|takes_buffers| {
            let (model, added) = (self, HashSet::new());
            Box::new(FakeExecutor { model, takes_buffers, added }) as Box<dyn BurstExecutor>
        }))
    }
}

/// Executes as its model does, and knows of which slots it was told.
struct FakeExecutor {
    model: Arc<FakeModel>,
    takes_buffers: bool,
    added: HashSet<i32>,
}

impl BurstExecutor for FakeExecutor {
    fn is_cached(&self, slot: i32) -> bool {
        self.added.contains(&slot)
    }

    fn add(&mut self, slot: i32, _: &Pool) -> Result<(), Failure> {
        assert!(self.added.insert(slot), "slot {slot} is there");
        Ok(())
    }

    fn remove(&mut self, slot: i32) {
        self.added.remove(&slot);
    }

    fn takes_buffers(&self) -> bool {
        self.takes_buffers
    }

    fn execute(
        &mut self,
        request: &Request,
        slots: &[i32],
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        for (slot, pool) in slots.iter().zip(&request.pools) {
            let is_memory = matches!(pool, RequestPool::Memory(_));
            assert_eq!(self.added.contains(slot), is_memory, "slot {slot}");
        }
        *result = self.model.execute_synchronously(request, options);
    }
}

fn add_one(
    request: &Request,
    buffers: &RequestBuffers<Vec<u8>>,
    input: &burst_hal::RequestArgument,
    output: &burst_hal::RequestArgument,
) -> Result<(), burst_hal::MemoryError> {
    let pool = |index: u32| match &request.pools[index as usize] {
        RequestPool::Memory(memory) => memory,
        RequestPool::Token(_) => unreachable!("it is among the buffers"),
    };
    let mut bytes = vec![0; input.location.length as usize];
    match buffers.of(input) {
        Some(buffer) => bytes.clone_from(&buffer.lock().storage),
        None => pool(input.location.pool_index).read(input.location.offset.into(), &mut bytes)?,
    }
    assert!(bytes != PANIC_INPUT, "asked to panic");
    for byte in &mut bytes {
        *byte = byte.wrapping_add(1);
    }
    let Some(buffer) = buffers.of(output) else {
        return pool(output.location.pool_index).write(output.location.offset.into(), &bytes);
    };
    let mut state = buffer.lock();
    state.storage = bytes;
    state.set(buffer.operand().dimensions.clone());
    Ok(())
}

/// A model of `count` RELUs side by side, each on `[1, 4]` floats: 16 bytes in, 16 bytes out.
#[must_use]
pub fn wide_model(count: u32) -> Model {
    let mut builder = ModelBuilder::new();
    for _ in 0..count {
        let input = builder.input(OperandType::TensorFloat32, &[1, 4]);
        let output = builder.result_of(OperationType::Relu, &[input], OutputSpec::f32(&[1, 4]));
        builder.output(output);
    }
    builder.build().expect("a legal model")
}

/// One RELU.
#[must_use]
pub fn model() -> Model {
    wide_model(1)
}

/// A model that the fake device lacks an operation for.
#[must_use]
pub fn foreign_model() -> Model {
    let mut builder = ModelBuilder::new();
    let input = builder.input(OperandType::TensorFloat32, &[1, 4]);
    let output = builder.result_of(OperationType::Tanh, &[input], OutputSpec::f32(&[1, 4]));
    builder.output(output);
    builder.build().expect("a legal model")
}

/// A fake device's service for one client, on a thread of this process.
pub struct Private {
    pub controls: Arc<Controls>,
    thread: Option<JoinHandle<()>>,
}

impl Private {
    /// The service, and the client's end of its socket.
    #[must_use]
    pub fn start(options: ServiceOptions) -> (Private, OwnedFd) {
        let (ours, theirs) = burst_wire::socket::pair().unwrap();
        let controls = Arc::new(Controls::default());
        let service = Service::new(vec![Arc::new(FakeDevice(Arc::clone(&controls)))], options);
        let thread = std::thread::spawn(move || {
            if let Err(error) = service.serve_socket(theirs) {
                eprintln!("the service ended: {error}");
            }
        });
        (Private { controls, thread: Some(thread) }, ours)
    }

    /// The same, connected.
    #[must_use]
    pub fn connect() -> (Private, Client) {
        let (service, socket) = Private::start(ServiceOptions::default());
        (service, Client::from_socket(socket).expect("greeting"))
    }

    /// Waits for the service to end; it does when its client has hung up.
    #[track_caller]
    pub fn join(mut self) {
        let thread = self.thread.take().unwrap();
        wait_until("the end of the service", || thread.is_finished());
        thread.join().expect("the service does not panic");
    }
}

/// Waits until something is so.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "{what} never came");
        std::thread::yield_now();
    }
}

/// Waits for the end of the threads whose names begin so: the kernel lists a thread for a moment
/// after it was joined.
#[track_caller]
pub fn wait_for_no_thread_named(prefix: &str) {
    wait_until("the end of a thread", || threads_named(prefix) == 0);
}

/// Threads of this process with names that begin so.
#[must_use]
pub fn threads_named(prefix: &str) -> usize {
    states_of_threads("self", prefix).len()
}

/// Waits until a process has a thread of this name, and it sleeps in the kernel.
#[track_caller]
pub fn wait_for_sleep_of(process: u32, thread: &str) {
    let what = format!("sleep of {thread} in process {process}");
    wait_until(&what, || states_of_threads(&process.to_string(), thread) == ['S']);
}

/// The kernel's letters for the states of a process's threads whose names begin so.
fn states_of_threads(process: &str, prefix: &str) -> Vec<char> {
    let state = |entry: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
        rest.chars().next().filter(|_| name.starts_with(prefix))
    };
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.filter_map(|entry| state(entry.ok()?)).collect()
}
