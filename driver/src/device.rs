//! The device: answers questions about itself, and prepares models.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use burst_hal::{
    Buffer, BufferRequest, BufferRoles, Caller, Capabilities, Device, DeviceType, ErrorStatus,
    Failure, Model, OperandKind, OperandType, PerformanceInfo, PrepareOptions, PreparedModel,
    TimePoint,
};

use crate::budget::Budget;
use crate::buffers::CpuBuffer;
use crate::compute;
use crate::device_memory::DeviceMemory;
use crate::error::DriverError;
use crate::kernels::table::KERNELS;
use crate::kernels::{Isa, matmul_float};
use crate::op::PrepareContext;
use crate::planner::{check_legal, survey};
use crate::prepared::CpuPreparedModel;
use crate::threads::{MAX_THREADS, ThreadPool};

/// How a [`CpuDevice`] works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Whether fast kernels are used; without them every operation runs its reference.
    pub fast_kernels: bool,
    /// Instruction sets that kernels may use.
    pub isa: Isa,
    /// Threads that work on one operation, between 1 and [`MAX_THREADS`]; numbers beyond are clamped
    /// to that range. Results are the same bits for every number. The device starts one thread less, with
    /// its first model, and all its models and executions share them: executions at the same time
    /// use the helpers alternately, operation by operation, and an execution that finds them busy
    /// computes alone.
    pub threads: usize,
    /// Whether nothing else in this process uses rayon, as in a service. Where products of floats are
    /// the matrix library's (without AVX-512), rayon's global pool then becomes one of a single thread.
    /// Otherwise each thread that executes keeps some 8 KiB there also after it has ended.
    pub owns_process: bool,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        DeviceOptions { fast_kernels: true, isa: Isa::detect(), threads: 1, owns_process: false }
    }
}

/// The CPU as a device. Its name is `cpu`.
#[derive(Debug, Default)]
pub struct CpuDevice {
    options: DeviceOptions,
    /// Threads, counted when the device is made: later, in its sandbox, a service may be unable to count
    /// CPUs.
    cpus: usize,
    /// Started with the first model: a device that only answers questions has no threads.
    pool: OnceLock<Arc<ThreadPool>>,
    memory: Arc<DeviceMemory>,
}

impl CpuDevice {
    /// A device with these options.
    #[must_use]
    pub fn new(options: DeviceOptions) -> Self {
        let cpus = match options.threads {
            0 | 1 => 1,
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        };
        if options.owns_process && !matmul_float::has_panels(options.isa) {
            compute::own_global_pool();
        }
        for kernel in KERNELS {
            // Those without a form for these instructions are not run.
            if let Some(level) = kernel.level(options.isa) {
                let is_written_for_it = kernel.written_for.contains(&level);
                let (operations, types) = (kernel.operations, kernel.types);
                tracing::debug!(name = kernel.name, ?level, is_written_for_it, ?operations, ?types);
            }
        }
        CpuDevice { options, cpus, pool: OnceLock::new(), memory: Arc::default() }
    }

    /// Prepares a model, for callers in the same process that want to look into it.
    ///
    /// # Errors
    /// A model that is not legal, an operation this device lacks, or one whose parameters do not
    /// make sense.
    pub fn prepare(&self, model: &Model) -> Result<CpuPreparedModel, DriverError> {
        self.prepare_within(model, &Budget::default())
    }

    fn prepare_within(
        &self,
        model: &Model,
        budget: &Budget<'_>,
    ) -> Result<CpuPreparedModel, DriverError> {
        check_legal(model)?;
        let DeviceOptions { fast_kernels, isa, .. } = self.options;
        let context = PrepareContext { fast_kernels, isa, budget };
        let prepare = || CpuPreparedModel::new(model, &context, self.pool(), &self.memory);
        let prepared = prepare();
        if !matches!(prepared, Err(DriverError::Refused(_))) {
            return prepared;
        }
        drop(budget.take_charge()); // of what was given up, and is gone
        match self.memory.release_idle(&budget.same_account()) {
            true => prepare(),
            false => prepared,
        }
    }

    /// The helpers, where there are to be any.
    fn pool(&self) -> Option<Arc<ThreadPool>> {
        let threads = self.options.threads.min(MAX_THREADS);
        let make = || Arc::new(ThreadPool::new(threads, self.cpus));
        (threads > 1).then(|| Arc::clone(self.pool.get_or_init(make)))
    }
}

/// Whether there may be enough once something was given back.
fn is_exhausted(failure: &Failure) -> bool {
    failure.status == ErrorStatus::ResourceExhaustedTransient
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
        self.supported_operations_for(model, &Caller::default())
    }

    fn supported_operations_for(
        &self,
        model: &Model,
        caller: &Caller,
    ) -> Result<Vec<bool>, Failure> {
        check_legal(model)?;
        Ok(survey(model, &Budget::new(caller, None))?)
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
            return Err(DriverError::Deadline.into());
        }
        let budget = Budget::new(caller, options.deadline);
        Ok(Arc::new(self.prepare_within(model, &budget)?))
    }

    fn allocate(
        &self,
        request: &BufferRequest,
        caller: &Caller,
    ) -> Result<Arc<dyn Buffer>, Failure> {
        let is_own = |model: &Arc<dyn PreparedModel>| {
            let model = (&**model as &dyn Any).downcast_ref::<CpuPreparedModel>();
            model.is_some_and(|model| model.is_of(&self.memory))
        };
        if !request.models.iter().all(is_own) {
            return Err(Failure::invalid("a role in a model that this device has not prepared"));
        }
        let make = || CpuBuffer::allocate(&self.memory.buffers, BufferRoles::new(request)?, caller);
        let buffer = match make() {
            Err(refused) if is_exhausted(&refused) => {
                match self.memory.release_idle(&caller.empty_charge()) {
                    true => make(),
                    false => Err(refused),
                }
            }
            other => other,
        };
        Ok(Arc::new(buffer?))
    }
}
