//! Sessions over a device that adds 1 to every byte, so that a state counts its runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{
    Burst, Caller, Device, Dimensions, ErrorStatus, ExecutionCallback, ExecutionInfo,
    ExecutionOptions, ExecutionResult, Failure, Fence, FencedExecution, FencedInfo, FencedOptions,
    HeapMemory, Model, Operand, OperandLifeTime, OperandType, OutputShape, Pool, PrepareOptions,
    PrepareResult, PreparedModel, Request, RequestPool, Route, Subgraph, Timing,
};

fn operand(ty: OperandType, dimensions: &[u32], lifetime: OperandLifeTime) -> Operand {
    let dimensions = Dimensions::from_slice(dimensions);
    Operand { dimensions, ..Operand::new(ty, lifetime) }
}

/// Inputs and outputs of these types and shapes, and nothing between them: the device knows.
fn model(inputs: &[(OperandType, &[u32])], outputs: &[(OperandType, &[u32])]) -> Model {
    let mut main = Subgraph::default();
    for (ty, dimensions) in inputs {
        main.input_indexes.push(u32::try_from(main.operands.len()).unwrap());
        main.operands.push(operand(*ty, dimensions, OperandLifeTime::SubgraphInput));
    }
    for (ty, dimensions) in outputs {
        main.output_indexes.push(u32::try_from(main.operands.len()).unwrap());
        main.operands.push(operand(*ty, dimensions, OperandLifeTime::SubgraphOutput));
    }
    Model { main, ..Model::default() }
}

/// Every output is the input of the same number, each byte 1 higher. An output of too few bytes
/// ends the execution with the shapes of all outputs up to that one.
#[derive(Default)]
struct PlusOne {
    synchronous: AtomicUsize,
    asynchronous: AtomicUsize,
    bursts: AtomicUsize,
    fenced: AtomicUsize,
    /// What its burst was told that requests will name.
    cached: std::sync::Mutex<Vec<Pool>>,
    /// What the next execution comes to, where that is not NONE.
    failing: std::sync::Mutex<Option<ErrorStatus>>,
}

#[derive(Clone)]
struct Prepared(Arc<PlusOne>);

struct PlusOneDevice(Arc<PlusOne>);

impl PlusOne {
    fn device() -> (Arc<PlusOne>, PlusOneDevice) {
        let plus_one = Arc::new(PlusOne::default());
        (Arc::clone(&plus_one), PlusOneDevice(plus_one))
    }

    fn execute(&self, request: &Request) -> ExecutionResult {
        if let Some(status) = self.failing.lock().unwrap().take() {
            return ExecutionResult::of(status);
        }
        let mut result = ExecutionResult::of(ErrorStatus::None);
        let mut input = Vec::new();
        for (index, output) in request.outputs.iter().enumerate() {
            request.read_input(index, &mut input).unwrap();
            let length = u32::try_from(input.len()).unwrap();
            let is_sufficient = length <= output.location.length;
            let dimensions = Dimensions::from_slice(&[length]);
            result.output_shapes.push(OutputShape { dimensions, is_sufficient });
            if !is_sufficient {
                result.status = ErrorStatus::OutputInsufficientSize;
                // Of those behind it nothing is known yet.
                let unknown = OutputShape { dimensions: Dimensions::new(), is_sufficient: true };
                result.output_shapes.resize(request.outputs.len(), unknown);
                return result;
            }
            input.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            let RequestPool::Memory(pool) = &request.pools[output.location.pool_index as usize]
            else {
                panic!("no memory")
            };
            pool.write(output.location.offset.into(), &input).unwrap();
        }
        result
    }
}

impl Device for PlusOneDevice {
    fn name(&self) -> &str {
        "plus-one"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, _model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(Vec::new())
    }

    fn prepare_model(&self, _model: &Model, _options: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(Prepared(Arc::clone(&self.0))))
    }
}

impl PreparedModel for Prepared {
    fn execute_synchronously(
        &self,
        request: &Request,
        _options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.0.synchronous.fetch_add(1, Ordering::Relaxed);
        self.0.execute(request)
    }

    /// Ends on a thread of its own.
    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        _options: ExecutionOptions,
        _caller: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        self.0.asynchronous.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(move || callback(self.0.execute(&request)));
        Ok(())
    }

    /// Likewise; it is hung up where it fails.
    fn execute_fenced(
        self: Arc<Self>,
        request: Request,
        _wait_for: Vec<Fence>,
        _options: FencedOptions,
        _caller: Caller,
    ) -> Result<FencedExecution, Failure> {
        self.0.fenced.fetch_add(1, Ordering::Relaxed);
        let (read, mut write) = std::io::pipe().unwrap();
        let ended = Arc::new(Ended::default());
        let info = Arc::clone(&ended) as Arc<dyn FencedInfo>;
        std::thread::spawn(move || {
            let status = self.0.execute(&request).status;
            ended.0.set(status).unwrap();
            if status == ErrorStatus::None {
                std::io::Write::write_all(&mut write, &[1]).unwrap();
            }
        });
        let fence = Some(Fence::from(std::os::fd::OwnedFd::from(read)));
        Ok(FencedExecution { fence, info })
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        Ok(Box::new(Prepared(Arc::clone(&self.0))))
    }
}

/// How a fenced execution ended.
#[derive(Default)]
struct Ended(std::sync::OnceLock<ErrorStatus>);

impl FencedInfo for Ended {
    fn execution_info(&self) -> Result<ExecutionInfo, Failure> {
        let status = *self.0.get().ok_or(Failure::general("it has not ended"))?;
        let timing = Timing { time_on_device_us: 1, time_in_driver_us: 2 };
        Ok(ExecutionInfo { status, timing_launched: timing, timing_fenced: Timing::UNAVAILABLE })
    }
}

impl Burst for Prepared {
    fn execute(
        &mut self,
        request: &Request,
        _options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        self.0.bursts.fetch_add(1, Ordering::Relaxed);
        *result = self.0.execute(request);
    }

    fn cache_memory(&mut self, memory: &Pool) {
        self.0.cached.lock().unwrap().push(Pool::clone(memory));
    }
}

const BYTES: OperandType = OperandType::TensorQuant8Asymm;

/// Heap memory, and how often it was asked for.
#[derive(Default)]
struct Counting(AtomicUsize);

impl PoolAllocator for Counting {
    fn allocate(&self, bytes: usize) -> Result<Pool, Failure> {
        self.0.fetch_add(1, Ordering::Relaxed);
        HeapAllocator.allocate(bytes)
    }
}

fn options(states: Vec<StateBinding>, unknown_output_bytes: Option<u32>) -> SessionOptions {
    let layout = LayoutOptions { states, unknown_output_bytes, ..LayoutOptions::default() };
    SessionOptions { layout, ..SessionOptions::default() }
}

fn open(device: &PlusOneDevice, model: &Model, options: &SessionOptions) -> ModelSession {
    ModelSession::open(device, model, options, Arc::new(HeapAllocator)).unwrap()
}

fn run(session: &mut ModelSession) {
    session.run(&ExecutionOptions::default()).unwrap();
}

fn output(session: &ModelSession, index: usize) -> Vec<u8> {
    let mut bytes = vec![9; 3];
    session.read_output(index, &mut bytes).unwrap();
    bytes
}

fn state(session: &ModelSession, index: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.read_state(index, &mut bytes).unwrap();
    bytes
}

#[test]
fn requests_travel_by_the_route_that_was_asked_for() {
    for route in Route::ALL {
        let (counts, device) = PlusOne::device();
        let options = SessionOptions { route, ..SessionOptions::default() };
        let mut session = open(&device, &model(&[(BYTES, &[2])], &[(BYTES, &[2])]), &options);
        session.write_input(0, &[4, 5]).unwrap();
        run(&mut session);
        assert_eq!(output(&session, 0), [5, 6]);
        let counted = [
            (Route::Synchronous, &counts.synchronous),
            (Route::Asynchronous, &counts.asynchronous),
            (Route::Burst, &counts.bursts),
            (Route::Fenced, &counts.fenced),
        ];
        for (other, count) in counted {
            assert_eq!(count.load(Ordering::Relaxed), usize::from(other == route), "{route}");
        }
        let status = ErrorStatus::ResourceExhaustedTransient;
        *counts.failing.lock().unwrap() = Some(status);
        let failed = session.run(&ExecutionOptions::default()).unwrap_err();
        assert!(
            matches!(failed, SessionError::Status(told) if told == status),
            "{route}: {failed}"
        );
    }
}

#[test]
fn a_burst_is_told_of_the_pools_before_the_first_request_names_them() {
    for route in Route::ALL {
        let (counts, device) = PlusOne::device();
        let options = SessionOptions { route, ..SessionOptions::default() };
        let session = open(&device, &model(&[(BYTES, &[2])], &[(BYTES, &[2])]), &options);
        let named = &session.tensors().request(0).pools;
        let is_named = |pool: &Pool| {
            let mut named = named.iter();
            named.any(|one| matches!(one, RequestPool::Memory(one) if Arc::ptr_eq(one, pool)))
        };
        let cached = counts.cached.lock().unwrap();
        let wanted = if route == Route::Burst { named.len() } else { 0 };
        assert_eq!(cached.iter().filter(|pool| is_named(pool)).count(), wanted, "{route}");
        assert_eq!(cached.len(), wanted, "{route}");
    }
}

/// A driver that loses what it is to call, and has no fences.
struct Forgetful;

impl PreparedModel for Forgetful {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        ExecutionResult::of(ErrorStatus::None)
    }

    fn execute_asynchronously(
        self: Arc<Self>,
        _: Request,
        _: ExecutionOptions,
        _: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        drop(callback);
        Ok(())
    }
}

#[test]
fn a_driver_that_tells_no_result_has_failed() {
    for route in [Route::Asynchronous, Route::Fenced] {
        let mut executor = Executor::open(Arc::new(Forgetful), route).unwrap();
        assert_eq!(executor.route(), route);
        let mut result = ExecutionResult::of(ErrorStatus::None);
        executor.execute(&Request::default(), &ExecutionOptions::default(), &mut result);
        assert_eq!(result.status, ErrorStatus::GeneralFailure, "{route}");
    }
}

/// Input 1 is fed by output 2 and input 2 by output 1; two kinds of zero points.
fn crosswise() -> (Model, SessionOptions) {
    let words = OperandType::TensorQuant16Asymm;
    let mut model = model(
        &[(BYTES, &[1]), (words, &[2]), (words, &[2])],
        &[(BYTES, &[1]), (words, &[2]), (words, &[2])],
    );
    model.main.operands[1].zero_point = 0x0201;
    model.main.operands[2].zero_point = 0x0403;
    let states = vec![StateBinding { input: 1, output: 2 }, StateBinding { input: 2, output: 1 }];
    (model, options(states, None))
}

#[test]
fn states_go_from_run_to_run_and_begin_at_the_zero_point() {
    let (_, device) = PlusOne::device();
    let (model, options) = crosswise();
    let mut session = open(&device, &model, &options);
    let zeros = |zero_point: u16, runs: u8| -> Vec<u8> {
        let bytes = zero_point.to_ne_bytes().map(|byte| byte + runs);
        bytes.repeat(2)
    };
    for round in 0..3 {
        assert_eq!(state(&session, 0), zeros(0x0201, 0), "round {round}");
        assert_eq!(state(&session, 1), zeros(0x0403, 0), "round {round}");
        for runs in 1..=20_u8 {
            run(&mut session);
            // Crosswise: after an odd number of runs each is where the other one was.
            let (one, two) = if runs % 2 == 1 { (0x0403, 0x0201) } else { (0x0201, 0x0403) };
            assert_eq!(state(&session, 0), zeros(one, runs), "round {round}, run {runs}");
            assert_eq!(state(&session, 1), zeros(two, runs), "round {round}, run {runs}");
            assert_eq!(output(&session, 2), state(&session, 0));
            assert_eq!(output(&session, 1), state(&session, 1));
        }
        session.reset_states();
    }
}

#[test]
fn what_is_written_to_a_state_is_what_it_begins_with() {
    let (_, device) = PlusOne::device();
    let pair = vec![StateBinding { input: 0, output: 0 }];
    let model = model(&[(BYTES, &[3])], &[(BYTES, &[3])]);
    let mut session = open(&device, &model, &options(pair, None));
    run(&mut session);
    session.write_input(0, &[40; 3]).unwrap();
    run(&mut session);
    assert_eq!(output(&session, 0), [2; 3], "not before the next reset");
    session.reset_states();
    assert_eq!(state(&session, 0), [40; 3]);
    run(&mut session);
    assert_eq!((output(&session, 0), state(&session, 0)), (vec![41; 3], vec![41; 3]));
}

#[test]
fn a_run_that_fails_leaves_the_states_as_they_were() {
    let (faults, device) = PlusOne::device();
    let pair = vec![StateBinding { input: 0, output: 0 }];
    let mut session =
        open(&device, &model(&[(BYTES, &[3])], &[(BYTES, &[3])]), &options(pair, None));
    for _ in 0..2 {
        run(&mut session);
    }
    *faults.failing.lock().unwrap() = Some(ErrorStatus::GeneralFailure);
    let error = session.run(&ExecutionOptions::default()).unwrap_err();
    assert!(matches!(error, SessionError::Status(ErrorStatus::GeneralFailure)), "{error}");
    assert_eq!(state(&session, 0), [2; 3]);
    run(&mut session);
    assert_eq!(state(&session, 0), [3; 3]);
}

/// Two outputs of unknown size, found out one after the other, beside a state.
#[test]
fn outputs_grow_as_far_as_they_need_and_states_stay() {
    let (counts, device) = PlusOne::device();
    let model = model(
        &[(BYTES, &[2]), (BYTES, &[100]), (BYTES, &[200])],
        &[(BYTES, &[2]), (BYTES, &[0]), (BYTES, &[])],
    );
    let pair = vec![StateBinding { input: 0, output: 0 }];
    let pools = Arc::new(Counting::default());
    let mut session =
        ModelSession::open(&device, &model, &options(pair, Some(8)), pools.clone()).unwrap();
    session.write_input(1, &[1; 100]).unwrap();
    session.write_input(2, &[2; 200]).unwrap();
    for runs in 1..=3 {
        run(&mut session);
        assert_eq!(state(&session, 0), [runs; 2]);
        assert_eq!(output(&session, 1), [2; 100]);
        assert_eq!(output(&session, 2), [3; 200]);
        assert_eq!(session.output_dimensions(2).as_slice(), [200]);
    }
    assert_eq!(counts.bursts.load(Ordering::Relaxed), 2 + 3, "two that had too little room");
    assert_eq!(pools.0.load(Ordering::Relaxed), 2 + 2, "nothing is made anew for a run");
}

#[test]
fn a_state_survives_growth_in_either_buffer() {
    let reported = |length| OutputShape {
        dimensions: Dimensions::from_slice(&[length]),
        is_sufficient: false,
    };
    for runs_before in 0..3_u8 {
        let (device, _) = PlusOne::device();
        let model = model(&[(BYTES, &[2]), (BYTES, &[70])], &[(BYTES, &[2]), (BYTES, &[0])]);
        let pair = vec![StateBinding { input: 0, output: 0 }];
        let layout = SessionLayout::new(&model, &options(pair, Some(70)).layout).unwrap();
        let mut tensors = SessionTensors::allocate(layout, &HeapAllocator).unwrap();
        let mut state = Vec::new();
        for _ in 0..runs_before {
            assert_eq!(device.execute(tensors.request(0)).status, ErrorStatus::None);
            tensors.advance_states();
        }
        // What a state claims to need does not count: its size is the model's.
        assert!(!tensors.grow_outputs(&[reported(99), reported(70)], &HeapAllocator).unwrap());
        assert!(tensors.grow_outputs(&[reported(2), reported(500)], &HeapAllocator).unwrap());
        assert_eq!(tensors.layout().output_slot(1, StatePhase::First).length, 500);
        tensors.read_state(0, &mut state).unwrap();
        assert_eq!(state, [runs_before; 2]);
        assert_eq!(device.execute(tensors.request(0)).status, ErrorStatus::None);
        tensors.advance_states();
        tensors.read_state(0, &mut state).unwrap();
        assert_eq!(state, [runs_before + 1; 2]);
    }
}

#[test]
fn pools_have_a_limit_when_they_are_made_and_when_they_grow() {
    let open_with = |limit: u64, input: u32| {
        let (_, device) = PlusOne::device();
        let model = model(&[(BYTES, &[64]), (BYTES, &[input])], &[(BYTES, &[0]), (BYTES, &[0])]);
        let mut options = options(Vec::new(), Some(8));
        options.layout.max_pool_bytes = limit;
        ModelSession::open(&device, &model, &options, Arc::new(HeapAllocator))
    };
    run(&mut open_with(128, 64).unwrap());
    run(&mut open_with(192, 65).unwrap());
    let error = open_with(191, 65).err().unwrap();
    assert_eq!(error.to_string(), "the tensors need 192 bytes, more than the limit of 191");
    let model = model(&[], &[(BYTES, &[0]), (BYTES, &[0])]);
    let mut layout = options(Vec::new(), Some(8)).layout;
    layout.max_pool_bytes = 191;
    let layout = SessionLayout::new(&model, &layout).unwrap();
    let mut session = ModelSession::new(
        Executor::open(Arc::new(Insatiable { step: 64 }), Route::Synchronous).unwrap(),
        SessionTensors::allocate(layout, &HeapAllocator).unwrap(),
        Arc::new(HeapAllocator),
    );
    let error = session.run(&ExecutionOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "the tensors need 192 bytes, more than the limit of 191");
}

/// Says every time that its first output needs so many bytes more than it got.
struct Insatiable {
    step: u32,
}

impl PreparedModel for Insatiable {
    fn execute_synchronously(
        &self,
        request: &Request,
        _options: &ExecutionOptions,
    ) -> ExecutionResult {
        let mut result = ExecutionResult::of(ErrorStatus::OutputInsufficientSize);
        let more = request.outputs[0].location.length + self.step;
        let dimensions = Dimensions::from_slice(&[more]);
        result.output_shapes.push(OutputShape { dimensions, is_sufficient: false });
        result
    }
}

#[test]
fn a_driver_that_never_has_enough_room_is_given_up() {
    let model = model(&[], &[(BYTES, &[0])]);
    let layout = SessionLayout::new(&model, &options(Vec::new(), Some(4)).layout).unwrap();
    let pools = Arc::new(Counting::default());
    let tensors = SessionTensors::allocate(layout, &*pools).unwrap();
    let executor = Executor::open(Arc::new(Insatiable { step: 1 }), Route::Synchronous).unwrap();
    let mut session = ModelSession::new(executor, tensors, pools.clone());
    let error = session.run(&ExecutionOptions::default()).unwrap_err();
    assert!(matches!(error, SessionError::Status(ErrorStatus::OutputInsufficientSize)), "{error}");
    assert_eq!(pools.0.load(Ordering::Relaxed), 1 + 8, "one for each attempt");
}

#[test]
fn shapes_that_are_open_and_pairs_that_are_no_states_are_refused() {
    let pair = |input, output| StateBinding { input, output };
    let error = |inputs: &[(OperandType, &[u32])], outputs: &[(OperandType, &[u32])], states| {
        let options = LayoutOptions { states, ..LayoutOptions::default() };
        SessionLayout::new(&model(inputs, outputs), &options).unwrap_err().to_string()
    };
    let known: (OperandType, &[u32]) = (BYTES, &[2]);
    let float: (OperandType, &[u32]) = (OperandType::TensorFloat32, &[2]);
    let cases = [
        (error(&[known, (BYTES, &[2, 0])], &[known], vec![]), "input 1 has the open shape [2, 0]"),
        (error(&[(BYTES, &[])], &[known], vec![]), "input 0 has the open shape []"),
        (error(&[known], &[(BYTES, &[0])], vec![]), "output 0 has the open shape [0]"),
        (error(&[known], &[known], vec![pair(1, 0)]), "output 0 cannot be carried into input 1"),
        (error(&[known], &[known], vec![pair(0, 1)]), "output 1 cannot be carried into input 0"),
        (error(&[known], &[float], vec![pair(0, 0)]), "output 0 cannot be carried into input 0"),
        (
            error(&[known; 2], &[known; 2], vec![pair(0, 0), pair(0, 1)]),
            "output 1 cannot be carried into input 0",
        ),
        (
            error(&[known; 2], &[known; 2], vec![pair(0, 0), pair(1, 0)]),
            "output 0 cannot be carried into input 1",
        ),
    ];
    for (found, want) in cases {
        assert_eq!(found, want);
    }
    // A scalar has no dimensions, and its size is known.
    let scalar: (OperandType, &[u32]) = (OperandType::Float32, &[]);
    let layout =
        SessionLayout::new(&model(&[scalar], &[known]), &LayoutOptions::default()).unwrap();
    assert_eq!(layout.input_slot(0, 0).length, 4);
}

#[test]
fn inputs_of_another_size_are_refused() {
    let (_, device) = PlusOne::device();
    let mut session =
        open(&device, &model(&[(BYTES, &[2])], &[(BYTES, &[2])]), &SessionOptions::default());
    let error = session.write_input(0, &[1, 2, 3]).unwrap_err().to_string();
    assert_eq!(error, "input 0 has 3 bytes, the model takes 2");
    let error = session.write_input(1, &[1]).unwrap_err().to_string();
    assert_eq!(error, "input 1 has 1 bytes, the model takes 0");
}

#[test]
fn an_output_is_as_long_as_its_shape_where_one_was_told() {
    let model = model(&[], &[(OperandType::TensorFloat32, &[0])]);
    let options = options(Vec::new(), Some(16)).layout;
    let layout = SessionLayout::new(&model, &options).unwrap();
    let length = |dimensions: Option<&[u32]>| {
        let shape = dimensions.map(|dimensions| OutputShape {
            dimensions: Dimensions::from_slice(dimensions),
            is_sufficient: true,
        });
        layout.output_length(0, shape.as_ref())
    };
    assert_eq!(length(Some(&[3])), 12);
    assert_eq!(length(Some(&[0])), 0, "no elements");
    assert_eq!(length(Some(&[2, 1000])), 16, "never more than there is");
    assert_eq!(length(Some(&[u32::MAX; 4])), 16);
    assert_eq!(length(Some(&[])), 16, "of unknown rank");
    assert_eq!(length(None), 16);
}

/// The memory of each frame, in requests of every phase.
#[test]
fn frames_have_inputs_of_their_own_and_share_outputs_and_states() {
    let model = model(&[(BYTES, &[8]), (BYTES, &[3])], &[(BYTES, &[8]), (BYTES, &[3])]);
    let states = vec![StateBinding { input: 1, output: 1 }];
    let options = LayoutOptions { frames: 2, states, ..LayoutOptions::default() };
    let layout = SessionLayout::new(&model, &options).unwrap();
    assert_eq!((layout.input_bytes(), layout.output_bytes()), (256, 192));
    let inputs: Pool = Arc::new(HeapMemory::new(vec![0; 256]));
    let outputs: Pool = Arc::new(HeapMemory::new(vec![0; 192]));
    let mut tensors = SessionTensors::new(layout, Some(inputs), outputs);
    // Pool and offset of the input, of the state that is read, of the output and of the state that
    // is written; in the pool of the outputs (0) and that of the inputs (1).
    let locations = |tensors: &SessionTensors, frame: usize| {
        let request = tensors.request(frame);
        let arguments = request.inputs.iter().chain(&request.outputs);
        let locations: Vec<(u32, u32)> =
            arguments.map(|a| (a.location.pool_index, a.location.offset)).collect();
        locations
    };
    let initial = [(1, 0), (1, 64), (0, 0), (0, 64)];
    assert_eq!(locations(&tensors, 0), initial);
    assert_eq!(locations(&tensors, 1), [(1, 128), (1, 192), (0, 0), (0, 64)]);
    tensors.advance_states();
    assert_eq!(locations(&tensors, 1), [(1, 128), (0, 64), (0, 0), (0, 128)]);
    tensors.advance_states();
    assert_eq!(locations(&tensors, 1), [(1, 128), (0, 128), (0, 0), (0, 64)]);
    // Another pool for the outputs takes the states away with the one before.
    let other: Pool = Arc::new(HeapMemory::new(vec![7; 192]));
    tensors.replace_outputs(Pool::clone(&other));
    assert_eq!(locations(&tensors, 0), initial);
    for frame in 0..2 {
        let RequestPool::Memory(pool) = &tensors.request(frame).pools[0] else { panic!() };
        assert!(Arc::ptr_eq(pool, &other), "frame {frame}");
    }
}
