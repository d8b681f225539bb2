//! `nnapi-reference`: a plain interpreter of models, as a device.
//!
//! It computes what the [CPU device](crate::CpuDevice) computes, and shares with it what operations are: their
//! rules, their shapes and their plain kernels. Everything else it does without: there is no plan, no arena, nothing is
//! folded or packed, and one thread computes. Each operand has memory of its own between two guards, which
//! are looked at after every operation. So it judges the fast device, and it is what is left when every
//! other device fails.
//!
//! | file | what it does |
//! |---|---|
//! | `graphs.rs` | a model made ready to be walked: rules looked up, constants copied |
//! | `survey.rs` | which operations can be computed, as far as shapes and values are known |
//! | `interpreter.rs` | walks graphs, operation by operation |
//! | `control.rs` | IF and WHILE |
//! | `prepared.rs` | requests |

use std::sync::Arc;

use burst_hal::{
    Caller, Capabilities, Device, DeviceType, ErrorStatus, Extension, Failure, Model,
    PerformanceInfo, PrepareOptions, PrepareResult, TimePoint,
};

use crate::error::DriverError;
use crate::figures::table;
use crate::op::Budget;
use crate::planner::check_legal;
use crate::registry::Registry;

mod control;
mod graphs;
mod interpreter;
mod prepared;
mod survey;
#[cfg(test)]
mod tests;

use self::graphs::Graphs;
use self::prepared::ReferenceModel;

/// What every figure is relative to.
const ONE: PerformanceInfo = PerformanceInfo { exec_time: 1.0, power_usage: 1.0 };

/// The reference device.
///
/// ```
/// use burst_driver::ReferenceDevice;
/// use burst_hal::{Device, DeviceType};
///
/// let device = ReferenceDevice::default();
/// assert_eq!((device.name(), device.device_type()), ("nnapi-reference", DeviceType::Cpu));
/// ```
#[derive(Debug, Default)]
pub struct ReferenceDevice {
    registry: Registry,
}

impl ReferenceDevice {
    /// The name that applications know it by.
    pub const NAME: &'static str = "nnapi-reference";

    /// A device with these operations, which may be of extensions too.
    #[must_use]
    pub fn with_registry(registry: Registry) -> Self {
        ReferenceDevice { registry }
    }

    fn graphs(&self, model: &Model, budget: &Budget<'_>) -> Result<Graphs, DriverError> {
        check_legal(model, &self.registry)?;
        Graphs::of(model, &self.registry, budget)
    }
}

impl Device for ReferenceDevice {
    fn name(&self) -> &str {
        ReferenceDevice::NAME
    }

    fn version_string(&self) -> &str {
        concat!("burst-reference ", env!("CARGO_PKG_VERSION"))
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        Ok(Capabilities {
            relaxed_float32_to_float16_scalar: ONE,
            relaxed_float32_to_float16_tensor: ONE,
            operand_performance: table(|_| ONE),
            if_performance: ONE,
            while_performance: ONE,
        })
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        self.registry.extensions()
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.supported_operations_for(model, &Caller::default())
    }

    fn supported_operations_for(
        &self,
        model: &Model,
        caller: &Caller,
    ) -> Result<Vec<bool>, Failure> {
        let budget = Budget::new(caller, None);
        let graphs = self.graphs(model, &budget)?;
        let verdicts = survey::survey(&graphs, budget.stop())?;
        Ok(verdicts.iter().map(Result::is_ok).collect())
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        self.prepare_model_for(model, options, &Caller::default())
    }

    fn prepare_model_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        caller: &Caller,
    ) -> PrepareResult {
        check_legal(model, &self.registry)?;
        if options.deadline.is_some_and(TimePoint::has_passed) {
            let status = ErrorStatus::MissedDeadlinePersistent;
            return Err(DriverError::Hopeless { status }.into());
        }
        let budget = Budget::new(caller, options.deadline);
        let graphs = Graphs::of(model, &self.registry, &budget)?;
        for verdict in survey::survey(&graphs, budget.stop())? {
            verdict?;
        }
        Ok(Arc::new(ReferenceModel::new(model, graphs, *options, &budget)?))
    }
}
