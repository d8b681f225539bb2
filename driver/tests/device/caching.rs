//! Compilations in files: what is kept, for whom, and who pays while they are read.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use burst_driver::{CacheKey, CpuDevice, DeviceOptions, Isa};
use burst_hal::{
    CacheFiles, Caller, CancelWord, CompilationCache, DataLocation, Device, ErrorStatus,
    ExecutionOptions, ExecutionPreference, Failure, HeapMemory, MemoryAccount, Model, ModelBuilder,
    OperandType, OperationType, OutputSpec, Pool, PrepareOptions, PreparedModel, Priority, Request,
    RequestArgument, RequestPool, TimePoint, Turn,
};

const F32: OperandType = OperandType::TensorFloat32;
const KEY: [u8; CacheKey::BYTES] = [11; CacheKey::BYTES];

fn device() -> CpuDevice {
    CpuDevice::default().with_cache_key(CacheKey::new(KEY))
}

fn memory_file() -> File {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    File::from(rustix::fs::memfd_create("compilation", flags).unwrap())
}

fn files() -> CompilationCache {
    CompilationCache { token: [4; 32], model: vec![memory_file()], data: vec![memory_file()] }
}

fn contents(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn numbers(count: u32) -> Vec<f32> {
    (0..count).map(|index| f32::from(u8::try_from(index % 200).unwrap()) / 64.0 - 1.5).collect()
}

fn out() -> OutputSpec {
    OutputSpec::new(F32, &[])
}

const INPUT: [u32; 4] = [1, 6, 6, 16];

/// A convolution whose filter is widened from 16 bits when the model is prepared.
fn widened() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &INPUT);
    let count = 24 * 3 * 3 * 16;
    let halves: Vec<u8> = (0..count)
        .flat_map(|index: u32| {
            // Halves between 1 and 2: an exponent of 15 and any fraction.
            let half = 0x3c00 | u16::try_from(index % 1024).unwrap();
            half.to_le_bytes()
        })
        .collect();
    let half = OutputSpec::new(OperandType::TensorFloat16, &[24, 3, 3, 16]);
    let halves = b.constant_bytes(half, &halves);
    let filter = b.result_of(OperationType::Cast, &[halves], OutputSpec::f32(&[24, 3, 3, 16]));
    let bias = b.constant_f32(&[24], &numbers(24));
    let [same, one, none] = [1, 1, 0].map(|value| b.scalar_i32(value));
    let y = b.result_of(OperationType::Conv2d, &[x, filter, bias, same, one, one, none], out());
    b.output(y);
    b.build().unwrap()
}

/// A depthwise convolution and a sum, with constants in two pools of which most bytes are nobody's.
fn pooled() -> Model {
    let bytes =
        |count: u32| numbers(count).iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &INPUT);
    let first = b.pool(Arc::new(HeapMemory::new([vec![7; 1 << 20], bytes(9 * 16)].concat())));
    let second = b.pool(Arc::new(HeapMemory::new([vec![0; 4], bytes(16)].concat())));
    let place = |pool_index, offset, length| DataLocation { pool_index, offset, length };
    let filter = OutputSpec::f32(&[1, 3, 3, 16]);
    let filter = b.constant_in_pool(filter, place(first, 1 << 20, 9 * 64));
    let bias = b.constant_in_pool(OutputSpec::f32(&[16]), place(second, 4, 64));
    let again = b.constant_in_pool(OutputSpec::f32(&[16]), place(second, 4, 64));
    let [same, one, none] = [1, 1, 0].map(|value| b.scalar_i32(value));
    let operands = [x, filter, bias, same, one, one, one, none];
    let y = b.result_of(OperationType::DepthwiseConv2d, &operands, out());
    let z = b.result_of(OperationType::Add, &[y, again, none], out());
    b.output(z);
    b.build().unwrap()
}

/// A model that runs one of two graphs, one of which folds a value; and shapes that only executions know.
fn branches() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &INPUT);
    let condition = b.constant_bool(&[1], &[true]);
    let graph = |b: &mut ModelBuilder, value: f32| {
        let number = b.referenced(|b| {
            let x = b.input(F32, &INPUT);
            let (one, other) =
                (b.constant_f32(&[16], &[value; 16]), b.constant_f32(&[16], &numbers(16)));
            let none = b.scalar_i32(0);
            let sum = b.result_of(OperationType::Add, &[one, other, none], OutputSpec::f32(&[16]));
            let y = b.result_of(OperationType::Mul, &[x, sum, none], OutputSpec::f32(&INPUT));
            b.output(y);
        });
        b.subgraph(number)
    };
    let (then, otherwise) = (graph(&mut b, 1.0), graph(&mut b, 2.0));
    let y =
        b.result_of(OperationType::If, &[condition, then, otherwise, x], OutputSpec::f32(&INPUT));
    b.output(y);
    b.build().unwrap()
}

/// A convolution of bytes between floats, in every way in which weights of 8 bits are stored: with an odd depth and
/// a number of channels that fills no panel.
fn bytes(weights: OperandType, activations: OperandType) -> Model {
    let mut b = ModelBuilder::new();
    let zero = if activations == OperandType::TensorQuant8Asymm { 128 } else { -3 };
    let spec = |dims: &[u32], scale| OutputSpec::new(activations, dims).quantized(scale, zero);
    let x = b.input(F32, &INPUT);
    let x = b.result_of(OperationType::Quantize, &[x], spec(&INPUT, 0.03));
    let values: Vec<u8> = (0..=255).cycle().take(21 * 3 * 3 * 16).collect();
    let dims = [21, 3, 3, 16];
    let filter = match weights {
        OperandType::TensorQuant8SymmPerChannel => {
            let scales: Vec<f32> = (1..=21).map(|unit: u8| 0.001 * f32::from(unit)).collect();
            OutputSpec::new(weights, &dims).per_channel(&scales, 0)
        }
        ty => OutputSpec::new(ty, &dims)
            .quantized(0.02, if ty == OperandType::TensorQuant8Asymm { 120 } else { 5 }),
    };
    let bias_scale = match weights {
        OperandType::TensorQuant8SymmPerChannel => 0.0,
        _ => 0.02 * 0.03,
    };
    let filter = b.constant_bytes(filter, &values);
    let bias = OutputSpec::new(OperandType::TensorInt32, &[21]).quantized(bias_scale, 0);
    let bias = b.constant_i32_of(bias, &[-700; 21]);
    let [same, one, none] = [1, 1, 0].map(|value| b.scalar_i32(value));
    let operands = [x, filter, bias, same, one, one, none];
    let y = b.result_of(OperationType::Conv2d, &operands, spec(&[], 0.9));
    let z = b.result_of(OperationType::Dequantize, &[y], out());
    b.output(z);
    b.build().unwrap()
}

/// A layer of long short-term memory cells over a sequence: with a projection, and peepholes of all gates but one.
fn cells() -> Model {
    let (units, inputs, outputs) = (20, 16, 12);
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[1, 36, inputs]);
    let mut operands = vec![x];
    let small = |count: u32, by: f32| numbers(count).iter().map(|x| x / by).collect::<Vec<f32>>();
    for gate in 0..4_u8 {
        operands
            .push(b.constant_f32(&[units, inputs], &small(units * inputs, 9.0 + f32::from(gate))));
    }
    for gate in 0..4_u8 {
        operands.push(
            b.constant_f32(&[units, outputs], &small(units * outputs, 7.0 + f32::from(gate))),
        );
    }
    for _ in 0..3 {
        operands.push(b.constant_f32(&[units], &small(units, 5.0)));
    }
    for _ in 0..4 {
        operands.push(b.constant_f32(&[units], &small(units, 3.0)));
    }
    operands.push(b.constant_f32(&[outputs, units], &small(outputs * units, 4.0)));
    operands.push(b.omitted(F32));
    for size in [outputs, units] {
        operands.push(b.constant_f32(&[1, size], &small(size, 10.0)));
    }
    operands.push(b.scalar_i32(4));
    operands.extend([b.scalar_f32(0.0), b.scalar_f32(0.0), b.scalar_bool(false)]);
    for _ in 0..4 {
        operands.push(b.omitted(F32));
    }
    let y = b.result_of(OperationType::UnidirectionalSequenceLstm, &operands, out());
    b.output(y);
    b.build().unwrap()
}

/// A sum with a constant that is read as it is, and is nearly all that the file holds.
fn offsets() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &INPUT);
    let constant = b.constant_f32(&INPUT, &numbers(576));
    let none = b.scalar_i32(0);
    let y = b.result_of(OperationType::Add, &[x, constant, none], out());
    b.output(y);
    b.build().unwrap()
}

fn models() -> [(&'static str, Model); 8] {
    use OperandType::{TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorQuant8SymmPerChannel};
    [
        ("widened", widened()),
        ("pooled", pooled()),
        ("branches", branches()),
        ("cells", cells()),
        ("offsets", offsets()),
        ("bytes", bytes(TensorQuant8Asymm, TensorQuant8Asymm)),
        ("signed bytes", bytes(TensorQuant8AsymmSigned, TensorQuant8AsymmSigned)),
        ("channels", bytes(TensorQuant8SymmPerChannel, TensorQuant8AsymmSigned)),
    ]
}

fn run(model: &dyn PreparedModel) -> Vec<u8> {
    let input: Vec<u8> = numbers(576).iter().flat_map(|x| x.to_le_bytes()).collect();
    let argument = |pool_index, length| RequestArgument {
        location: DataLocation { pool_index, offset: 0, length },
        ..RequestArgument::default()
    };
    let length = u32::try_from(input.len()).unwrap();
    let output = Arc::new(HeapMemory::new(vec![0; 8 * input.len()]));
    let request = Request {
        inputs: vec![argument(0, length)],
        outputs: vec![argument(1, 8 * length)],
        pools: [Arc::new(HeapMemory::new(input)) as Pool, Arc::clone(&output) as Pool]
            .map(RequestPool::Memory)
            .to_vec(),
    };
    let result = model.execute_synchronously(&request, &ExecutionOptions::default());
    assert_eq!(result.status, ErrorStatus::None);
    output.to_vec()
}

fn keep(device: &CpuDevice, model: &Model, cache: &CompilationCache) -> Arc<dyn PreparedModel> {
    let (options, caller) = (PrepareOptions::default(), Caller::default());
    device.prepare_model_caching(model, &options, cache, &caller).unwrap()
}

fn take(device: &CpuDevice, cache: &CompilationCache) -> Result<Arc<dyn PreparedModel>, Failure> {
    device.prepare_model_from_cache(cache, None, &Caller::default())
}

#[track_caller]
fn refused(device: &CpuDevice, cache: &CompilationCache, caller: &Caller) -> ErrorStatus {
    let taken = device.prepare_model_from_cache(cache, None, caller);
    taken.err().expect("no model").status
}

#[test]
fn a_restored_model_computes_the_same_bits_and_knows_how_it_was_prepared() {
    for isa in Isa::each_here() {
        for fast_kernels in [true, false] {
            let options = DeviceOptions { isa, fast_kernels, ..DeviceOptions::default() };
            let device = CpuDevice::new(options).with_cache_key(CacheKey::new(KEY));
            for (name, model) in models() {
                let cache = files();
                let options = PrepareOptions {
                    preference: ExecutionPreference::LowPower,
                    priority: Priority::Low,
                    deadline: Some(TimePoint { nanos: u64::MAX }),
                };
                let full =
                    device.prepare_model_caching(&model, &options, &cache, &Caller::default());
                let full = full.unwrap();
                let restored = take(&device, &cache).unwrap();
                assert_eq!(run(&*restored), run(&*full), "{name}, {isa:?}, {fast_kernels}");
                assert_eq!(run(&*restored), run(&*device.prepare_model(&model, &options).unwrap()));
                let kept = PrepareOptions { deadline: None, ..options };
                assert_eq!(restored.prepare_options(), Some(kept), "{name}");
                assert_eq!(restored.request_rules().unwrap().counts(), (1, 1), "{name}");
            }
        }
    }
}

#[test]
fn what_is_kept_is_the_same_however_often() {
    for (name, model) in models() {
        let (first, second) = (files(), files());
        keep(&device(), &model, &first);
        keep(&device(), &model, &second);
        keep(&device(), &model, &second);
        assert_eq!(contents(&first.model[0]), contents(&second.model[0]), "{name}");
        assert_eq!(contents(&first.data[0]), contents(&second.data[0]), "{name}");
    }
}

#[test]
fn only_what_a_plan_still_reads_is_kept() {
    let cache = files();
    keep(&device(), &widened(), &cache);
    let values = 24 * 3 * 3 * 16;
    let (model, data) = (contents(&cache.model[0]).len(), contents(&cache.data[0]).len());
    assert!(model < values, "{model} bytes: the halves are of no use once they are widened");
    assert!(data >= 4 * values, "{data} bytes hold what they became");
    assert!(
        data < 2 * 4 * values,
        "{data} bytes hold it as the kernel reads it, and not as it was too"
    );
    keep(&device(), &pooled(), &cache);
    let model = contents(&cache.model[0]).len();
    assert!(model < 8 << 10, "{model} bytes, of pools of which most is nobody's");
    assert!(contents(&cache.data[0]).len() < 1 << 10, "nothing was folded");
    // Weights of 8 bits lie in one of the files: packed, where a kernel of our own reads them.
    let quantized = OperandType::TensorQuant8Asymm;
    keep(&device(), &bytes(quantized, quantized), &cache);
    let weights = 21 * 3 * 3 * 16;
    let (model, data) = (contents(&cache.model[0]).len(), contents(&cache.data[0]).len());
    assert!(model + data < 2 * weights + (1 << 11), "{model} and {data} bytes");
    if cfg!(target_arch = "x86_64") {
        assert!(model < weights && data >= weights, "{model} and {data} bytes");
    }
}

#[test]
fn matrices_of_cells_are_kept_as_they_are_read_and_not_as_they_were_too() {
    let cache = files();
    keep(&device(), &cells(), &cache);
    let matrices = 4 * (4 * 20 * (16 + 12) + 12 * 20);
    let (model, data) = (contents(&cache.model[0]).len(), contents(&cache.data[0]).len());
    assert!(model < matrices / 2, "{model} bytes: no matrix");
    assert!(data > matrices, "{data} bytes: all matrices");
}

#[test]
fn constants_stay_where_they_were_read() {
    let cache = files();
    keep(&device(), &offsets(), &cache);
    let purse = Purse::new(u64::MAX);
    let caller = Caller::default().with_account(Arc::clone(&purse) as _);
    let full = device().prepare_model_for(&offsets(), &PrepareOptions::default(), &caller).unwrap();
    let held = purse.charged();
    drop(full);
    let files_hold = (contents(&cache.model[0]).len() + contents(&cache.data[0]).len()) as u64;
    let restored = device().prepare_model_from_cache(&cache, None, &caller).unwrap();
    let (charged, constant) = (purse.charged(), 4 * 576);
    assert!(charged < held - constant + files_hold, "{charged} and {held}: not there twice");
    assert_eq!(
        run(&*restored),
        run(&*device().prepare_model(&offsets(), &PrepareOptions::default()).unwrap())
    );
    drop(restored);
    assert_eq!(purse.charged(), 0);
}

#[test]
fn what_was_folded_is_not_folded_again() {
    let cache = files();
    keep(&device(), &widened(), &cache);
    // The restored model is charged what the other one is: with the order of the kept weights, which stay in
    // what was read, there is a short list in front of them.
    let purse = Purse::new(u64::MAX);
    let caller = Caller::default().with_account(Arc::clone(&purse) as _);
    let full = device().prepare_model_for(&widened(), &PrepareOptions::default(), &caller).unwrap();
    let held = purse.charged();
    drop(full);
    let restored = device().prepare_model_from_cache(&cache, None, &caller).unwrap();
    let charged = purse.charged();
    assert!(charged < held + (1 << 10), "{charged} and {held}: what the files held is given back");
    drop(restored);
    assert_eq!(purse.charged(), 0);
}

#[test]
fn files_of_another_key_user_or_way_to_compute_are_refused() {
    let cache = files();
    keep(&device(), &widened(), &cache);
    let other_key = CpuDevice::default().with_cache_key(CacheKey::new([12; CacheKey::BYTES]));
    let plain = DeviceOptions { fast_kernels: false, ..DeviceOptions::default() };
    let plain = CpuDevice::new(plain).with_cache_key(CacheKey::new(KEY));
    let anyone = Caller::default();
    for (what, device, caller) in [
        ("another key", &other_key, anyone.clone()),
        ("other kernels", &plain, anyone.clone()),
        ("another user", &device(), anyone.clone().with_user(0)),
    ] {
        assert_eq!(refused(device, &cache, &caller), ErrorStatus::GeneralFailure, "{what}");
    }
    for isa in Isa::each_here().filter(|isa| *isa != Isa::detect()) {
        let other = CpuDevice::new(DeviceOptions { isa, ..DeviceOptions::default() });
        let other = other.with_cache_key(CacheKey::new(KEY));
        assert_eq!(refused(&other, &cache, &anyone), ErrorStatus::GeneralFailure, "{isa:?}");
    }
    // What is kept for one user is for all of its processes, and for no other user.
    let (seven, eight) = (Caller::default().with_user(7), Caller::default().with_user(8));
    let options = PrepareOptions::default();
    device().prepare_model_caching(&widened(), &options, &cache, &seven).unwrap();
    device().prepare_model_from_cache(&cache, None, &seven).unwrap();
    assert_eq!(refused(&device(), &cache, &eight), ErrorStatus::GeneralFailure);
    assert_eq!(refused(&device(), &cache, &anyone), ErrorStatus::GeneralFailure);
}

#[test]
fn threads_make_no_difference() {
    let cache = files();
    keep(&device(), &widened(), &cache);
    let options = DeviceOptions { threads: 2, ..DeviceOptions::default() };
    let other = CpuDevice::new(options).with_cache_key(CacheKey::new(KEY));
    let taken = take(&other, &cache).unwrap();
    assert_eq!(run(&*taken), run(&*take(&device(), &cache).unwrap()));
}

#[test]
fn a_device_without_a_key_keeps_nothing() {
    let (device, cache) = (CpuDevice::default(), files());
    assert_eq!(device.cache_files_needed(), CacheFiles::default());
    assert_eq!(self::device().cache_files_needed(), CacheFiles { model: 1, data: 1 });
    let prepared = keep(&device, &widened(), &cache);
    assert!(contents(&cache.model[0]).is_empty() && contents(&cache.data[0]).is_empty());
    drop(prepared);
    let none = CompilationCache::default();
    for cache in [&cache, &none] {
        assert_eq!(refused(&device, cache, &Caller::default()), ErrorStatus::GeneralFailure);
    }
}

/// An account with a limit.
#[derive(Debug)]
struct Purse {
    limit: u64,
    charged: AtomicU64,
}

impl Purse {
    fn new(limit: u64) -> Arc<Self> {
        Arc::new(Purse { limit, charged: AtomicU64::new(0) })
    }

    fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }
}

impl MemoryAccount for Purse {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        if self.charged() + bytes > self.limit {
            return Err(Failure::new(
                ErrorStatus::ResourceExhaustedTransient,
                "the purse is empty",
            ));
        }
        self.charged.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.charged.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[test]
fn reading_files_is_paid_for_and_refused_where_the_account_does_not_suffice() {
    let cache = files();
    keep(&device(), &widened(), &cache);
    let whole = contents(&cache.model[0]).len() + contents(&cache.data[0]).len();
    let mut refusals = 0;
    let mut limit = 0;
    loop {
        let purse = Purse::new(limit);
        let caller = Caller::default().with_account(Arc::clone(&purse) as _);
        match device().prepare_model_from_cache(&cache, None, &caller) {
            Ok(model) => {
                assert!(limit > whole as u64, "{limit} bytes are not enough for the files");
                drop(model);
            }
            Err(failure) => {
                assert_eq!(failure.status, ErrorStatus::ResourceExhaustedTransient);
                refusals += 1;
            }
        }
        assert_eq!(purse.charged(), 0, "limit {limit}");
        if limit > 64 * whole as u64 {
            break;
        }
        limit = limit * 5 / 4 + 1000;
    }
    assert!(refusals > 5, "{refusals}");
}

#[test]
fn whoever_has_no_room_to_keep_a_compilation_has_its_model_all_the_same() {
    let cache = files();
    let expected = run(&*keep(&device(), &widened(), &cache));
    let options = PrepareOptions::default();
    let (mut limit, mut prepared, mut kept) = (0, 0, 0);
    while kept == 0 || limit < 1 << 20 {
        for file in [&cache.model[0], &cache.data[0]] {
            file.set_len(0).unwrap();
        }
        let purse = Purse::new(limit);
        let caller = Caller::default().with_account(Arc::clone(&purse) as _);
        let plain = device().prepare_model_for(&widened(), &options, &caller).is_ok();
        let caching = device().prepare_model_caching(&widened(), &options, &cache, &caller);
        assert_eq!(plain, caching.is_ok(), "limit {limit}");
        prepared += u32::from(plain);
        drop(caching);
        assert_eq!(purse.charged(), 0);
        if let Ok(model) = take(&device(), &cache) {
            assert_eq!(run(&*model), expected, "limit {limit}");
            kept += 1;
        }
        limit = limit * 9 / 8 + 1000;
    }
    assert!(prepared > kept, "{prepared} prepared, {kept} kept");
}

/// Cancels once it was stepped aside so often.
#[derive(Debug)]
struct Cancelling {
    word: CancelWord,
    left: Mutex<u32>,
}

impl Turn for Cancelling {
    fn give_way(&self) {}

    fn step_aside(&self, may_wait: &mut dyn FnMut()) {
        let mut left = self.left.lock().unwrap();
        match left.checked_sub(1) {
            Some(fewer) => *left = fewer,
            None => self.word.cancel(),
        }
        may_wait();
    }
}

#[test]
fn whoever_cancels_while_files_are_read_or_written_gets_no_half_of_anything() {
    let cache = files();
    let full = keep(&device(), &widened(), &cache);
    let caller = |left| {
        let word = CancelWord::default();
        let turn = Cancelling { word: word.clone(), left: Mutex::new(left) };
        Caller::new(&word).with_turn(Arc::new(turn))
    };
    let mut read = 0;
    for left in 0.. {
        match device().prepare_model_from_cache(&cache, None, &caller(left)) {
            Ok(model) => {
                assert_eq!(run(&*model), run(&*full));
                break;
            }
            Err(failure) => assert_eq!(failure.status, ErrorStatus::GeneralFailure),
        }
        read = left + 1;
    }
    assert!(read >= 6, "cancelled at {read} system calls");
    for left in 0..20 {
        let options = PrepareOptions::default();
        let prepared = device().prepare_model_caching(&widened(), &options, &cache, &caller(left));
        assert_eq!(run(&*prepared.unwrap()), run(&*full), "the model was prepared by then");
        if let Ok(model) = take(&device(), &cache) {
            assert_eq!(run(&*model), run(&*full), "cancelled at system call {left}");
        }
    }
}

#[test]
fn a_deadline_ends_reading_and_writing() {
    let cache = files();
    let passed = Some(TimePoint { nanos: 1 });
    let options = PrepareOptions { deadline: passed, ..PrepareOptions::default() };
    let caller = Caller::default();
    let late = device().prepare_model_caching(&widened(), &options, &cache, &caller);
    assert_eq!(late.err().unwrap().status, ErrorStatus::MissedDeadlinePersistent);
    keep(&device(), &widened(), &cache);
    let late = device().prepare_model_from_cache(&cache, passed, &caller);
    assert_eq!(late.err().unwrap().status, ErrorStatus::MissedDeadlinePersistent);
    // Another number of files is told first, as it always is.
    let late = device().prepare_model_from_cache(&CompilationCache::default(), passed, &caller);
    assert_eq!(late.err().unwrap().status, ErrorStatus::InvalidArgument);
}

#[test]
fn a_file_that_only_appends_is_not_written() {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let cache = files();
    let model = &cache.model[0];
    fcntl_setfl(model, fcntl_getfl(model).unwrap() | OFlags::APPEND).unwrap();
    keep(&device(), &widened(), &cache);
    assert!(contents(model).is_empty() && contents(&cache.data[0]).is_empty());
}

#[test]
fn the_same_file_twice_holds_no_compilation() {
    let file = memory_file();
    let (model, data) = (vec![file.try_clone().unwrap()], vec![file]);
    let cache = CompilationCache { token: [4; 32], model, data };
    run(&*keep(&device(), &widened(), &cache));
    let status = refused(&device(), &cache, &Caller::default());
    assert_eq!(status, ErrorStatus::GeneralFailure);
}
