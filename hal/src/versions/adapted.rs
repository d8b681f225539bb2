//! A driver of an older version, as a current device.

use std::fmt;
use std::sync::Arc;

use super::adapted_model::{AdaptedV1_0, AdaptedV1_2};
use super::convert::prepare_options_to;
use super::interfaces::{DeviceV1_0, DeviceV1_1, DeviceV1_2, PreparedModelV1_0};
use super::listener::Listener;
use super::loss::{Converted, Loss};
use super::slice::{Slice, slice};
use super::types::{ModelV1_0, ModelV1_1, ModelV1_2};
use crate::validate::{RequestRules, validate_model};
use crate::{
    Buffer, BufferRequest, CacheFiles, Caller, Capabilities, CompilationCache, Compliance, Device,
    DeviceStatus, DeviceType, ErrorStatus, Extension, Failure, HalVersion, Model, PrepareOptions,
    PrepareResult, TimePoint,
};

/// A driver of HAL 1.0, 1.1 or 1.2.
#[derive(Clone)]
pub enum OldDevice {
    /// Of HAL 1.0.
    V1_0(Arc<dyn DeviceV1_0>),
    /// Of HAL 1.1.
    V1_1(Arc<dyn DeviceV1_1>),
    /// Of HAL 1.2.
    V1_2(Arc<dyn DeviceV1_2>),
}

impl OldDevice {
    /// Its version.
    #[must_use]
    pub fn version(&self) -> HalVersion {
        match self {
            OldDevice::V1_0(_) => HalVersion::V1_0,
            OldDevice::V1_1(_) => HalVersion::V1_1,
            OldDevice::V1_2(_) => HalVersion::V1_2,
        }
    }

    /// The name that clients choose it by.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            OldDevice::V1_0(device) => device.name(),
            OldDevice::V1_1(device) => device.name(),
            OldDevice::V1_2(device) => device.name(),
        }
    }

    fn ask(&self, model: Model) -> Result<Vec<bool>, Failure> {
        match self {
            OldDevice::V1_0(device) => device.supported_operations(&ModelV1_0::taken_from(model)),
            OldDevice::V1_1(device) => device.supported_operations(&ModelV1_1::taken_from(model)),
            OldDevice::V1_2(device) => device.supported_operations(&ModelV1_2::taken_from(model)),
        }
    }
}

impl fmt::Debug for OldDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OldDevice({})", self.version())
    }
}

/// A driver of an older version, as a current device: it gets whatever it can take.
///
/// What it lacks is refused, or done for it; [the module](super) has the list. An execution cannot be called
/// off or made to give way, and what it holds is charged to nobody, as the driver's version knows no
/// callers: a service for users who do not trust each other should not offer it to them.
#[derive(Debug, Clone)]
pub struct AdaptedDevice {
    old: OldDevice,
    listener: Listener,
}

impl AdaptedDevice {
    /// The device.
    #[must_use]
    pub fn new(old: OldDevice) -> Self {
        let listener = Listener::new(old.name());
        AdaptedDevice { old, listener }
    }

    /// Calls `listen` with each thing that a caller said and the driver is not told. The log has it in any
    /// case: the first of each kind as a warning, the others with the tag
    /// [`driver`](crate::log_tags::DRIVER).
    #[must_use]
    pub fn on_loss(mut self, listen: impl Fn(&Loss) + Send + Sync + 'static) -> Self {
        self.listener = Listener::calling(self.old.name(), listen);
        self
    }

    fn version(&self) -> HalVersion {
        self.old.version()
    }

    /// Prepares the model; what this version lacks of the options is told before.
    fn prepare(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: Option<&CompilationCache>,
    ) -> PrepareResult {
        validate_model(model, HalVersion::LATEST)?;
        check_deadline(options.deadline)?;
        let Converted { value: known, lost } = prepare_options_to(options, self.version());
        self.listener.tell(&lost);
        let rules = RequestRules::new(model)?;
        let of_version = |compliance| too_new(self.version(), &compliance);
        let prepared: PrepareResult = match &self.old {
            OldDevice::V1_0(device) => {
                let model = self.told(ModelV1_0::of(model).map_err(of_version)?);
                device.prepare_model(&model).map(|model| self.adapt(model, rules, known) as _)
            }
            OldDevice::V1_1(device) => {
                let model = self.told(ModelV1_1::of(model).map_err(of_version)?);
                let prepared = device.prepare_model(&model, known.preference);
                prepared.map(|model| self.adapt(model, rules, known) as _)
            }
            OldDevice::V1_2(device) => {
                let model = self.told(ModelV1_2::of(model).map_err(of_version)?);
                let prepared = device.prepare_model(&model, known.preference, cache);
                prepared.map(|model| {
                    let (rules, options) = (Some(rules), Some(known));
                    let listener = self.listener.clone();
                    Arc::new(AdaptedV1_2 { model, rules, options, listener }) as _
                })
            }
        };
        prepared.map_err(|failure| self.failed(failure))
    }

    fn adapt(
        &self,
        model: Arc<dyn PreparedModelV1_0>,
        rules: RequestRules,
        options: PrepareOptions,
    ) -> Arc<AdaptedV1_0> {
        let (version, listener) = (self.version(), self.listener.clone());
        Arc::new(AdaptedV1_0 { model, version, rules, options, listener })
    }

    /// What the driver's failure is to a caller: it cannot say more than its version.
    fn failed(&self, failure: Failure) -> Failure {
        self.listener.failure(failure, self.version())
    }

    /// The value, once the listener knows what was lost.
    fn told<T>(&self, converted: Converted<T>) -> T {
        self.listener.tell(&converted.lost);
        converted.value
    }
}

#[deny(clippy::missing_trait_methods, reason = "all that the driver can do has to reach it")]
impl Device for AdaptedDevice {
    fn name(&self) -> &str {
        self.old.name()
    }

    fn version_string(&self) -> &str {
        match &self.old {
            OldDevice::V1_2(device) => device.version_string(),
            // Nobody could ask them.
            OldDevice::V1_0(_) | OldDevice::V1_1(_) => "UNKNOWN",
        }
    }

    fn hal_version(&self) -> HalVersion {
        self.version()
    }

    fn device_type(&self) -> DeviceType {
        match &self.old {
            OldDevice::V1_2(device) => device.device_type(),
            OldDevice::V1_0(_) | OldDevice::V1_1(_) => DeviceType::Other,
        }
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        let capabilities = match &self.old {
            OldDevice::V1_0(device) => device.capabilities().map(Capabilities::from),
            OldDevice::V1_1(device) => device.capabilities().map(Capabilities::from),
            OldDevice::V1_2(device) => device.capabilities().map(Capabilities::from),
        };
        capabilities.map_err(|failure| self.failed(failure))
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        match &self.old {
            OldDevice::V1_2(device) => device.supported_extensions(),
            OldDevice::V1_0(_) | OldDevice::V1_1(_) => Vec::new(),
        }
    }

    fn cache_files_needed(&self) -> CacheFiles {
        match &self.old {
            OldDevice::V1_2(device) => device.cache_files_needed(),
            OldDevice::V1_0(_) | OldDevice::V1_1(_) => CacheFiles::default(),
        }
    }

    fn status(&self) -> DeviceStatus {
        match &self.old {
            OldDevice::V1_0(device) => device.status(),
            OldDevice::V1_1(device) => device.status(),
            OldDevice::V1_2(device) => device.status(),
        }
    }

    /// The driver is asked about the part of the model that its version can carry; everything else it
    /// does not support.
    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        validate_model(model, HalVersion::LATEST)?;
        let mut supported = vec![false; model.main.operations.len()];
        let Some(Slice { model, operations }) = slice(model, self.version()) else {
            return Ok(supported);
        };
        let answer = self.old.ask(model).map_err(|failure| self.failed(failure))?;
        if answer.len() != operations.len() {
            let (answers, asked) = (answer.len(), operations.len());
            return Err(Failure::general(format!("{answers} answers for {asked} operations")));
        }
        for (index, is_supported) in operations.into_iter().zip(answer) {
            if let Some(whole) = usize::try_from(index).ok().and_then(|at| supported.get_mut(at)) {
                *whole = is_supported;
            }
        }
        Ok(supported)
    }

    fn supported_operations_for(&self, model: &Model, _: &Caller) -> Result<Vec<bool>, Failure> {
        self.supported_operations(model)
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        self.prepare(model, options, None)
    }

    /// No older driver knows of callers.
    fn prepare_model_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        _: &Caller,
    ) -> PrepareResult {
        self.prepare(model, options, None)
    }

    fn prepare_model_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        _: &Caller,
    ) -> PrepareResult {
        if self.version() < HalVersion::V1_2 {
            self.listener.tell(&[Loss::CompilationCache]);
            return self.prepare(model, options, None);
        }
        self.prepare(model, options, Some(cache))
    }

    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        _: &Caller,
    ) -> PrepareResult {
        let OldDevice::V1_2(device) = &self.old else {
            return Err(Failure::general("HAL 1.2 was the first to keep compilations"));
        };
        check_deadline(deadline)?;
        let prepared = device.prepare_model_from_cache(cache);
        let model = prepared.map_err(|failure| self.failed(failure))?;
        if model.request_rules().is_none() {
            return Err(Failure::general("the driver does not say what the model's requests are"));
        }
        let listener = self.listener.clone();
        Ok(Arc::new(AdaptedV1_2 { model, rules: None, options: None, listener }))
    }

    fn allocate(&self, _: &BufferRequest, _: &Caller) -> Result<Arc<dyn Buffer>, Failure> {
        Err(Failure::general("HAL 1.3 was the first to have buffers of the driver"))
    }
}

fn check_deadline(deadline: Option<TimePoint>) -> Result<(), Failure> {
    match deadline.is_some_and(TimePoint::has_passed) {
        true => Err(ErrorStatus::MissedDeadlinePersistent.into()),
        false => Ok(()),
    }
}

/// Why a version cannot carry a model.
fn too_new(version: HalVersion, compliance: &Compliance) -> Failure {
    let operations = &compliance.noncompliant_operations;
    Failure::general(match operations.first() {
        Some(first) => {
            let count = operations.len();
            format!("HAL {version} cannot say {count} of the operations, the first being {first}")
        }
        None => format!("HAL {version} cannot say all that the model has beside its operations"),
    })
}
