//! Drivers of HAL 1.0 to 1.2, written as their authors would, behind the adapter.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use super::super::*;
use super::{relu, request};
use crate::compliance::tests::OfDevice;
use crate::validate::RequestRules;
use crate::*;

/// What the drivers here do with an execution.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// RELU, on a thread of their own.
    Right,
    /// Call back with this status.
    Status(ErrorStatus),
    /// Refuse the launch with this status, and call back with nothing.
    Refuse(ErrorStatus),
    /// Refuse the launch with this status and call back with it, as the HAL says.
    RefuseAndTell(ErrorStatus),
    /// Let go of the callback.
    LetGo,
}

/// A driver of every older version.
struct Old {
    manner: Manner,
    /// Models that it was shown.
    seen: Mutex<Vec<Model>>,
}

impl Old {
    fn new(manner: Manner) -> Arc<Self> {
        Arc::new(Old { manner, seen: Mutex::default() })
    }

    fn see(&self, model: impl Into<Model>) -> Vec<bool> {
        let model = model.into();
        let answer = model.main.operations.iter().map(|one| one.ty == OperationType::Relu);
        let answer = answer.collect();
        self.seen.lock().unwrap().push(model);
        answer
    }

    fn seen(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

const INFO: PerformanceInfo = PerformanceInfo { exec_time: 2.0, power_usage: 2.0 };

impl DeviceV1_0 for Old {
    fn name(&self) -> &str {
        "old"
    }
    fn capabilities(&self) -> Result<CapabilitiesV1_0, Failure> {
        Ok(CapabilitiesV1_0 { float32: INFO, quantized8: INFO })
    }
    fn supported_operations(&self, model: &ModelV1_0) -> Result<Vec<bool>, Failure> {
        Ok(self.see(model.clone()))
    }
    fn prepare_model(&self, model: &ModelV1_0) -> Result<Arc<dyn PreparedModelV1_0>, Failure> {
        self.see(model.clone());
        Ok(Old::new(self.manner))
    }
}

impl DeviceV1_1 for Old {
    fn name(&self) -> &str {
        "old"
    }
    fn capabilities(&self) -> Result<CapabilitiesV1_1, Failure> {
        let (float32, quantized8) = (INFO, INFO);
        Ok(CapabilitiesV1_1 { float32, quantized8, relaxed_float32_to_float16: INFO })
    }
    fn supported_operations(&self, model: &ModelV1_1) -> Result<Vec<bool>, Failure> {
        Ok(self.see(model.clone()))
    }
    fn prepare_model(
        &self,
        model: &ModelV1_1,
        _: ExecutionPreference,
    ) -> Result<Arc<dyn PreparedModelV1_0>, Failure> {
        self.see(model.clone());
        Ok(Old::new(self.manner))
    }
}

impl DeviceV1_2 for Old {
    fn name(&self) -> &str {
        "old"
    }
    fn version_string(&self) -> &str {
        "of 1.2"
    }
    fn capabilities(&self) -> Result<CapabilitiesV1_2, Failure> {
        Err(ErrorStatus::ResourceExhaustedTransient.into())
    }
    fn cache_files_needed(&self) -> CacheFiles {
        CacheFiles { model: 1, data: 0 }
    }
    fn supported_operations(&self, model: &ModelV1_2) -> Result<Vec<bool>, Failure> {
        Ok(self.see(model.clone()))
    }
    fn prepare_model(
        &self,
        model: &ModelV1_2,
        _: ExecutionPreference,
        cache: Option<&CompilationCache>,
    ) -> Result<Arc<dyn PreparedModelV1_2>, Failure> {
        self.see(model.clone());
        match cache {
            Some(_) => Err(Failure::general("full")),
            None => Ok(Old::new(self.manner)),
        }
    }
    fn prepare_model_from_cache(
        &self,
        _: &CompilationCache,
    ) -> Result<Arc<dyn PreparedModelV1_2>, Failure> {
        Ok(Old::new(self.manner))
    }
}

fn relu_of(request: &RequestV1_0) -> ErrorStatus {
    let (from, to) = (request.inputs[0].location, request.outputs[0].location);
    let mut bytes = vec![0; from.length as usize];
    request.pools[0].read(from.offset.into(), &mut bytes).unwrap();
    for value in bytes.as_chunks_mut::<4>().0 {
        *value = f32::from_le_bytes(*value).max(0.0).to_le_bytes();
    }
    request.pools[0].write(to.offset.into(), &bytes).unwrap();
    ErrorStatus::None
}

impl PreparedModelV1_0 for Old {
    fn execute(
        self: Arc<Self>,
        request: RequestV1_0,
        callback: StatusCallback,
    ) -> Result<(), Failure> {
        match self.manner {
            Manner::Right => {
                std::thread::spawn(move || callback(relu_of(&request)));
                Ok(())
            }
            Manner::Status(status) => {
                callback(status);
                Ok(())
            }
            Manner::Refuse(status) => Err(status.into()),
            Manner::RefuseAndTell(status) => {
                callback(status);
                Err(status.into())
            }
            Manner::LetGo => Ok(()),
        }
    }
}

impl PreparedModelV1_2 for Old {
    fn execute(
        self: Arc<Self>,
        request: RequestV1_0,
        _: bool,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        let callback = Box::new(move |status| callback(ExecutionResult::of(status)));
        PreparedModelV1_0::execute(self, request, callback)
    }
    fn execute_synchronously(&self, request: &RequestV1_0, _: bool) -> ExecutionResult {
        match self.manner {
            Manner::Status(status) => ExecutionResult::of(status),
            _ => ExecutionResult::of(relu_of(request)),
        }
    }
    fn open_burst(self: Arc<Self>) -> Result<Box<dyn BurstV1_2>, Failure> {
        Ok(Box::new(OldBurst(self)))
    }
}

struct OldBurst(Arc<Old>);

impl BurstV1_2 for OldBurst {
    fn execute(&mut self, request: &RequestV1_0, measure: bool, result: &mut ExecutionResult) {
        *result = self.0.execute_synchronously(request, measure);
    }
}

/// The same driver in every version.
fn versions(old: &Arc<Old>) -> [AdaptedDevice; 3] {
    [
        AdaptedDevice::new(OldDevice::V1_0(Arc::clone(old) as _)),
        AdaptedDevice::new(OldDevice::V1_1(Arc::clone(old) as _)),
        AdaptedDevice::new(OldDevice::V1_2(Arc::clone(old) as _)),
    ]
}

fn prepared(device: &AdaptedDevice, model: &Model) -> Arc<dyn PreparedModel> {
    device.prepare_model(model, &PrepareOptions::default()).map_err(|e| e.to_string()).unwrap()
}

/// What an asynchronous execution answers, and what it calls back with.
fn launched(
    model: &Arc<dyn PreparedModel>,
    request: &Request,
    options: ExecutionOptions,
) -> (Result<(), ErrorStatus>, Receiver<ExecutionResult>) {
    let (tell, told) = channel();
    let callback = Box::new(move |result| tell.send(result).unwrap());
    let model = Arc::clone(model);
    let answer =
        model.execute_asynchronously(request.clone(), options, Caller::default(), callback);
    (answer.map_err(|failure| failure.status), told)
}

#[test]
fn a_driver_is_shown_what_its_version_can_say_and_the_rest_it_does_not_support() {
    let mut b = ModelBuilder::new();
    let spec = OutputSpec::f32(&[2]);
    let x = b.input(OperandType::TensorFloat32, &[2]);
    let swish = b.result_of(OperationType::HardSwish, &[x], spec.clone());
    let relu = b.result_of(OperationType::Relu, &[swish], spec.clone());
    let abs = b.result_of(OperationType::Abs, &[relu], spec.clone());
    let floor = b.result_of(OperationType::Floor, &[abs], spec.clone());
    let last = b.result_of(OperationType::Relu, &[floor], spec);
    b.output(last);
    let model = b.build().unwrap();
    let old = Old::new(Manner::Right);
    for (device, shown) in versions(&old).iter().zip([3, 3, 4]) {
        let supported = device.supported_operations(&model).unwrap();
        assert_eq!(supported, [false, true, false, false, true]);
        let seen = old.seen.lock().unwrap().pop().unwrap();
        assert_eq!(seen.main.operations.len(), shown);
        let refused = device.prepare_model(&model, &PrepareOptions::default()).err().unwrap();
        assert_eq!(refused.status, ErrorStatus::GeneralFailure);
        assert!(refused.to_string().contains("the first being 0"), "{refused}");
        let illegal = Model::default();
        let refused = device.supported_operations(&illegal).unwrap_err();
        assert_eq!(refused.status, ErrorStatus::InvalidArgument);
    }
    assert_eq!(old.seen(), 0, "nothing else reached the driver");
}

#[test]
fn buffers_of_devices_reach_no_driver_before_1_2() {
    let old = Old::new(Manner::Right);
    let of_device = || -> Pool { Arc::new(OfDevice(HeapMemory::new(vec![0; 16]))) };
    let mut with_pool = relu();
    with_pool.pools.push(of_device());
    for (device, takes) in versions(&old).iter().zip([false, false, true]) {
        let model = prepared(device, &relu());
        let mut request = request(8).0;
        request.pools[0] = RequestPool::Memory(of_device());
        let options = ExecutionOptions::default();
        let want = if takes { ErrorStatus::None } else { ErrorStatus::InvalidArgument };
        assert_eq!(model.execute_synchronously(&request, &options).status, want);
        let (answer, told) = launched(&model, &request, options);
        assert_eq!(answer, if takes { Ok(()) } else { Err(want) });
        assert_eq!(told.recv().unwrap().status, want);
        let before = old.seen();
        assert_eq!(device.supported_operations(&with_pool).unwrap(), [takes]);
        assert_eq!(device.prepare_model(&with_pool, &PrepareOptions::default()).is_ok(), takes);
        assert_eq!(old.seen() > before, takes, "a model with such a pool");
    }
}

#[test]
fn every_way_to_execute_gives_the_same() {
    let old = Old::new(Manner::Right);
    let wanted = [0.0_f32, 3.0].map(f32::to_le_bytes).concat();
    for device in versions(&old) {
        let model = prepared(&device, &relu());
        let mut burst = Arc::clone(&model).open_burst().unwrap();
        for way in ["synchronous", "asynchronous", "burst"] {
            let (request, memory) = request(8);
            let options = ExecutionOptions::default();
            let result = match way {
                "synchronous" => model.execute_synchronously(&request, &options),
                "burst" => {
                    let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
                    burst.execute(&request, &options, &mut result);
                    result
                }
                _ => {
                    let (answer, told) = launched(&model, &request, options);
                    assert_eq!(answer, Ok(()));
                    told.recv().unwrap()
                }
            };
            assert_eq!(result, ExecutionResult::of(ErrorStatus::None), "{way} {device:?}");
            assert_eq!(memory.to_vec()[8..], wanted, "{way} {device:?}");
        }
        let fenced = Arc::clone(&model).execute_fenced(
            request(8).0,
            Vec::new(),
            FencedOptions::default(),
            Caller::default(),
        );
        assert_eq!(fenced.unwrap_err().status, ErrorStatus::GeneralFailure);
        let buffer = device.allocate(&BufferRequest::default(), &Caller::default());
        assert_eq!(buffer.err().unwrap().status, ErrorStatus::GeneralFailure);
    }
}

#[test]
fn what_no_older_driver_can_take_never_reaches_it() {
    // A driver that is asked would answer with GENERAL_FAILURE.
    let old = Old::new(Manner::Status(ErrorStatus::GeneralFailure));
    for device in versions(&old) {
        let model = prepared(&device, &relu());
        let (mut tokens, _) = request(8);
        tokens.pools[0] = RequestPool::Token(1);
        tokens.inputs[0].location = DataLocation::default();
        tokens.outputs[0].location = DataLocation::default();
        let options = ExecutionOptions::default();
        let invalid = ErrorStatus::InvalidArgument;
        assert_eq!(model.execute_synchronously(&tokens, &options), ExecutionResult::of(invalid));
        let (answer, told) = launched(&model, &tokens, options);
        assert_eq!((answer, told.recv().unwrap().status), (Err(invalid), invalid));
        let late = ExecutionOptions { deadline: Some(TimePoint { nanos: 1 }), ..options };
        let missed = ErrorStatus::MissedDeadlinePersistent;
        assert_eq!(model.execute_synchronously(&request(8).0, &late).status, missed);
        let (answer, told) = launched(&model, &request(8).0, late);
        assert_eq!((answer, told.recv().unwrap().status), (Ok(()), missed));
        let mut result = ExecutionResult::of(ErrorStatus::None);
        let mut burst = model.open_burst().unwrap();
        burst.execute(&request(8).0, &late, &mut result);
        assert_eq!(result.status, missed);
        burst.execute(&tokens, &options, &mut result);
        assert_eq!(result.status, invalid);
        let late = PrepareOptions { deadline: Some(TimePoint { nanos: 1 }), ..Default::default() };
        let refused = device.prepare_model(&relu(), &late).err().unwrap();
        assert_eq!(refused.status, missed);
    }
}

#[test]
fn before_1_2_every_size_is_known_and_shapes_are_the_adapters() {
    let mut model = relu();
    model.main.operands[1].dimensions[0] = 0;
    let old = Old::new(Manner::Right);
    let [first, second, third] = versions(&old);
    for device in [first, second] {
        let unknown = prepared(&device, &model);
        let options = ExecutionOptions::default();
        let (mut open, _) = request(8);
        let result = unknown.execute_synchronously(&open, &options);
        assert_eq!(result.status, ErrorStatus::InvalidArgument);
        open.outputs[0].dimensions.push(2);
        let result = unknown.execute_synchronously(&open, &options);
        assert_eq!(result, ExecutionResult::of(ErrorStatus::None), "the request knows it");
        let (short, memory) = request(4);
        let result = prepared(&device, &relu()).execute_synchronously(&short, &options);
        assert_eq!(result.status, ErrorStatus::OutputInsufficientSize);
        let shape = OutputShape { dimensions: [2].as_slice().into(), is_sufficient: false };
        assert_eq!(result.output_shapes, [shape]);
        assert_eq!(memory.to_vec()[8..12], 9.0_f32.to_le_bytes(), "nothing is written");
    }
    let open = prepared(&third, &model).execute_synchronously(&request(8).0, &Default::default());
    assert_eq!(open.status, ErrorStatus::None, "since 1.2 it may stay open");
}

#[test]
fn whatever_a_driver_does_the_callback_is_called_once() {
    let (invalid, general) = (ErrorStatus::InvalidArgument, ErrorStatus::GeneralFailure);
    let exhausted = ErrorStatus::ResourceExhaustedTransient;
    for (manner, answer, told) in [
        (Manner::Refuse(invalid), Err(invalid), invalid),
        (Manner::RefuseAndTell(invalid), Err(invalid), invalid),
        (Manner::Refuse(exhausted), Ok(()), general),
        (Manner::Status(exhausted), Ok(()), general),
        (Manner::LetGo, Ok(()), general),
    ] {
        for device in versions(&Old::new(manner)) {
            let model = prepared(&device, &relu());
            let (found, results) = launched(&model, &request(8).0, ExecutionOptions::default());
            assert_eq!(found, answer, "{device:?}");
            assert_eq!(results.iter().map(|result| result.status).collect::<Vec<_>>(), [told]);
        }
    }
    // A status without shapes says nothing of use.
    let short = Manner::Status(ErrorStatus::OutputInsufficientSize);
    let [_, device, _] = versions(&Old::new(short));
    let result =
        prepared(&device, &relu()).execute_synchronously(&request(8).0, &Default::default());
    assert_eq!(result, ExecutionResult::of(general));
}

#[test]
fn a_device_says_what_its_version_could_ask() {
    let [first, second, third] = versions(&Old::new(Manner::Right));
    for (device, version, cached) in
        [(&first, "UNKNOWN", 0), (&second, "UNKNOWN", 0), (&third, "of 1.2", 1)]
    {
        assert_eq!((device.name(), device.version_string()), ("old", version));
        assert_eq!(device.device_type(), DeviceType::Other);
        assert_eq!(device.hal_version() == HalVersion::V1_2, cached == 1);
        assert!(device.hal_version() < HalVersion::LATEST);
        assert_eq!(device.cache_files_needed().model, cached);
        assert_eq!(device.status(), DeviceStatus::Available);
    }
    let capabilities = second.capabilities().unwrap();
    assert_eq!(capabilities.performance_of(OperandType::TensorQuant8Asymm), INFO);
    let bytes = capabilities.performance_of(OperandType::TensorQuant8AsymmSigned);
    assert_eq!(bytes, PerformanceInfo::UNSUPPORTED);
    let unreachable = third.capabilities().unwrap_err();
    assert_eq!(unreachable.status, ErrorStatus::GeneralFailure, "1.2 has no other status for it");
}

#[test]
fn compilations_are_kept_since_1_2() {
    let [first, _, third] = versions(&Old::new(Manner::Right));
    let (cache, caller) = (CompilationCache::default(), Caller::default());
    let caching = |device: &AdaptedDevice| {
        let options = PrepareOptions::default();
        device.prepare_model_caching(&relu(), &options, &cache, &caller)
    };
    assert!(caching(&first).is_ok(), "prepared all the same");
    assert_eq!(caching(&third).err().unwrap().to_string(), "GENERAL_FAILURE: full");
    for (device, cause) in [(&first, "1.2"), (&third, "does not say")] {
        let refused = device.prepare_model_from_cache(&cache, None, &caller).err().unwrap();
        assert_eq!(refused.status, ErrorStatus::GeneralFailure);
        assert!(refused.to_string().contains(cause), "{refused}");
    }
}

#[test]
fn losses_are_told_by_name() {
    let losses = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&losses);
    let [device, ..] = versions(&Old::new(Manner::Right));
    let device = device.on_loss(move |loss| listener.lock().unwrap().push(*loss));
    let mut model = relu();
    model.relax_computation_float32_to_float16 = true;
    let options = PrepareOptions { priority: Priority::Low, ..PrepareOptions::default() };
    let prepared = device.prepare_model(&model, &options).ok().unwrap();
    let options = ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() };
    prepared.execute_synchronously(&request(8).0, &options);
    let told = std::mem::take(&mut *losses.lock().unwrap());
    assert_eq!(told, [Loss::Priority(Priority::Low), Loss::RelaxedComputation, Loss::Timing]);
    let rules = prepared.request_rules().map(RequestRules::counts);
    assert_eq!(rules, Some((1, 1)));
    assert_eq!(prepared.prepare_options(), Some(PrepareOptions::default()), "what it was told");
}

#[test]
fn losses_are_logged_where_nobody_asked_for_them() {
    let [device, ..] = versions(&Old::new(Manner::Right));
    let options = PrepareOptions { priority: Priority::Low, ..PrepareOptions::default() };
    let logged = crate::test_log::events(|| {
        let prepared = device.prepare_model(&relu(), &options).ok().unwrap();
        let options = ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() };
        prepared.execute_synchronously(&request(8).0, &options);
        prepared.execute_synchronously(&request(8).0, &options);
    });
    let text = "nn::driver lost on the way to an older version driver=\"old\" loss=";
    let want = ["WARN", "WARN", "DEBUG"].map(|level| format!("{level} {text}"));
    let what = ["the priority LOW", "measuring the time", "measuring the time"];
    let want: Vec<String> = want.iter().zip(what).map(|(text, what)| text.clone() + what).collect();
    assert_eq!(logged, want);
}
