//! The device: answers questions about itself, and prepares models.

use std::sync::{Arc, OnceLock};

use burst_hal::{
    CacheFiles, Caller, Capabilities, CompilationCache, Device, DeviceType, Failure, Model,
    OperandKind, OperandType, PerformanceInfo, PrepareOptions, PreparedModel, TimePoint,
};

use crate::budget::Budget;
use crate::cache::{self, Bound, CacheError, CacheKey, Files, Restored, Seal};
use crate::compute;
use crate::error::DriverError;
use crate::kept::Kept;
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
    /// Without one it keeps no compilations.
    cache_key: Option<CacheKey>,
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
        CpuDevice { options, cpus, pool: OnceLock::new(), cache_key: None }
    }

    /// With this key it keeps compilations in files, and takes those that a device of this build with the
    /// same key and the same options has kept.
    #[must_use]
    pub fn with_cache_key(self, key: CacheKey) -> Self {
        CpuDevice { cache_key: Some(key), ..self }
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
        self.plan(model, budget)
    }

    /// Plans a model that is legal.
    fn plan(&self, model: &Model, budget: &Budget<'_>) -> Result<CpuPreparedModel, DriverError> {
        let DeviceOptions { fast_kernels, isa, .. } = self.options;
        let context = PrepareContext { fast_kernels, isa, budget };
        CpuPreparedModel::new(model, &context, self.pool())
    }

    /// Prepares a model, and keeps the compilation in these files.
    fn prepare_keeping(
        &self,
        model: &Model,
        options: &PrepareOptions,
        (files, seal): (&Files<'_>, &Seal),
        caller: &Caller,
    ) -> Result<CpuPreparedModel, DriverError> {
        let recording = Budget::new(caller, options.deadline).with_kept(Kept::recording());
        let prepared = match self.prepare_within(model, &recording) {
            // Copies of what is to be kept were charged, too: without them there may be room.
            Err(error @ DriverError::Refused(_)) => {
                drop(recording);
                tracing::info!(%error, "no room to keep the compilation");
                return self.prepare_within(model, &Budget::new(caller, options.deadline));
            }
            prepared => prepared?,
        };
        let kept = recording.into_kept().into_rest();
        let budget = Budget::new(caller, options.deadline);
        // The model is prepared, whatever becomes of the files.
        match files.save(seal, model, &kept, options, &budget) {
            Ok(()) => tracing::debug!("the compilation is kept"),
            Err(error) => tracing::info!(%error, "the compilation is not kept"),
        }
        Ok(prepared)
    }

    /// Makes a model ready that was kept in files.
    fn restore(
        &self,
        place: &CompilationCache,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> Result<CpuPreparedModel, DriverError> {
        let key = self.cache_key.as_ref().ok_or(CacheError::NoKey)?;
        Files::of(place)?;
        if deadline.is_some_and(TimePoint::has_passed) {
            return Err(DriverError::Deadline);
        }
        let seal = self.seal(key, place, caller);
        let budget = Budget::new(caller, deadline);
        let Restored { model, kept, options, .. } = &cache::load(place, &seal, &budget)?;
        // It was legal when it was kept, and is the same.
        let budget = budget.with_kept(Kept::restoring(kept.clone()));
        let prepared = self.plan(model, &budget)?;
        match budget.into_kept().into_rest().is_empty() {
            true => Ok(prepared.with_options(options)),
            // The plan is not the one that was kept: no planner of this build does that.
            false => {
                Err(CacheError::Malformed { kind: cache::Kind::Data, what: "it is left over" }
                    .into())
            }
        }
    }

    /// What files of this device have to be sealed with.
    fn seal(&self, key: &CacheKey, place: &CompilationCache, caller: &Caller) -> Seal {
        let DeviceOptions { fast_kernels, isa, .. } = self.options;
        let options = format!("fast kernels: {fast_kernels}, {isa:?}");
        let bound =
            Bound { device: self.name(), version: self.version_string(), options: &options };
        Seal::new(key, bound, &place.token, caller)
    }

    /// The helpers, where there are to be any.
    fn pool(&self) -> Option<Arc<ThreadPool>> {
        let threads = self.options.threads.min(MAX_THREADS);
        let make = || Arc::new(ThreadPool::new(threads, self.cpus));
        (threads > 1).then(|| Arc::clone(self.pool.get_or_init(make)))
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
        Ok(Arc::new(self.prepare_within(model, &budget)?.with_options(options)))
    }

    fn cache_files_needed(&self) -> CacheFiles {
        match self.cache_key {
            Some(_) => cache::FILES,
            None => CacheFiles::default(),
        }
    }

    fn prepare_model_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        place: &CompilationCache,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let Some(key) = &self.cache_key else {
            return self.prepare_model_for(model, options, caller);
        };
        let files = match Files::of(place) {
            Ok(files) => files,
            Err(error) => {
                // No files at all: it is not asked for.
                if place.files() != CacheFiles::default() {
                    tracing::info!(%error, "the compilation is not kept");
                }
                return self.prepare_model_for(model, options, caller);
            }
        };
        if options.deadline.is_some_and(TimePoint::has_passed) {
            return Err(DriverError::Deadline.into());
        }
        let seal = self.seal(key, place, caller);
        let prepared = self.prepare_keeping(model, options, (&files, &seal), caller)?;
        Ok(Arc::new(prepared.with_options(options)))
    }

    fn prepare_model_from_cache(
        &self,
        place: &CompilationCache,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        Ok(Arc::new(self.restore(place, deadline, caller)?))
    }
}
