//! A connection to a driver in another process, for one worker.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use burst_client::{
    Burst, BurstOptions, Client, RemoteDevice, RemotePreparedModel, SharedAllocator, answer_by,
};
use burst_hal::session::PoolAllocator;
use burst_hal::trace::{Marks, SpanKind};
use burst_hal::validate::RequestRules;
use burst_hal::{
    Buffer, BufferRequest, BurstExecutor, CacheFiles, Caller, Capabilities, CompilationCache,
    Device, DeviceStatus, DeviceType, ErrorStatus, ExecutionCallback, ExecutionOptions,
    ExecutionResult, Extension, Failure, Fence, FencedExecution, FencedOptions, HalVersion, Model,
    Pace, Pool, PrepareOptions, PrepareResult, PreparedModel, Request, TimePoint,
};
use burst_harness::WaitKind;
use burst_verify::{DeviceLease, RunError, Target};

use crate::driver_process::DriverProcess;
use crate::out::counted;
use crate::service;
use crate::threads::Threads;
use crate::trace::{Tracing, told};

/// Which driver.
pub(crate) struct Service<'a> {
    pub(crate) socket: Option<&'a Path>,
    pub(crate) device: &'a str,
    pub(crate) threads: Threads,
    /// Where spans go, where somebody wants them.
    pub(crate) tracing: Option<&'a Tracing>,
}

/// One worker's connection.
pub(crate) struct RemoteLease<'a> {
    service: &'a Service<'a>,
    connection: Connection,
    memory: Arc<dyn PoolAllocator>,
}

/// Dropped in this order: the connection first, so that a private driver process sees the hang-up
/// and ends.
struct Connection {
    device: Watched<RemoteDevice>,
    client: Client,
    _process: Option<DriverProcess>,
}

impl<'a> RemoteLease<'a> {
    pub(crate) fn open(service: &'a Service<'a>) -> Result<Self, RunError> {
        let connection = service.connect().map_err(|error| RunError::Device(error.into()))?;
        Ok(RemoteLease { service, connection, memory: Arc::new(SharedAllocator) })
    }
}

impl Service<'_> {
    fn connect(&self) -> Result<Connection> {
        let mut marks = Marks::begin(self.tracing.map(Tracing::sink));
        // Bound in this order so that on an error the connection goes first, and the process ends.
        let (process, client) = match self.socket {
            Some(path) => (None, Client::connect(path).map_err(|error| service::at(path, error))?),
            None => {
                let wait = WaitKind::Adaptive.name();
                let (process, socket) =
                    DriverProcess::start(wait, self.device, self.threads.count)?;
                let client = Client::from_socket(socket).with_context(|| {
                    format!("no contact with the driver process {}", process.pid())
                })?;
                (Some(process), client)
            }
        };
        marks.mark(SpanKind::Connect);
        if let Some(tracing) = self.tracing {
            tracing.attach(&client).map_err(told)?;
        }
        let inner = client.device(self.device)?;
        let device = Watched { inner, fell_back: Arc::default() };
        Ok(Connection { device, client, _process: process })
    }
}

impl DeviceLease for RemoteLease<'_> {
    fn target(&self) -> Target<'_> {
        Target { device: &self.connection.device, memory: &self.memory }
    }

    fn objection(&mut self) -> Option<String> {
        let count = self.connection.device.fell_back.swap(0, Ordering::Relaxed);
        let over = (count > 0).then(|| counted(count, "execution"));
        over.map(|count| format!("{count} went over the socket, not the burst"))
    }

    fn repair(&mut self) -> Result<(), RunError> {
        self.objection(); // of the suite that failed: nobody asked
        if !self.connection.client.is_alive() {
            tracing::warn!(
                pid = self.connection.client.driver_pid(),
                "the driver died; connecting again"
            );
            *self = RemoteLease::open(self.service)?;
        }
        Ok(())
    }
}

/// A device whose bursts count the requests that they could not carry: those succeed over the
/// control socket, and would pass for executions of the burst.
struct Watched<T> {
    inner: T,
    fell_back: Arc<AtomicU64>,
}

impl<T> Watched<T> {
    fn wrap<U>(&self, inner: U) -> Watched<U> {
        Watched { inner, fell_back: Arc::clone(&self.fell_back) }
    }
}

/// How long a set-up call is tried again: far longer than a service's rate takes to let the next one in.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(1);

/// A set-up call, again and again while the service has too much of them: a device that computes nothing answers
/// faster than one user may ask.
fn patiently<T>(mut call: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        match call() {
            Err(failure)
                if failure.status == ErrorStatus::ResourceExhaustedTransient
                    && Instant::now() < until =>
            {
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

#[deny(clippy::missing_trait_methods, reason = "all that the device can do has to reach it")]
impl Device for Watched<RemoteDevice> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn version_string(&self) -> &str {
        self.inner.version_string()
    }

    fn device_type(&self) -> DeviceType {
        self.inner.device_type()
    }

    fn hal_version(&self) -> HalVersion {
        self.inner.hal_version()
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        self.inner.capabilities()
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        self.inner.supported_extensions()
    }

    fn cache_files_needed(&self) -> CacheFiles {
        self.inner.cache_files_needed()
    }

    fn status(&self) -> DeviceStatus {
        self.inner.status()
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        patiently(|| self.inner.supported_operations(model))
    }

    fn supported_operations_for(
        &self,
        model: &Model,
        caller: &Caller,
    ) -> Result<Vec<bool>, Failure> {
        patiently(|| self.inner.supported_operations_for(model, caller))
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        let prepared = patiently(|| Ok(self.inner.prepare(model, options)?))?;
        Ok(Arc::new(self.wrap(prepared)))
    }

    /// The service charges its own accounts, whoever the caller is here.
    fn prepare_model_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        _: &Caller,
    ) -> PrepareResult {
        self.prepare_model(model, options)
    }

    fn prepare_model_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        _: &Caller,
    ) -> PrepareResult {
        let prepared = patiently(|| Ok(self.inner.prepare_caching(model, options, cache)?))?;
        Ok(Arc::new(self.wrap(prepared)))
    }

    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        _: &Caller,
    ) -> PrepareResult {
        let prepared = patiently(|| Ok(self.inner.prepare_from_cache(cache, deadline)?))?;
        Ok(Arc::new(self.wrap(prepared)))
    }

    fn allocate(
        &self,
        request: &BufferRequest,
        caller: &Caller,
    ) -> Result<Arc<dyn Buffer>, Failure> {
        let models = request.models.iter().map(own).collect();
        let request = BufferRequest { models, ..request.clone() };
        patiently(|| self.inner.allocate(&request, caller))
    }
}

/// The connection's own prepared model.
fn own(model: &Arc<dyn PreparedModel>) -> Arc<dyn PreparedModel> {
    match model.downcast_ref::<Watched<Arc<RemotePreparedModel>>>() {
        Some(watched) => Arc::clone(&watched.inner) as Arc<dyn PreparedModel>,
        None => Arc::clone(model),
    }
}

#[deny(clippy::missing_trait_methods, reason = "all that the model can do has to reach it")]
impl PreparedModel for Watched<Arc<RemotePreparedModel>> {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.inner.execute_synchronously(request, options)
    }

    fn execute_for(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        self.inner.execute_for(request, options, caller)
    }

    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        options: ExecutionOptions,
        caller: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        let model = Arc::clone(&self.inner);
        model.execute_asynchronously(request, options, caller, callback)
    }

    fn execute_fenced(
        self: Arc<Self>,
        request: Request,
        wait_for: Vec<Fence>,
        options: FencedOptions,
        caller: Caller,
    ) -> Result<FencedExecution, Failure> {
        Arc::clone(&self.inner).execute_fenced(request, wait_for, options, caller)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn burst_hal::Burst>, Failure> {
        let burst = patiently(|| Ok(self.inner.configure_burst(&BurstOptions::default())?))?;
        Ok(Box::new(self.wrap(burst)))
    }

    fn open_executor(self: Arc<Self>) -> Result<Option<Box<dyn BurstExecutor>>, Failure> {
        Arc::clone(&self.inner).open_executor()
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        self.inner.request_rules()
    }

    fn pace(&self) -> Option<&Pace> {
        self.inner.pace()
    }

    fn prepare_options(&self) -> Option<PrepareOptions> {
        self.inner.prepare_options()
    }

    /// None to lend: it is held as its own type, which `own` finds.
    fn wrapped(&self) -> Option<&Arc<dyn PreparedModel>> {
        None
    }
}

#[deny(clippy::missing_trait_methods, reason = "all that the burst can do has to reach it")]
impl burst_hal::Burst for Watched<Burst> {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        let deadline = answer_by(options.deadline);
        match self.inner.execute(request, options, deadline) {
            Ok(done) => result.clone_from(done),
            Err(error) => {
                tracing::debug!(%error, "execution failed");
                result.reset(error.status());
                return;
            }
        }
        if self.inner.fell_back() {
            self.fell_back.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn work_for(&mut self, caller: &Caller) {
        burst_hal::Burst::work_for(&mut self.inner, caller);
    }

    fn cache_memory(&mut self, memory: &Pool) {
        burst_hal::Burst::cache_memory(&mut self.inner, memory);
    }

    fn release_resources(&mut self) {
        burst_hal::Burst::release_resources(&mut self.inner);
    }
}
