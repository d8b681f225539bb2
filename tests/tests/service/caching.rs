//! Compilation caching, by the same checks in this process and through a service.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use burst_client::{BurstOptions, Client};
use burst_driver::{CacheKey, CpuDevice};
use burst_hal::validate::RequestRules;
use burst_hal::{
    CacheFiles, Caller, CompilationCache, Device, ErrorStatus, ExecutionOptions,
    ExecutionPreference, ExecutionResult, Failure, Model, OperationType, PrepareOptions,
    PrepareResult, PreparedModel, Priority, Request, TimePoint,
};
use burst_server::ServiceOptions;
use burst_verify::functional::caching::{CHECKS, Setting, Sort, TestModel};

use crate::burst_support::{long, model, request_in, wait_until};
use crate::service_support::Shared;

fn key() -> CacheKey {
    CacheKey::new([3; CacheKey::BYTES])
}

fn cpu() -> CpuDevice {
    CpuDevice::default().with_cache_key(key())
}

/// A service of this device that lets its clients make as many calls as they like.
fn service(device: impl Device + 'static) -> Shared {
    let mut options = ServiceOptions::default();
    options.limits.setup_rate = 0;
    Shared::start(Arc::new(device), options)
}

/// Runs a check with models of both sorts, in this process and through a service.
#[track_caller]
fn everywhere(name: &str) {
    let (_, check) = CHECKS.iter().find(|(one, _)| *one == name).expect("a check of this name");
    let service = service(cpu());
    let client = service.connect().unwrap();
    let remote = client.devices().unwrap().remove(0);
    let local = cpu();
    let devices: [(&str, &dyn Device); 2] = [("here", &local), ("through a service", &remote)];
    for (place, device) in devices {
        for sort in [Sort::Float32, Sort::Quant8] {
            let folder = tempfile::tempdir().unwrap();
            let setting = Setting { device, folder: folder.path(), sort };
            check(&setting).unwrap_or_else(|fault| panic!("{sort:?}, {place}: {fault}"));
        }
    }
    drop(remote);
    drop(client);
    // Whatever was charged is given back, whatever came of the calls.
    wait_until("the end of the client's account", || {
        service.metric("burst_service_used{resource=\"memory_bytes\"}") == 0
    });
}

#[test]
fn every_check_of_compilation_caching_has_a_test() {
    let text = include_str!("caching.rs");
    for (name, _) in CHECKS {
        let test = format!("fn {name}() {{\n    everywhere(\"{name}\");\n}}");
        assert!(text.contains(&test), "no test of {name}");
    }
}

#[test]
fn what_was_saved_is_retrieved() {
    everywhere("what_was_saved_is_retrieved");
}

#[test]
fn files_are_used_from_their_start() {
    everywhere("files_are_used_from_their_start");
}

#[test]
fn saving_into_another_number_of_files() {
    everywhere("saving_into_another_number_of_files");
}

#[test]
fn saving_into_files_that_cannot_be_written() {
    everywhere("saving_into_files_that_cannot_be_written");
}

#[test]
fn retrieving_from_another_number_of_files() {
    everywhere("retrieving_from_another_number_of_files");
}

#[test]
fn retrieving_from_files_that_cannot_be_read() {
    everywhere("retrieving_from_files_that_cannot_be_read");
}

#[test]
fn descriptors_that_are_no_files() {
    everywhere("descriptors_that_are_no_files");
}

#[test]
fn retrieving_after_the_deadline() {
    everywhere("retrieving_after_the_deadline");
}

#[test]
fn model_files_of_another_model() {
    everywhere("model_files_of_another_model");
}

#[test]
fn another_token() {
    everywhere("another_token");
}

#[test]
fn corrupted_model_files() {
    everywhere("corrupted_model_files");
}

#[test]
fn corrupted_data_files() {
    everywhere("corrupted_data_files");
}

#[test]
fn model_files_of_another_length() {
    everywhere("model_files_of_another_length");
}

#[test]
fn data_files_of_another_length() {
    everywhere("data_files_of_another_length");
}

#[test]
fn files_that_change_while_they_are_saved() {
    everywhere("files_that_change_while_they_are_saved");
}

#[test]
fn files_that_change_while_they_are_read() {
    everywhere("files_that_change_while_they_are_read");
}

#[test]
fn bytes_that_change_while_they_are_read() {
    everywhere("bytes_that_change_while_they_are_read");
}

/// What a device was asked to keep.
#[derive(Debug, Default)]
struct Asked {
    users: Vec<Option<u32>>,
    tokens: Vec<[u8; 32]>,
    files: Vec<CacheFiles>,
    deadlines: Vec<Option<TimePoint>>,
}

/// A device that writes which file is which, and restores a model without rules, or fails.
struct Recorder {
    asked: Arc<Mutex<Asked>>,
    restores: Option<ErrorStatus>,
}

struct Plain;

impl PreparedModel for Plain {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        ExecutionResult::of(ErrorStatus::None)
    }
}

impl Recorder {
    fn note(&self, cache: &CompilationCache, deadline: Option<TimePoint>, caller: &Caller) {
        let mut asked = self.asked.lock().unwrap();
        asked.users.push(caller.user());
        asked.tokens.push(cache.token);
        asked.files.push(cache.files());
        asked.deadlines.push(deadline);
        let names = ["model 0", "model 1", "data 0"];
        for (name, mut file) in names.iter().zip(cache.model.iter().chain(&cache.data)) {
            file.write_all(name.as_bytes()).unwrap();
        }
    }
}

impl Device for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn cache_files_needed(&self) -> CacheFiles {
        CacheFiles { model: 2, data: 1 }
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(Plain))
    }

    fn prepare_model_caching(
        &self,
        _: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        caller: &Caller,
    ) -> PrepareResult {
        self.note(cache, options.deadline, caller);
        Ok(Arc::new(Plain))
    }

    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> PrepareResult {
        self.note(cache, deadline, caller);
        match self.restores {
            Some(status) => Err(status.into()),
            None => Ok(Arc::new(Plain)),
        }
    }
}

fn recorder(restores: Option<ErrorStatus>) -> (Shared, Client, Arc<Mutex<Asked>>) {
    let asked = Arc::<Mutex<Asked>>::default();
    let service = service(Recorder { asked: Arc::clone(&asked), restores });
    let client = service.connect().unwrap();
    (service, client, asked)
}

#[test]
fn files_token_user_and_deadline_reach_the_device_as_they_were_given() {
    let (_service, client, asked) = recorder(Some(ErrorStatus::MissedDeadlinePersistent));
    let device = client.devices().unwrap().remove(0);
    assert_eq!(device.cache_files_needed(), CacheFiles { model: 2, data: 1 });
    let files: Vec<File> = (0..3).map(|_| tempfile::tempfile().unwrap()).collect();
    let copy = |file: &File| file.try_clone().unwrap();
    let cache = CompilationCache {
        token: [77; 32],
        model: files[..2].iter().map(copy).collect(),
        data: files[2..].iter().map(copy).collect(),
    };
    let deadline = Some(TimePoint { nanos: u64::MAX / 2 });
    let options = PrepareOptions { deadline, ..PrepareOptions::default() };
    device.prepare_caching(&model(), &options, &cache).unwrap();
    for (file, name) in files.iter().zip(["model 0", "model 1", "data 0"]) {
        let mut bytes = [0; 16];
        let length = std::os::unix::fs::FileExt::read_at(file, &mut bytes, 0).unwrap();
        assert_eq!(&bytes[..length], name.as_bytes());
    }
    let failed = device.prepare_model_from_cache(&cache, deadline, &Caller::default());
    assert_eq!(failed.err().unwrap().status, ErrorStatus::MissedDeadlinePersistent);
    let asked = asked.lock().unwrap();
    let us = Some(rustix::process::geteuid().as_raw());
    assert_eq!(asked.users, [us, us]);
    assert_eq!(asked.tokens, [[77; 32]; 2]);
    assert_eq!(asked.files, [CacheFiles { model: 2, data: 1 }; 2]);
    assert_eq!(asked.deadlines, [deadline; 2]);
}

#[test]
fn a_restored_model_without_rules_is_none() {
    let (_service, client, asked) = recorder(None);
    let device = client.devices().unwrap().remove(0);
    let failed = device.prepare_from_cache(&CompilationCache::default(), None).unwrap_err();
    assert_eq!(failed.status(), ErrorStatus::GeneralFailure);
    assert!(failed.to_string().contains("does not say what a request"), "{failed}");
    assert_eq!(asked.lock().unwrap().tokens.len(), 1);
    assert!(client.devices().is_ok(), "the client goes on");
}

#[test]
fn more_files_than_a_message_brings_are_refused_or_not_kept() {
    let (_service, client, asked) = recorder(None);
    let device = client.devices().unwrap().remove(0);
    let file = tempfile::tempfile().unwrap();
    let model_files = (0..33).map(|_| file.try_clone().unwrap()).collect();
    let cache = CompilationCache { model: model_files, ..CompilationCache::default() };
    let failed = device.prepare_from_cache(&cache, None).unwrap_err();
    assert_eq!(failed.status(), ErrorStatus::InvalidArgument);
    device.prepare_caching(&model(), &PrepareOptions::default(), &cache).unwrap();
    assert!(asked.lock().unwrap().tokens.is_empty(), "the device has seen none of it");
}

fn cache_files() -> CompilationCache {
    let file = || vec![tempfile::tempfile().unwrap()];
    CompilationCache { token: [1; 32], model: file(), data: file() }
}

#[test]
fn a_restored_model_executes_over_the_socket_and_over_a_burst_and_refuses_what_is_not_legal() {
    let service = service(cpu());
    let client = service.connect().unwrap();
    let device = client.devices().unwrap().remove(0);
    let cache = cache_files();
    let options = PrepareOptions {
        preference: ExecutionPreference::SustainedSpeed,
        priority: Priority::Low,
        deadline: None,
    };
    let full = device.prepare_caching(&model(), &options, &cache).unwrap();
    let restored = device.prepare_from_cache(&cache, None).unwrap();
    for prepared in [&full, &restored] {
        assert_eq!(prepared.prepare_options(), Some(options), "only the files say it");
    }
    let values = [-1.0_f32, 2.0, -3.0, 4.0].map(f32::to_le_bytes).concat();
    let results = [&full, &restored].map(|prepared| {
        let memory: burst_hal::Pool =
            Arc::new(burst_hal::HeapMemory::new([values.as_slice(), &[0; 16]].concat()));
        let mut request = request_in(&memory);
        let options = ExecutionOptions::default();
        let result = prepared.execute_synchronously(&request, &options);
        assert_eq!(result.status, ErrorStatus::None);
        let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
        let executed = burst.execute(&request, &options, long()).unwrap();
        assert_eq!(executed.status, ErrorStatus::None);
        request.outputs.clear();
        let result = prepared.execute_synchronously(&request, &options);
        assert_eq!(result.status, ErrorStatus::InvalidArgument, "an output is missing");
        let mut bytes = [0; 16];
        memory.read(16, &mut bytes).unwrap();
        bytes
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0].as_slice(), [0.0_f32, 2.0, 0.0, 4.0].map(f32::to_le_bytes).concat());
}

#[test]
fn a_service_with_the_same_key_takes_what_an_earlier_one_has_kept() {
    let cache = cache_files();
    let prepared = |service: &Shared| {
        let client = service.connect().unwrap();
        client.devices().unwrap().remove(0).prepare_from_cache(&cache, None)
    };
    let first = service(cpu());
    let client = first.connect().unwrap();
    let device = client.devices().unwrap().remove(0);
    device.prepare_caching(&model(), &PrepareOptions::default(), &cache).unwrap();
    drop((device, client, first));
    prepared(&service(cpu())).unwrap();
    let other = CpuDevice::default().with_cache_key(CacheKey::new([4; CacheKey::BYTES]));
    let refused = prepared(&service(other)).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::GeneralFailure);
    // What this process keeps for itself is no user's.
    let here = cpu().prepare_model_from_cache(&cache, None, &Caller::default());
    assert_eq!(here.err().unwrap().status, ErrorStatus::GeneralFailure);
}

#[test]
fn a_service_without_a_key_prepares_and_keeps_nothing() {
    let service = service(CpuDevice::default());
    let client = service.connect().unwrap();
    let device = client.devices().unwrap().remove(0);
    assert_eq!(device.cache_files_needed(), CacheFiles::default());
    let cache = cache_files();
    device.prepare_caching(&model(), &PrepareOptions::default(), &cache).unwrap();
    assert_eq!(cache.model[0].metadata().unwrap().len(), 0);
    let refused = device.prepare_from_cache(&cache, None).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::GeneralFailure);
}

#[test]
fn the_test_models_are_longer_than_their_headers_say() {
    // The checks corrupt what follows a header, too: there has to be something.
    for sort in [Sort::Float32, Sort::Quant8] {
        for operation in [OperationType::Add, OperationType::Mul] {
            let prepare = |model: &Model| {
                assert!(RequestRules::new(model).is_ok());
                assert!(model.operand_values.len() > 1000);
                cpu().prepare_model(model, &PrepareOptions::default())
            };
            TestModel::new(sort, operation, prepare).unwrap();
        }
    }
}
