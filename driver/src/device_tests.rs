//! Compilations that another build of the driver has kept, and what all ways of preparing do.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_hal::{
    DataLocation, ExecutionOptions, HeapMemory, MemoryAccount, ModelBuilder, OperandType,
    OperationType, OutputSpec, Pool, Request, RequestArgument, RequestPool,
};

use super::*;

/// This device as another build of the driver has it.
fn of_build(build: &'static str) -> CpuDevice {
    let device = CpuDevice::default().with_cache_key(CacheKey::new([5; CacheKey::BYTES]));
    CpuDevice { build, ..device }
}

fn files() -> CompilationCache {
    let file = || {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        File::from(rustix::fs::memfd_create("compilation", flags).unwrap())
    };
    CompilationCache { token: [4; 32], model: vec![file()], data: vec![file()] }
}

/// `x + (1 + by)`, of which the sum in brackets is folded.
fn adding(by: f32) -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[2]);
    let none = b.scalar_i32(0);
    let [one, other] = [1.0, by].map(|value| b.constant_f32(&[2], &[value; 2]));
    let sum = b.result_of(OperationType::Add, &[one, other, none], OutputSpec::f32(&[2]));
    let y = b.result_of(OperationType::Add, &[x, sum, none], OutputSpec::f32(&[2]));
    b.output(y);
    b.build().unwrap()
}

/// What becomes of two zeros.
fn run(model: &dyn PreparedModel) -> Vec<u8> {
    let memory: Arc<HeapMemory> = Arc::new(HeapMemory::new(vec![0; 16]));
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 8 },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(8)],
        pools: vec![RequestPool::Memory(Arc::clone(&memory) as Pool)],
    };
    let result = model.execute_synchronously(&request, &ExecutionOptions::default());
    assert_eq!(result.status, ErrorStatus::None);
    memory.to_vec().split_off(8)
}

fn sum(by: f32) -> Vec<u8> {
    [1.0 + by; 2].map(f32::to_ne_bytes).concat()
}

fn keep(device: &CpuDevice, by: f32, cache: &CompilationCache) {
    let (options, caller) = (PrepareOptions::default(), Caller::default());
    let prepared = device.prepare_model_caching(&adding(by), &options, cache, &caller).unwrap();
    assert_eq!(run(&*prepared), sum(by));
}

fn taken(device: &CpuDevice, cache: &CompilationCache) -> Result<Vec<u8>, ErrorStatus> {
    let taken = device.prepare_model_from_cache(cache, None, &Caller::default());
    taken.map(|model| run(&*model)).map_err(|failure| failure.status)
}

#[test]
fn files_of_another_build_are_refused_and_kept_anew() {
    let (ours, other) = (of_build(cache::BUILD), of_build("a build of yesterday"));
    let refused = Err(ErrorStatus::GeneralFailure);
    let cache = files();
    keep(&other, 2.0, &cache);
    assert_eq!(taken(&other, &cache), Ok(sum(2.0)), "they are right files, of that build");
    assert_eq!(taken(&ours, &cache), refused);
    keep(&ours, 4.0, &cache);
    assert_eq!(taken(&ours, &cache), Ok(sum(4.0)));
    assert_eq!(taken(&other, &cache), refused);
    // One file of each build.
    let theirs = files();
    keep(&other, 4.0, &theirs);
    let CompilationCache { token, model, data } = theirs;
    for mixed in [
        CompilationCache { token, model: cache.model, data },
        CompilationCache { token, model, data: cache.data },
    ] {
        assert_eq!(taken(&ours, &mixed), refused);
        assert_eq!(taken(&other, &mixed), refused);
    }
}

/// An account that counts how often it is asked.
#[derive(Debug, Default)]
struct Asked(AtomicU64);

impl MemoryAccount for Asked {
    fn charge(&self, _: u64) -> Result<(), Failure> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, _: u64) {}
}

/// A rehearsal asks the account for more than preparing alone.
#[test]
fn a_small_model_is_rehearsed_whichever_way_it_is_prepared_and_never_for_low_power() {
    let device = of_build(cache::BUILD);
    let asked = |prepare: &dyn Fn(&Caller)| {
        let account = Arc::new(Asked::default());
        prepare(&Caller::default().with_account(Arc::clone(&account) as _));
        account.0.load(Ordering::Relaxed)
    };
    let all = |preference| {
        let options = PrepareOptions { preference, ..PrepareOptions::default() };
        let (model, cache) = (adding(2.0), files());
        [
            asked(&|caller| drop(device.prepare_model_for(&model, &options, caller).unwrap())),
            asked(&|caller| {
                drop(device.prepare_model_caching(&model, &options, &cache, caller).unwrap());
            }),
            asked(&|caller| drop(device.prepare_model_from_cache(&cache, None, caller).unwrap())),
        ]
    };
    let rehearsed = all(ExecutionPreference::FastSingleAnswer);
    let not = all(ExecutionPreference::LowPower);
    assert!(rehearsed.iter().zip(&not).all(|(one, other)| one > other), "{rehearsed:?}, {not:?}");
}
