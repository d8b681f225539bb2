//! The device: answers questions about itself, and prepares models.

use std::sync::Arc;

use burst_hal::{
    Caller, Capabilities, Device, DeviceType, ErrorStatus, ExecutionPreference, Extension, Failure,
    Model, PrepareOptions, PreparedModel, TimePoint,
};

use crate::budget::Budget;
use crate::engine::{DeviceOptions, Engine};
use crate::error::DriverError;
use crate::offer::Offer;
use crate::op::PrepareContext;
use crate::planner::{check_legal, survey};
use crate::prepared::CpuPreparedModel;
use crate::variant::Variant;

/// The CPU as a device: all of what its engine can compute, or a [`Variant`] of it.
#[derive(Debug)]
pub struct CpuDevice {
    engine: Arc<Engine>,
    variant: &'static Variant,
}

/// A device that runs everything, on an engine of its own.
impl Default for CpuDevice {
    fn default() -> Self {
        CpuDevice::new(DeviceOptions::default())
    }
}

impl CpuDevice {
    /// A device that runs everything, on an engine of its own with these options. Its name is `cpu`.
    #[must_use]
    pub fn new(options: DeviceOptions) -> Self {
        CpuDevice::of(&Arc::new(Engine::new(options)), &Variant::CPU)
    }

    /// A device of an engine that others may use too.
    #[must_use]
    pub fn of(engine: &Arc<Engine>, variant: &'static Variant) -> Self {
        CpuDevice { engine: Arc::clone(engine), variant }
    }

    /// Prepares a model, for callers in the same process that want to look into it.
    ///
    /// # Errors
    /// A model that is not legal, an operation this device lacks, or one whose parameters do not
    /// make sense.
    pub fn prepare(&self, model: &Model) -> Result<CpuPreparedModel, DriverError> {
        let preference = PrepareOptions::default().preference;
        self.prepare_within(model, preference, &Budget::default())
    }

    fn prepare_within(
        &self,
        model: &Model,
        preference: ExecutionPreference,
        budget: &Budget<'_>,
    ) -> Result<CpuPreparedModel, DriverError> {
        check_legal(model, self.engine.registry())?;
        self.engine.own_process();
        let DeviceOptions { fast_kernels, isa, .. } = self.engine.options();
        let context = PrepareContext { fast_kernels, isa, budget };
        CpuPreparedModel::new(model, self.offer(), &context, preference, &self.engine)
    }

    fn offer(&self) -> Offer<'_> {
        Offer { registry: self.engine.registry(), takes: self.variant.takes }
    }
}

impl Device for CpuDevice {
    fn name(&self) -> &str {
        self.variant.name
    }

    fn version_string(&self) -> &str {
        concat!("burst-cpu ", env!("CARGO_PKG_VERSION"))
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        Ok(self.variant.capabilities(self.engine.figures()))
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        match self.variant.has_extensions {
            true => self.engine.registry().extensions(),
            false => Vec::new(),
        }
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.supported_operations_for(model, &Caller::default())
    }

    fn supported_operations_for(
        &self,
        model: &Model,
        caller: &Caller,
    ) -> Result<Vec<bool>, Failure> {
        check_legal(model, self.engine.registry())?;
        Ok(survey(model, self.offer(), &Budget::new(caller, None))?)
    }

    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        self.prepare_model_for(model, options, &Caller::default())
    }

    fn prepare_model_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        if options.deadline.is_some_and(TimePoint::has_passed) {
            let status = ErrorStatus::MissedDeadlinePersistent;
            return Err(DriverError::Hopeless { status }.into());
        }
        let budget = Budget::new(caller, options.deadline);
        Ok(Arc::new(self.prepare_within(model, options.preference, &budget)?))
    }
}
