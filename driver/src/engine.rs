//! What all devices of a process share: instructions and threads to compute with, the registry of what can be
//! computed, and how fast that is.

use std::sync::{Arc, OnceLock};

use burst_shm::FreeHugePages;

use crate::compute;
use crate::device_memory::DeviceMemory;
use crate::figures::Figures;
use crate::kernels::table::KERNELS;
use crate::kernels::{Isa, matmul_float};
use crate::registry::Registry;
use crate::threads::{MAX_THREADS, ThreadPool};

/// How an [`Engine`] computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Whether fast kernels are used; without them every operation runs its reference.
    pub fast_kernels: bool,
    /// Instruction sets that kernels may use.
    pub isa: Isa,
    /// Threads that work on one operation, between 1 and [`MAX_THREADS`]; numbers beyond are clamped
    /// to that range. Results are the same bits for every number. The engine starts one thread less, with
    /// its first model, and all its devices, models and executions share them: executions at the same time
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

impl DeviceOptions {
    /// Plain references on one thread: what the speed of devices is told relative to.
    #[must_use]
    pub fn reference() -> Self {
        DeviceOptions { fast_kernels: false, ..DeviceOptions::default() }
    }
}

/// What computes, for one device or for several: two devices of one engine do not have twice the threads.
///
/// ```
/// use std::sync::Arc;
///
/// use burst_driver::{CpuDevice, DeviceOptions, Engine, Variant};
/// use burst_hal::Device;
///
/// let engine = Arc::new(Engine::new(DeviceOptions { threads: 2, ..DeviceOptions::default() }));
/// let devices = Variant::ALL.map(|variant| CpuDevice::of(&engine, variant));
/// assert_eq!(devices[0].name(), "cpu");
/// ```
#[derive(Debug, Default)]
pub struct Engine {
    options: DeviceOptions,
    registry: Registry,
    figures: Figures,
    /// Threads, counted when the engine is made: later, in its sandbox, a service may be unable to count
    /// CPUs.
    cpus: usize,
    /// Opened with the engine, for the same reason.
    huge_pages: FreeHugePages,
    /// Buffers and idle contexts of all its devices.
    memory: Arc<DeviceMemory>,
    /// Started with the first model: devices that only answer questions have no threads.
    pool: OnceLock<Arc<ThreadPool>>,
}

impl Engine {
    /// An engine with these options, for the operations of the base range.
    #[must_use]
    pub fn new(options: DeviceOptions) -> Self {
        let cpus = match options.threads {
            0 | 1 => 1,
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        };
        for kernel in KERNELS {
            // Those without a form for these instructions are not run.
            if let Some(level) = kernel.level(options.isa) {
                let is_written_for_it = kernel.written_for.contains(&level);
                let (operations, types) = (kernel.operations, kernel.types);
                tracing::debug!(name = kernel.name, ?level, is_written_for_it, ?operations, ?types);
            }
        }
        Engine { options, cpus, huge_pages: FreeHugePages::open(), ..Engine::default() }
    }

    /// The same with this registry, which may have extensions.
    #[must_use]
    pub fn with_registry(self, registry: Registry) -> Self {
        Engine { registry, ..self }
    }

    /// The same with figures of its speed that were measured here.
    #[must_use]
    pub fn with_figures(self, figures: Figures) -> Self {
        Engine { figures, ..self }
    }

    /// Where its devices have their buffers and idle contexts.
    pub(crate) fn memory(&self) -> &Arc<DeviceMemory> {
        &self.memory
    }

    /// How many huge pages there are for weights.
    pub(crate) fn huge_pages(&self) -> &FreeHugePages {
        &self.huge_pages
    }

    /// Called with every model that is prepared, and not before the first: the pool is a thread, and a service
    /// locks itself in before it has any.
    pub(crate) fn own_process(&self) {
        if self.options.owns_process && !matmul_float::has_panels(self.options.isa) {
            compute::own_global_pool();
        }
    }

    /// How it computes.
    #[must_use]
    pub fn options(&self) -> DeviceOptions {
        self.options
    }

    /// How fast it is, as far as that is known.
    #[must_use]
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// What it can compute.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The helpers, where there are to be any.
    pub(crate) fn pool(&self) -> Option<Arc<ThreadPool>> {
        let threads = self.options.threads.min(MAX_THREADS);
        let make = || Arc::new(ThreadPool::new(threads, self.cpus));
        (threads > 1).then(|| Arc::clone(self.pool.get_or_init(make)))
    }
}
