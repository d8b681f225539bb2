//! A current device, as a driver of an older version.

use std::fmt;
use std::sync::Arc;

use super::convert::{capabilities_to_v1_0, capabilities_to_v1_1, capabilities_to_v1_2};
use super::interfaces::{
    BurstV1_2, DeviceV1_0, DeviceV1_1, DeviceV1_2, PreparedModelV1_0, PreparedModelV1_2,
    StatusCallback,
};
use super::listener::Listener;
use super::loss::{Converted, Loss};
use super::types::{ModelV1_0, ModelV1_1, ModelV1_2, RequestV1_0};
use crate::validate::{RequestRules, UnspecifiedOutputs, validate_model_of};
use crate::{
    Burst, CacheFiles, Caller, Capabilities, CapabilitiesV1_0, CapabilitiesV1_1, CapabilitiesV1_2,
    CompilationCache, Device, DeviceStatus, DeviceType, ExecutionCallback, ExecutionOptions,
    ExecutionPreference, ExecutionResult, Extension, Failure, HalVersion, Model, PrepareOptions,
    PreparedModel, Request,
};

/// A current device, as a driver of any older version: everything newer is refused as that version
/// refuses what is not legal. For tests, and where something knows only old drivers.
#[derive(Clone)]
pub struct LimitedDevice {
    device: Arc<dyn Device>,
    listener: Listener,
}

impl LimitedDevice {
    /// The driver.
    #[must_use]
    pub fn new(device: Arc<dyn Device>) -> Self {
        let listener = Listener::new(device.name());
        LimitedDevice { device, listener }
    }

    /// Calls `listen` with each thing that the device says and its version cannot. The log has it in any
    /// case, as with [`AdaptedDevice`](super::AdaptedDevice::on_loss).
    #[must_use]
    pub fn on_loss(mut self, listen: impl Fn(&Loss) + Send + Sync + 'static) -> Self {
        self.listener = Listener::calling(self.device.name(), listen);
        self
    }

    /// What the device says of its speed, as an older version says it.
    fn capabilities_to<T>(
        &self,
        version: HalVersion,
        convert: fn(&Capabilities) -> Converted<T>,
    ) -> Result<T, Failure> {
        let capabilities = self.device.capabilities();
        let new = capabilities.map_err(|failure| self.listener.failure(failure, version))?;
        let Converted { value, lost } = convert(&new);
        self.listener.tell(&lost);
        Ok(value)
    }

    fn supported(&self, model: &Model, version: HalVersion) -> Result<Vec<bool>, Failure> {
        validate_model_of(model, version)?;
        let supported = self.device.supported_operations(model);
        supported.map_err(|failure| self.listener.failure(failure, version))
    }

    fn prepare(
        &self,
        model: &Model,
        version: HalVersion,
        preference: ExecutionPreference,
        cache: Option<&CompilationCache>,
    ) -> Result<Arc<LimitedModel>, Failure> {
        validate_model_of(model, version)?;
        let options = PrepareOptions { preference, ..PrepareOptions::default() };
        let prepared = match cache {
            Some(cache) => {
                self.device.prepare_model_caching(model, &options, cache, &Caller::default())
            }
            None => self.device.prepare_model(model, &options),
        };
        let rules = RequestRules::new(model)?;
        let model = prepared.map_err(|failure| self.listener.failure(failure, version))?;
        let listener = self.listener.clone();
        Ok(Arc::new(LimitedModel { model, rules, version, listener }))
    }
}

impl fmt::Debug for LimitedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LimitedDevice({})", self.device.name())
    }
}

impl DeviceV1_0 for LimitedDevice {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn capabilities(&self) -> Result<CapabilitiesV1_0, Failure> {
        self.capabilities_to(HalVersion::V1_0, capabilities_to_v1_0)
    }

    fn supported_operations(&self, model: &ModelV1_0) -> Result<Vec<bool>, Failure> {
        self.supported(&model.clone().into(), HalVersion::V1_0)
    }

    fn prepare_model(&self, model: &ModelV1_0) -> Result<Arc<dyn PreparedModelV1_0>, Failure> {
        let preference = PrepareOptions::default().preference;
        Ok(self.prepare(&model.clone().into(), HalVersion::V1_0, preference, None)?)
    }

    fn status(&self) -> DeviceStatus {
        self.device.status()
    }
}

impl DeviceV1_1 for LimitedDevice {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn capabilities(&self) -> Result<CapabilitiesV1_1, Failure> {
        self.capabilities_to(HalVersion::V1_1, capabilities_to_v1_1)
    }

    fn supported_operations(&self, model: &ModelV1_1) -> Result<Vec<bool>, Failure> {
        self.supported(&model.clone().into(), HalVersion::V1_1)
    }

    fn prepare_model(
        &self,
        model: &ModelV1_1,
        preference: ExecutionPreference,
    ) -> Result<Arc<dyn PreparedModelV1_0>, Failure> {
        Ok(self.prepare(&model.clone().into(), HalVersion::V1_1, preference, None)?)
    }

    fn status(&self) -> DeviceStatus {
        self.device.status()
    }
}

impl DeviceV1_2 for LimitedDevice {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn version_string(&self) -> &str {
        self.device.version_string()
    }

    fn device_type(&self) -> DeviceType {
        self.device.device_type()
    }

    fn capabilities(&self) -> Result<CapabilitiesV1_2, Failure> {
        self.capabilities_to(HalVersion::V1_2, capabilities_to_v1_2)
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        self.device.supported_extensions()
    }

    fn cache_files_needed(&self) -> CacheFiles {
        self.device.cache_files_needed()
    }

    fn supported_operations(&self, model: &ModelV1_2) -> Result<Vec<bool>, Failure> {
        self.supported(&model.clone().into(), HalVersion::V1_2)
    }

    fn prepare_model(
        &self,
        model: &ModelV1_2,
        preference: ExecutionPreference,
        cache: Option<&CompilationCache>,
    ) -> Result<Arc<dyn PreparedModelV1_2>, Failure> {
        Ok(self.prepare(&model.clone().into(), HalVersion::V1_2, preference, cache)?)
    }

    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
    ) -> Result<Arc<dyn PreparedModelV1_2>, Failure> {
        let version = HalVersion::V1_2;
        let model = self.device.prepare_model_from_cache(cache, None, &Caller::default());
        let model = model.map_err(|failure| self.listener.failure(failure, version))?;
        let rules = model.request_rules().cloned();
        let rules = rules.ok_or_else(|| Failure::general("a model of unknown requests"))?;
        let listener = self.listener.clone();
        Ok(Arc::new(LimitedModel { model, rules, version, listener }))
    }

    fn status(&self) -> DeviceStatus {
        self.device.status()
    }
}

/// A prepared model that takes what its version can say.
struct LimitedModel {
    model: Arc<dyn PreparedModel>,
    rules: RequestRules,
    version: HalVersion,
    listener: Listener,
}

impl LimitedModel {
    fn checked(&self, request: RequestV1_0) -> Result<Request, Failure> {
        let request = request.into();
        self.rules.check(&request, UnspecifiedOutputs::of(self.version))?;
        Ok(request)
    }

    fn launch(
        &self,
        request: RequestV1_0,
        options: ExecutionOptions,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        let version = self.version;
        let request = match self.checked(request) {
            Ok(request) => request,
            Err(failure) => {
                callback(ExecutionResult::of(failure.status));
                return Err(failure);
            }
        };
        let listener = self.listener.clone();
        let callback = Box::new(move |result| callback(old(&listener, result, version)));
        let model = Arc::clone(&self.model);
        let launched = model.execute_asynchronously(request, options, Caller::default(), callback);
        launched.map_err(|failure| self.listener.failure(failure, version))
    }
}

impl PreparedModelV1_0 for LimitedModel {
    fn execute(
        self: Arc<Self>,
        request: RequestV1_0,
        callback: StatusCallback,
    ) -> Result<(), Failure> {
        let callback = Box::new(move |result: ExecutionResult| callback(result.status));
        self.launch(request, ExecutionOptions::default(), callback)
    }
}

impl PreparedModelV1_2 for LimitedModel {
    fn execute(
        self: Arc<Self>,
        request: RequestV1_0,
        measure_timing: bool,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        self.launch(request, measuring(measure_timing), callback)
    }

    fn execute_synchronously(
        &self,
        request: &RequestV1_0,
        measure_timing: bool,
    ) -> ExecutionResult {
        match self.checked(request.clone()) {
            Ok(request) => {
                let result = self.model.execute_synchronously(&request, &measuring(measure_timing));
                old(&self.listener, result, self.version)
            }
            Err(failure) => ExecutionResult::of(failure.status),
        }
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn BurstV1_2>, Failure> {
        let burst = Arc::clone(&self.model).open_burst();
        let burst = burst.map_err(|failure| self.listener.failure(failure, self.version))?;
        Ok(Box::new(LimitedBurst { burst, model: self }))
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.rules)
    }
}

struct LimitedBurst {
    burst: Box<dyn Burst>,
    model: Arc<LimitedModel>,
}

impl BurstV1_2 for LimitedBurst {
    fn execute(
        &mut self,
        request: &RequestV1_0,
        measure_timing: bool,
        result: &mut ExecutionResult,
    ) {
        match self.model.checked(request.clone()) {
            Ok(request) => {
                self.burst.execute(&request, &measuring(measure_timing), result);
                let LimitedModel { listener, version, .. } = &*self.model;
                result.status = listener.status(result.status, *version);
            }
            Err(failure) => result.reset(failure.status),
        }
    }
}

fn measuring(measure_timing: bool) -> ExecutionOptions {
    ExecutionOptions { measure_timing, ..ExecutionOptions::default() }
}

fn old(listener: &Listener, result: ExecutionResult, version: HalVersion) -> ExecutionResult {
    ExecutionResult { status: listener.status(result.status, version), ..result }
}
