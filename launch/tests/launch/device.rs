//! What the decorator passes on.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use burst_hal::{
    Buffer, BufferRequest, BufferRole, Burst, BurstExecutor, CacheFiles, Caller, Capabilities,
    CompilationCache, Device, DeviceStatus, DeviceType, ErrorStatus, ExecutionOptions,
    ExecutionResult, Extension, Failure, MemoryAccount, Model, Pace, PlainBurst, PrepareOptions,
    PrepareResult, PreparedModel, Request, TimePoint,
};
use burst_launch::Launcher;

use crate::gated::model;

/// Says which of its functions was called.
#[derive(Clone)]
struct Telling(Sender<&'static str>);

impl Telling {
    fn tell(&self, what: &'static str) {
        self.0.send(what).unwrap();
    }
}

impl Device for Telling {
    fn name(&self) -> &str {
        "telling"
    }

    fn version_string(&self) -> &str {
        "telling-1"
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Accelerator
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        Err(Failure::general("the capabilities of Telling"))
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        vec![Extension { name: "a.b".to_owned(), operand_types: Vec::new() }]
    }

    fn cache_files_needed(&self) -> CacheFiles {
        CacheFiles { model: 1, data: 2 }
    }

    fn status(&self) -> DeviceStatus {
        DeviceStatus::Busy
    }

    fn supported_operations(&self, _: &Model) -> Result<Vec<bool>, Failure> {
        self.tell("supported_operations");
        Ok(vec![true])
    }

    fn supported_operations_for(&self, _: &Model, _: &Caller) -> Result<Vec<bool>, Failure> {
        self.tell("supported_operations_for");
        Ok(vec![false])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        self.tell("prepare_model");
        Ok(Arc::new(self.clone()))
    }

    fn prepare_model_for(&self, _: &Model, _: &PrepareOptions, _: &Caller) -> PrepareResult {
        self.tell("prepare_model_for");
        Ok(Arc::new(self.clone()))
    }

    fn prepare_model_caching(
        &self,
        _: &Model,
        _: &PrepareOptions,
        _: &CompilationCache,
        _: &Caller,
    ) -> PrepareResult {
        self.tell("prepare_model_caching");
        Ok(Arc::new(self.clone()))
    }

    fn prepare_model_from_cache(
        &self,
        _: &CompilationCache,
        _: Option<TimePoint>,
        _: &Caller,
    ) -> PrepareResult {
        self.tell("prepare_model_from_cache");
        Ok(Arc::new(self.clone()))
    }

    fn allocate(&self, request: &BufferRequest, _: &Caller) -> Result<Arc<dyn Buffer>, Failure> {
        let own = |model: &Arc<dyn PreparedModel>| {
            let any: &dyn std::any::Any = &**model;
            any.is::<Telling>()
        };
        self.tell(if request.models.iter().all(own) { "allocate" } else { "foreign models" });
        Err(Failure::general("no buffers"))
    }
}

impl PreparedModel for Telling {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        self.tell("execute_synchronously");
        ExecutionResult::of(ErrorStatus::None)
    }

    fn execute_for(&self, _: &Request, _: &ExecutionOptions, _: &Caller) -> ExecutionResult {
        self.tell("execute_for");
        ExecutionResult::of(ErrorStatus::None)
    }

    fn pace(&self) -> Option<&Pace> {
        self.tell("pace");
        None
    }

    fn prepare_options(&self) -> Option<PrepareOptions> {
        self.tell("prepare_options");
        None
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        self.tell("open_burst");
        Ok(Box::new(PlainBurst::new(self)))
    }

    fn open_executor(self: Arc<Self>) -> Result<Option<Box<dyn BurstExecutor>>, Failure> {
        self.tell("open_executor");
        Ok(None)
    }
}

fn telling() -> (Arc<dyn Device>, Receiver<&'static str>) {
    let (say, said) = channel();
    (Launcher::default().wrap(Arc::new(Telling(say))), said)
}

#[test]
fn every_question_reaches_the_device() {
    let (device, said) = telling();
    let (model, options, caller) = (model(&[1]), PrepareOptions::default(), Caller::default());
    assert_eq!((device.name(), device.version_string()), ("telling", "telling-1"));
    assert_eq!(device.device_type(), DeviceType::Accelerator);
    let capabilities = device.capabilities().unwrap_err();
    assert_eq!(capabilities.cause.to_string(), "the capabilities of Telling");
    assert_eq!(device.supported_extensions()[0].name, "a.b");
    assert_eq!(device.cache_files_needed(), CacheFiles { model: 1, data: 2 });
    assert_eq!(device.status(), DeviceStatus::Busy);
    assert_eq!(device.supported_operations(&model).unwrap(), [true]);
    assert_eq!(device.supported_operations_for(&model, &caller).unwrap(), [false]);
    let cache = CompilationCache::default();
    let prepared = [
        device.prepare_model(&model, &options).unwrap(),
        device.prepare_model_for(&model, &options, &caller).unwrap(),
        device.prepare_model_caching(&model, &options, &cache, &caller).unwrap(),
        device.prepare_model_from_cache(&cache, None, &caller).unwrap(),
    ];
    for prepared in &prepared {
        let (request, options) = (Request::default(), ExecutionOptions::default());
        prepared.execute_synchronously(&request, &options);
        prepared.execute_for(&request, &options, &caller);
        prepared.pace();
        let how = prepared.prepare_options();
        assert!(how.is_none_or(|how| how == PrepareOptions::default()), "what it was told");
        Arc::clone(prepared).open_burst().map(drop).unwrap();
        Arc::clone(prepared).open_executor().map(drop).unwrap();
    }
    assert!(prepared[0].request_rules().is_some(), "the rules that the device lacks");
    let role = BufferRole { model: 0, position: 0, frequency: 1.0 };
    let request =
        BufferRequest { models: prepared.to_vec(), inputs: vec![role], ..Default::default() };
    assert_eq!(
        device.allocate(&request, &caller).map(drop).unwrap_err().status,
        ErrorStatus::GeneralFailure
    );
    let said: Vec<_> = said.try_iter().collect();
    let each = ["execute_synchronously", "execute_for", "pace", "prepare_options"];
    let each = [&each[..], &["open_burst", "open_executor"]].concat();
    let mut want = vec!["supported_operations", "supported_operations_for"];
    want.extend(["prepare_model", "prepare_model_for"]);
    // Of a model from files the device is asked at once how it was prepared.
    want.extend(["prepare_model_caching", "prepare_model_from_cache", "prepare_options"]);
    want.extend(each.repeat(4));
    want.push("allocate");
    assert_eq!(said, want);
}

/// Counts what it pays for.
#[derive(Debug, Default)]
struct Purse(Mutex<u64>);

impl MemoryAccount for Purse {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        *self.0.lock().unwrap() += bytes;
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        *self.0.lock().unwrap() -= bytes;
    }
}

#[test]
fn the_rules_are_paid_for_as_long_as_the_model_lives() {
    let (device, _said) = telling();
    let purse = Arc::new(Purse::default());
    let caller = Caller::default().with_account(Arc::clone(&purse) as _);
    let prepared = device.prepare_model_for(&model(&[1]), &PrepareOptions::default(), &caller);
    let held = prepared.as_ref().unwrap().request_rules().unwrap().held_bytes() as u64;
    assert_eq!(*purse.0.lock().unwrap(), held);
    drop(prepared);
    assert_eq!(*purse.0.lock().unwrap(), 0);
}
