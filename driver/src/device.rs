//! The device itself: what it says of itself, and how it takes a model.

use std::sync::Arc;

use burst_hal::validate::validate_model;
use burst_hal::{
    Capabilities, Device, DeviceType, Failure, HalVersion, Model, OperandKind, OperandType,
    PerformanceInfo, PrepareOptions, PreparedModel,
};

use crate::error::DriverError;
use crate::kernels::Isa;
use crate::op::PrepareContext;
use crate::plan::survey;
use crate::prepared::CpuPreparedModel;

/// How a [`CpuDevice`] works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Whether fast kernels are used; without them every operation runs its reference.
    pub fast_kernels: bool,
    /// Instruction sets that kernels may use.
    pub isa: Isa,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        DeviceOptions { fast_kernels: true, isa: Isa::detect() }
    }
}

/// The CPU as a device. Its name is `cpu`.
#[derive(Debug, Default)]
pub struct CpuDevice {
    options: DeviceOptions,
}

impl CpuDevice {
    /// A device with these options.
    #[must_use]
    pub fn new(options: DeviceOptions) -> Self {
        CpuDevice { options }
    }

    /// Prepares a model, for callers in the same process that want to look into it.
    ///
    /// # Errors
    /// A model that is not legal, an operation this device lacks, or one whose parameters do not
    /// make sense.
    pub fn prepare(&self, model: &Model) -> Result<CpuPreparedModel, DriverError> {
        validate_model(model, HalVersion::LATEST)?;
        let context =
            PrepareContext { fast_kernels: self.options.fast_kernels, isa: self.options.isa };
        CpuPreparedModel::new(model, &context)
    }
}

/// Speed and energy relative to the reference CPU, which this device is.
const REFERENCE: PerformanceInfo = PerformanceInfo { exec_time: 1.0, power_usage: 1.0 };

impl Device for CpuDevice {
    fn name(&self) -> &str {
        "cpu"
    }

    fn version_string(&self) -> &str {
        concat!("burst-cpu ", env!("CARGO_PKG_VERSION"))
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        let operand_performance = OperandType::ALL
            .iter()
            .filter(|ty| matches!(ty.kind(), OperandKind::Scalar | OperandKind::Tensor))
            .filter(|ty| !ty.is_oem())
            .map(|ty| (*ty, REFERENCE))
            .collect();
        Ok(Capabilities {
            relaxed_float32_to_float16_scalar: REFERENCE,
            relaxed_float32_to_float16_tensor: REFERENCE,
            operand_performance,
            if_performance: REFERENCE,
            while_performance: REFERENCE,
        })
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        validate_model(model, HalVersion::LATEST).map_err(DriverError::from)?;
        let verdicts = survey(model)?;
        Ok(verdicts.iter().map(Result::is_ok).collect())
    }

    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        if options.deadline.is_some_and(burst_hal::TimePoint::has_passed) {
            return Err(DriverError::Deadline.into());
        }
        Ok(Arc::new(self.prepare(model)?))
    }
}
