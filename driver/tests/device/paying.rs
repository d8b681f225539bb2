//! Who pays for what a device holds, and what ends a preparation.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::{
    BufferRequest, BufferRole, Caller, CancelWord, DataLocation, Device, ErrorStatus,
    ExecutionOptions, ExecutionPreference, ExecutionResult, Failure, HeapMemory, Memory,
    MemoryAccount, MemoryError, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Pool,
    PrepareOptions, PreparedModel, Request, RequestArgument, RequestPool, TimePoint, Turn,
};

mod idle;
mod models;

use self::models::*;

const F32: OperandType = OperandType::TensorFloat32;
const I32: OperandType = OperandType::TensorInt32;

/// What every account here says when it refuses.
const REFUSAL: &str = "the purse of this test is empty";

/// An account with a limit that may change.
#[derive(Debug)]
pub(crate) struct Purse {
    limit: AtomicU64,
    charged: AtomicU64,
    most: AtomicU64,
    /// Cancelled by the first charge of at least so many bytes.
    cancels: Option<(u64, CancelWord)>,
}

impl Purse {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Purse {
            limit: AtomicU64::new(limit),
            charged: AtomicU64::new(0),
            most: AtomicU64::new(0),
            cancels: None,
        })
    }

    pub(crate) fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }

    fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    pub(crate) fn caller(self: &Arc<Self>) -> Caller {
        Caller::default().with_account(Arc::clone(self) as _)
    }
}

impl MemoryAccount for Purse {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        let charged = self.charged() + bytes;
        if charged > self.limit.load(Ordering::Relaxed) {
            return Err(Failure::new(ErrorStatus::ResourceExhaustedTransient, REFUSAL));
        }
        if let Some((least, word)) = &self.cancels
            && bytes >= *least
        {
            word.cancel();
        }
        self.charged.store(charged, Ordering::Relaxed);
        self.most.fetch_max(charged, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        assert!(bytes <= self.charged(), "more is given back than was charged");
        self.charged.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn prepare(model: &Model, caller: &Caller) -> Result<Arc<dyn PreparedModel>, Failure> {
    CpuDevice::default().prepare_model_for(model, &PrepareOptions::default(), caller)
}

/// The same without a rehearsal, which takes more where there is more, and is left out where there is not.
fn prepare_only(model: &Model, caller: &Caller) -> Result<Arc<dyn PreparedModel>, Failure> {
    let preference = ExecutionPreference::LowPower;
    let options = PrepareOptions { preference, ..PrepareOptions::default() };
    CpuDevice::default().prepare_model_for(model, &options, caller)
}

/// A request with zeros for every input, and as much room for every output.
fn request(model: &Model, room: usize) -> Request {
    let mut request = Request::default();
    let mut add = |length: usize| {
        let pool = u32::try_from(request.pools.len()).unwrap();
        request.pools.push(RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; length]))));
        let location =
            DataLocation { pool_index: pool, offset: 0, length: u32::try_from(length).unwrap() };
        RequestArgument { location, ..RequestArgument::default() }
    };
    let length = |index: &u32| {
        let operand = &model.main.operands[*index as usize];
        usize::try_from(operand.ty.byte_length(&operand.dimensions).unwrap()).unwrap()
    };
    let inputs = model.main.input_indexes.iter().map(|index| add(length(index))).collect();
    let outputs = model.main.output_indexes.iter().map(|_| add(room)).collect();
    Request { inputs, outputs, ..request }
}

fn status_of<T>(result: Result<T, Failure>) -> Option<ErrorStatus> {
    result.err().map(|failure| failure.status)
}

#[test]
fn a_preparation_takes_what_it_holds_or_fails_with_what_the_account_says() {
    for (name, model) in models() {
        let whole = Purse::new(u64::MAX);
        let prepared = prepare_only(&model, &whole.caller()).unwrap();
        let (most, held) = (whole.most(), whole.charged());
        assert!(0 < held && held <= most, "{name}: {held} of {most}");
        drop(prepared);
        assert_eq!(whole.charged(), 0, "{name}");

        const STEPS: u64 = 24;
        for step in 0..=STEPS {
            let limit = most * step / STEPS;
            let purse = Purse::new(limit);
            match prepare(&model, &purse.caller()) {
                Ok(prepared) => {
                    assert_eq!(limit, most, "{name}");
                    assert_eq!(purse.charged(), held, "{name}");
                    drop(prepared);
                }
                Err(failure) => {
                    assert!(limit < most, "{name}: refused at {limit} of {most}");
                    assert_eq!(failure.status, ErrorStatus::ResourceExhaustedTransient, "{name}");
                    assert_eq!(failure.cause.to_string(), REFUSAL, "{name}");
                }
            }
            assert_eq!(purse.charged(), 0, "{name} at {limit} of {most}");
        }

        let surveyed = Purse::new(u64::MAX);
        CpuDevice::default().supported_operations_for(&model, &surveyed.caller()).unwrap();
        let most = surveyed.most();
        assert_eq!(surveyed.charged(), 0, "{name}");
        for step in 0..STEPS {
            let purse = Purse::new(most * step / STEPS);
            let refused = CpuDevice::default().supported_operations_for(&model, &purse.caller());
            assert_eq!(status_of(refused), Some(ErrorStatus::ResourceExhaustedTransient), "{name}");
            assert_eq!(purse.charged(), 0, "{name}");
        }
    }
}

/// An entry in the list of contexts that no execution uses takes at most so many bytes.
const MOST_OF_ENTRY: u64 = 512;

#[test]
fn working_memory_is_paid_for_as_long_as_it_is_there() {
    for (name, model) in models() {
        let purse = Purse::new(u64::MAX);
        let prepared = prepare(&model, &purse.caller()).unwrap();
        let held = purse.charged();
        let request = request(&model, 1 << 16);
        let mut burst = Arc::clone(&prepared).open_burst().unwrap();
        assert!(purse.charged() > held, "{name}");
        let mut result = ExecutionResult::of(ErrorStatus::None);
        let options = ExecutionOptions::default();
        burst.execute(&request, &options, &mut result);
        assert_eq!(result.status, ErrorStatus::None, "{name}");
        let running = purse.charged();
        burst.execute(&request, &options, &mut result);
        assert_eq!(purse.charged(), running, "{name}: the second execution takes nothing more");
        burst.release_resources();
        assert_eq!(purse.charged(), held, "{name}");
        burst.execute(&request, &options, &mut result);
        assert_eq!((result.status, purse.charged()), (ErrorStatus::None, running), "{name}");
        drop(burst);
        let kept = purse.charged();
        let entry = kept.checked_sub(running).unwrap();
        assert!(
            (1..=MOST_OF_ENTRY).contains(&entry),
            "{name}: kept for the next execution, in a list"
        );
        let status = prepared.execute_synchronously(&request, &options).status;
        assert_eq!((status, purse.charged()), (ErrorStatus::None, kept), "{name}");
        drop(prepared);
        assert_eq!(purse.charged(), 0, "{name}");

        // An account that suffices for the model, and ever more for its execution.
        for step in 0..=8 {
            let limit = held + (running - held) * step / 8;
            let purse = Purse::new(u64::MAX);
            let prepared = prepare(&model, &purse.caller()).unwrap();
            purse.limit.store(limit, Ordering::Relaxed);
            let status = prepared.execute_synchronously(&request, &options).status;
            let want = if limit == running {
                ErrorStatus::None
            } else {
                ErrorStatus::ResourceExhaustedTransient
            };
            assert_eq!(status, want, "{name} at {limit} of {running}");
            if limit < running {
                assert_eq!(purse.charged(), held, "{name}: what was refused keeps nothing");
            }
        }
    }
}

#[test]
fn weights_packed_in_an_execution_are_paid_for_until_it_ends_and_end_with_its_caller() {
    let model = convolution_of_inputs();
    let purse = Purse::new(u64::MAX);
    let prepared = prepare_only(&model, &purse.caller()).unwrap();
    let request = request(&model, 8 * 8 * 40 * 4);
    let execute = |caller: &Caller| {
        Arc::clone(&prepared).execute_for(&request, &ExecutionOptions::default(), caller).status
    };
    assert_eq!(execute(&purse.caller()), ErrorStatus::None);
    let (held, most) = (purse.charged(), purse.most());
    // 40 units with 144 weights each, in panels of 16 units.
    let packed = 48 * 144 * 4;
    assert!(most + MOST_OF_ENTRY >= held + packed, "{most} at most, {held} afterwards");
    purse.limit.store(most - 1, Ordering::Relaxed);
    assert_eq!(execute(&purse.caller()), ErrorStatus::ResourceExhaustedTransient);
    purse.limit.store(u64::MAX, Ordering::Relaxed);
    assert_eq!(execute(&purse.caller()), ErrorStatus::None);
    assert_eq!(purse.charged(), held, "what was packed is gone");

    let word = CancelWord::default();
    let purse = Arc::new(Purse {
        cancels: Some((packed, word.clone())),
        limit: AtomicU64::new(u64::MAX),
        charged: AtomicU64::new(0),
        most: AtomicU64::new(0),
    });
    let prepared = prepare_only(&model, &purse.caller()).unwrap();
    let caller = Caller::new(&word);
    let result = prepared.execute_for(&request, &ExecutionOptions::default(), &caller);
    assert_eq!((result.status, word.is_cancelled()), (ErrorStatus::GeneralFailure, true));
}

/// Fills as many values as the input says.
fn as_many_as_wanted() -> Model {
    let mut b = ModelBuilder::new();
    let count = b.input(I32, &[1]);
    let value = b.scalar_f32(0.5);
    let all = b.result_of(OperationType::Fill, &[count, value], out());
    b.output(all);
    b.build().unwrap()
}

#[test]
fn memory_that_nobody_uses_goes_before_an_execution_is_refused() {
    let model = as_many_as_wanted();
    let purse = Purse::new(u64::MAX);
    let prepared = prepare(&model, &purse.caller()).unwrap();
    let held = purse.charged();
    let options = ExecutionOptions::default();
    let asking_for = |count: i32| {
        let mut request = request(&model, 1 << 20);
        let count = count.to_ne_bytes().to_vec();
        request.pools[0] = RequestPool::Memory(Arc::new(HeapMemory::new(count)));
        request
    };
    // Two contexts at once, each with 256 KiB for the output, which are idle afterwards.
    let bursts = [(); 2].map(|()| {
        let mut burst = Arc::clone(&prepared).open_burst().unwrap();
        let mut result = ExecutionResult::of(ErrorStatus::None);
        burst.execute(&asking_for(1 << 16), &options, &mut result);
        assert_eq!(result.status, ErrorStatus::None);
        burst
    });
    drop(bursts);
    let idle = purse.charged();
    assert!(idle > held + (512 << 10));
    purse.limit.store(idle, Ordering::Relaxed);
    let status = prepared.execute_synchronously(&asking_for(3 << 15), &options).status;
    assert_eq!(status, ErrorStatus::None, "384 KiB fit once one of the idle contexts is gone");
    assert!(purse.charged() <= idle);
    let status = prepared.execute_synchronously(&asking_for(1 << 18), &options).status;
    assert_eq!(status, ErrorStatus::ResourceExhaustedTransient, "1 MiB never fits");
    assert_eq!(purse.charged(), held);
    let status = prepared.execute_synchronously(&asking_for(1 << 15), &options).status;
    assert_eq!(status, ErrorStatus::None, "the model goes on");
}

#[test]
fn a_small_model_stays_small_and_computes_the_rest_when_it_runs() {
    let model = four_large_constants();
    let purse = Purse::new(u64::MAX);
    let prepared = CpuDevice::default().prepare(&model).unwrap();
    let held = prepared.plan().held_bytes();
    assert!(held <= 65 << 20, "{held} bytes of constants are held");
    drop(prepared);
    let prepared = prepare(&model, &purse.caller()).unwrap();
    assert!(purse.most() <= 66 << 20, "{} bytes were charged", purse.most());
    let mut request = request(&model, 16);
    request.pools[0] =
        RequestPool::Memory(Arc::new(HeapMemory::new(0.5_f32.to_ne_bytes().to_vec())));
    let options = ExecutionOptions::default();
    assert_eq!(prepared.execute_synchronously(&request, &options).status, ErrorStatus::None);
    let RequestPool::Memory(output) = &request.pools[1] else { panic!("memory") };
    let mut got = [0; 16];
    output.read(0, &mut got).unwrap();
    assert_eq!(got.as_slice(), [1.5_f32, 2.5, 3.5, 4.5].map(f32::to_ne_bytes).concat());

    let surveyed = Purse::new(u64::MAX);
    CpuDevice::default().supported_operations_for(&model, &surveyed.caller()).unwrap();
    assert!(surveyed.most() <= 2 << 20, "{} bytes for a survey", surveyed.most());
}

#[test]
fn what_takes_long_is_left_to_the_executions() {
    for (op, model) in slow() {
        let device = CpuDevice::default();
        assert!(device.supported_operations(&model).unwrap().iter().all(|runs| *runs), "{op}");
        let prepared = device.prepare(&model).unwrap();
        let steps = prepared.profile(&request(&model, 4), 0).unwrap();
        assert!(steps.iter().any(|step| step.operation == op), "{op} was computed");
    }
}

#[test]
fn executions_of_what_takes_long_end_when_they_are_called_off() {
    /// Cancels when the execution computes: between the step before and the slow one at the latest.
    #[derive(Debug)]
    struct Canceller {
        word: CancelWord,
        asked: AtomicUsize,
        steps: usize,
    }
    impl Turn for Canceller {
        fn give_way(&self) {
            if self.asked.fetch_add(1, Ordering::Relaxed) + 1 == self.steps {
                let word = self.word.clone();
                // While the slow step computes, as far as the machine lets it.
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    word.cancel();
                });
            }
        }
    }
    for threads in [1, 3] {
        for (op, model) in slow() {
            let options =
                DeviceOptions { threads, fast_kernels: false, ..DeviceOptions::default() };
            let prepared = Arc::new(CpuDevice::new(options).prepare(&model).unwrap());
            let request = request(&model, 4);
            let steps = prepared.profile(&request, 0).unwrap();
            let slow = steps.iter().position(|step| step.operation == op).unwrap();
            let word = CancelWord::default();
            let turn =
                Canceller { word: word.clone(), asked: AtomicUsize::new(0), steps: slow + 1 };
            let caller = Caller::new(&word).with_turn(Arc::new(turn));
            let began = std::time::Instant::now();
            let result = prepared.execute_for(&request, &ExecutionOptions::default(), &caller);
            assert_eq!(result.status, ErrorStatus::GeneralFailure, "{op}");
            // Any of them would take far longer to its end.
            assert!(began.elapsed() < Duration::from_secs(10), "{op}: {:?}", began.elapsed());
        }
    }
}

/// Does something whenever it is asked to give way.
struct Asked<F> {
    times: AtomicUsize,
    then: F,
}

impl<F> std::fmt::Debug for Asked<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asked")
    }
}

impl<F: Fn(usize) + Send + Sync> Turn for Asked<F> {
    fn give_way(&self) {
        (self.then)(self.times.fetch_add(1, Ordering::Relaxed) + 1);
    }
}

#[test]
fn others_get_their_turn_between_operations_of_a_preparation_and_within_long_ones() {
    let model = folded();
    let operations = model.main.operations.len();
    let turn = Arc::new(Asked { times: AtomicUsize::new(0), then: |_| {} });
    let caller = Caller::default().with_turn(Arc::clone(&turn) as _);
    prepare(&model, &caller).unwrap();
    let preparing = turn.times.load(Ordering::Relaxed);
    assert!(preparing > operations, "{preparing} times for {operations} operations");
    CpuDevice::default().supported_operations_for(&model, &caller).unwrap();
    assert!(turn.times.load(Ordering::Relaxed) >= preparing + operations);
}

#[test]
fn a_preparation_ends_when_its_caller_cancels() {
    for (name, model) in models() {
        for at in [1, model.main.operations.len()] {
            let word = CancelWord::default();
            let purse = Purse::new(u64::MAX);
            let cancel = word.clone();
            let turn = Asked {
                times: AtomicUsize::new(0),
                then: move |times| {
                    if times == at {
                        cancel.cancel();
                    }
                },
            };
            let caller =
                Caller::new(&word).with_account(Arc::clone(&purse) as _).with_turn(Arc::new(turn));
            let given_up = prepare(&model, &caller);
            assert_eq!(status_of(given_up), Some(ErrorStatus::GeneralFailure), "{name}");
            assert_eq!(purse.charged(), 0, "{name}");
            let given_up = CpuDevice::default().supported_operations_for(&model, &caller);
            assert_eq!(status_of(given_up), Some(ErrorStatus::GeneralFailure), "{name}");
            assert_eq!(purse.charged(), 0, "{name}");
        }
    }
}

#[test]
fn a_preparation_ends_within_an_operation_when_its_caller_cancels() {
    // The charge for the large thing cancels, so that only the loop after it can notice.
    let folds = {
        let mut b = ModelBuilder::new();
        let x = b.input(F32, &[1]);
        let none = b.scalar_i32(0);
        let (row, column) = (constant(&mut b, &[1, 4096]), constant(&mut b, &[1024, 1]));
        let large = b.result_of(OperationType::Mul, &[row, column, none], out());
        let sum = b.result_of(OperationType::Add, &[x, large, none], out());
        b.output(sum);
        b.build().unwrap()
    };
    let packs = {
        let mut b = ModelBuilder::new();
        let x = b.input(F32, &[1, 4096]);
        let (weights, bias) = (constant(&mut b, &[1024, 4096]), constant(&mut b, &[1024]));
        let none = b.scalar_i32(0);
        let y = b.result_of(OperationType::FullyConnected, &[x, weights, bias, none], out());
        b.output(y);
        b.build().unwrap()
    };
    for (name, model) in [("folding", folds), ("packing", packs)] {
        let word = CancelWord::default();
        let purse = Arc::new(Purse {
            cancels: Some((1 << 24, word.clone())),
            limit: AtomicU64::new(u64::MAX),
            charged: AtomicU64::new(0),
            most: AtomicU64::new(0),
        });
        let turn = Arc::new(Asked { times: AtomicUsize::new(0), then: |_| {} });
        let caller = Caller::new(&word)
            .with_account(Arc::clone(&purse) as _)
            .with_turn(Arc::clone(&turn) as _);
        let given_up = prepare(&model, &caller);
        assert!(word.is_cancelled(), "{name}: nothing large was charged");
        assert_eq!(status_of(given_up), Some(ErrorStatus::GeneralFailure), "{name}");
        assert_eq!(turn.times.load(Ordering::Relaxed), 1, "{name}: no other operation was begun");
        assert_eq!(purse.charged(), 0, "{name}");
    }
}

#[test]
fn a_deadline_that_passes_during_a_preparation_ends_it() {
    let deadline = TimePoint::after(Duration::from_millis(100));
    // The first operation is not begun before the deadline has passed.
    let wait = move |_| {
        while !deadline.has_passed() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let turn = Arc::new(Asked { times: AtomicUsize::new(0), then: wait });
    let purse = Purse::new(u64::MAX);
    let caller = purse.caller().with_turn(Arc::clone(&turn) as _);
    let options = PrepareOptions { deadline: Some(deadline), ..PrepareOptions::default() };
    let missed = CpuDevice::default().prepare_model_for(&convolution(), &options, &caller);
    assert_eq!(status_of(missed), Some(ErrorStatus::MissedDeadlineTransient));
    assert_eq!(turn.times.load(Ordering::Relaxed), 1, "it had begun");
    assert_eq!(purse.charged(), 0);
    // One that has passed before.
    let missed = CpuDevice::default().prepare_model_for(&convolution(), &options, &caller);
    assert_eq!(status_of(missed), Some(ErrorStatus::MissedDeadlinePersistent));
    assert_eq!(turn.times.load(Ordering::Relaxed), 1);
}

/// Memory that nobody can write any more; counts how often it is copied.
#[derive(Debug)]
struct Sealed {
    bytes: Vec<u8>,
    copies: Arc<AtomicUsize>,
    /// For a pool whose bytes are given out where they lie.
    is_sealed: bool,
}

impl Memory for Sealed {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        self.copies.fetch_add(1, Ordering::Relaxed);
        let first = usize::try_from(offset).unwrap();
        out.copy_from_slice(&self.bytes[first..][..out.len()]);
        Ok(())
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<(), MemoryError> {
        Err(MemoryError::ReadOnly)
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        self.is_sealed.then_some(self.bytes.as_slice())
    }
}

#[test]
fn constants_are_looked_at_where_they_lie() {
    const LENGTH: usize = 256 << 10;
    static WEIGHTS: OnceLock<Vec<u8>> = OnceLock::new();
    let weights =
        WEIGHTS.get_or_init(|| numbers(LENGTH / 4).iter().flat_map(|x| x.to_ne_bytes()).collect());
    for is_sealed in [true, false] {
        let copies = Arc::new(AtomicUsize::new(0));
        let mut b = ModelBuilder::new();
        let bytes = weights.clone();
        let pool: Pool = Arc::new(Sealed { bytes, copies: Arc::clone(&copies), is_sealed });
        let pool_index = b.pool(pool);
        let x = b.input(F32, &[1, 256]);
        let length = u32::try_from(LENGTH).unwrap();
        let location = DataLocation { pool_index, offset: 0, length };
        let filter = b.constant_in_pool(OutputSpec::new(F32, &[256, 256]), location);
        let bias = filled(&mut b, &[256], 0.0);
        let none = b.scalar_i32(0);
        let y = b.result_of(OperationType::FullyConnected, &[x, filter, bias, none], out());
        b.output(y);
        let model = b.build().unwrap();

        let purse = Purse::new(u64::MAX);
        CpuDevice::default().supported_operations_for(&model, &purse.caller()).unwrap();
        assert_eq!(purse.most() > 256 << 10, !is_sealed, "{} bytes for a survey", purse.most());
        prepare(&model, &purse.caller()).unwrap();
        assert_eq!(copies.load(Ordering::Relaxed) > 0, !is_sealed, "packed from where they lie");
        assert_eq!(purse.charged(), 0);
    }
}
