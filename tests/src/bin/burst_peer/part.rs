//! A service whose device runs some operations, and can be caught while it executes one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_driver::CpuDevice;
use burst_hal::validate::RequestRules;
use burst_hal::{
    Capabilities, Device, ExecutionOptions, ExecutionResult, Failure, HalVersion, Model,
    OperandKind, OperandType, OperationType, PerformanceInfo, PrepareOptions, PrepareResult,
    PreparedModel, Request,
};
use burst_server::Listener;

use crate::say;

/// The CPU driver behind a list of operations.
struct Part {
    name: String,
    takes: Vec<OperationType>,
    version: HalVersion,
    cpu: CpuDevice,
    executions: Arc<Executions>,
}

/// Executions of all its models.
struct Executions {
    begun: AtomicU64,
    /// The one that never ends; 0 for none.
    last: u64,
}

/// Serves a device of this name at a path until it is killed. It runs the operations of these numbers, says `begun`
/// when the execution of number `last` begins, which then never ends, and claims the HAL of this NNAPI level.
pub(crate) fn serve(path: &str, name: &str, operations: &str, last: &str, level: &str) {
    let code = |number: &str| number.parse().map(OperationType::from_code).expect("a number");
    let level: u32 = level.parse().expect("a number");
    let mut versions = HalVersion::ALL.into_iter();
    let device = Part {
        name: name.to_owned(),
        takes: operations.split(',').map(code).collect(),
        version: versions.find(|one| one.feature_level() == level).expect("a level"),
        cpu: CpuDevice::default(),
        executions: Arc::new(Executions {
            begun: AtomicU64::new(0),
            last: last.parse().expect("a number"),
        }),
    };
    let listener = Listener::bind(path).expect("the path is free");
    say("ready");
    burst_server::serve(Arc::new(device), &listener).expect("the socket works");
}

impl Device for Part {
    fn name(&self) -> &str {
        &self.name
    }

    fn version_string(&self) -> &str {
        "part-1"
    }

    fn hal_version(&self) -> HalVersion {
        self.version
    }

    /// Better than the reference at whatever it runs.
    fn capabilities(&self) -> Result<Capabilities, Failure> {
        let info = PerformanceInfo { exec_time: 0.5, power_usage: 0.5 };
        let is_value = |ty: &&OperandType| {
            matches!(ty.kind(), OperandKind::Scalar | OperandKind::Tensor) && !ty.is_oem()
        };
        let types = OperandType::ALL.iter().filter(is_value);
        Ok(Capabilities {
            relaxed_float32_to_float16_scalar: info,
            relaxed_float32_to_float16_tensor: info,
            operand_performance: types.map(|ty| (*ty, info)).collect(),
            if_performance: info,
            while_performance: info,
        })
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        let operations = model.main.operations.iter();
        Ok(operations.map(|one| self.takes.contains(&one.ty)).collect())
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        let model = self.cpu.prepare_model(model, options)?;
        Ok(Arc::new(PartModel { model, executions: Arc::clone(&self.executions) }))
    }
}

struct PartModel {
    model: Arc<dyn PreparedModel>,
    executions: Arc<Executions>,
}

impl PreparedModel for PartModel {
    fn request_rules(&self) -> Option<&RequestRules> {
        self.model.request_rules()
    }

    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        let number = self.executions.begun.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.executions.last {
            say("begun");
            loop {
                std::thread::park();
            }
        }
        self.model.execute_synchronously(request, options)
    }
}
