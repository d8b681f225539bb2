//! A device whose prepared models execute in all four ways, around one that need not.

use std::sync::Arc;

use burst_hal::validate::{RequestRules, UnspecifiedOutputs};
use burst_hal::{
    Buffer, BufferRequest, Burst, BurstExecutor, CacheFiles, Caller, Capabilities,
    CompilationCache, Device, DeviceStatus, DeviceType, ExecutionCallback, ExecutionOptions,
    ExecutionResult, Extension, Failure, Fence, FencedExecution, FencedOptions, HalVersion,
    MemoryCharge, Model, Pace, PrepareOptions, PrepareResult, PreparedModel, Priority, Request,
    TimePoint,
};

use crate::launcher::{Launcher, Run, check, check_fenced};

impl Launcher {
    /// The same device, whose prepared models execute in all four ways: the asynchronous and the fenced
    /// one are this launcher's. Everything else is the device's own.
    ///
    /// A model that was prepared from files executes with the priority that it was prepared with, where the
    /// device [says](PreparedModel::prepare_options) which; else with MEDIUM.
    #[must_use]
    pub fn wrap(&self, device: Arc<dyn Device>) -> Arc<dyn Device> {
        Arc::new(LaunchDevice { device, launcher: self.clone() })
    }
}

/// A device of somebody else with the launches of ours.
struct LaunchDevice {
    device: Arc<dyn Device>,
    launcher: Launcher,
}

/// A prepared model of such a device.
struct LaunchModel {
    model: Arc<dyn PreparedModel>,
    launcher: Launcher,
    /// How it was prepared, without a deadline; `None` where nobody knows.
    options: Option<PrepareOptions>,
    /// `None` where the model has rules of its own.
    rules: Option<RequestRules>,
    /// For the rules.
    _charge: MemoryCharge,
}

impl LaunchDevice {
    /// Wraps what was prepared of a model, whose rules the caller pays for.
    fn prepared(
        &self,
        prepared: Arc<dyn PreparedModel>,
        (model, options): (&Model, &PrepareOptions),
        caller: &Caller,
    ) -> PrepareResult {
        let mut charge = caller.empty_charge();
        let rules = match prepared.request_rules() {
            Some(_) => None,
            None => {
                let rules = RequestRules::new(model).map_err(|e| Failure::new(e.status(), e))?;
                charge.grow(rules.held_bytes() as u64)?;
                Some(rules)
            }
        };
        let options = PrepareOptions { deadline: None, ..*options };
        Ok(self.wrapped(prepared, Some(options), rules, charge))
    }

    fn wrapped(
        &self,
        model: Arc<dyn PreparedModel>,
        options: Option<PrepareOptions>,
        rules: Option<RequestRules>,
        charge: MemoryCharge,
    ) -> Arc<dyn PreparedModel> {
        let launcher = self.launcher.clone();
        Arc::new(LaunchModel { model, launcher, options, rules, _charge: charge })
    }
}

#[deny(clippy::missing_trait_methods, reason = "all that the device can do has to reach it")]
impl Device for LaunchDevice {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn version_string(&self) -> &str {
        self.device.version_string()
    }

    fn device_type(&self) -> DeviceType {
        self.device.device_type()
    }

    fn hal_version(&self) -> HalVersion {
        self.device.hal_version()
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        self.device.capabilities()
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        self.device.supported_extensions()
    }

    fn cache_files_needed(&self) -> CacheFiles {
        self.device.cache_files_needed()
    }

    fn status(&self) -> DeviceStatus {
        self.device.status()
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.device.supported_operations(model)
    }

    fn supported_operations_for(
        &self,
        model: &Model,
        caller: &Caller,
    ) -> Result<Vec<bool>, Failure> {
        self.device.supported_operations_for(model, caller)
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        let prepared = self.device.prepare_model(model, options)?;
        self.prepared(prepared, (model, options), &Caller::default())
    }

    fn prepare_model_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        caller: &Caller,
    ) -> PrepareResult {
        let prepared = self.device.prepare_model_for(model, options, caller)?;
        self.prepared(prepared, (model, options), caller)
    }

    fn prepare_model_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        caller: &Caller,
    ) -> PrepareResult {
        let prepared = self.device.prepare_model_caching(model, options, cache, caller)?;
        self.prepared(prepared, (model, options), caller)
    }

    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> PrepareResult {
        let prepared = self.device.prepare_model_from_cache(cache, deadline, caller)?;
        // It has rules of its own. How it was prepared is kept in the files, which only the device reads.
        let options = prepared.prepare_options();
        Ok(self.wrapped(prepared, options, None, caller.empty_charge()))
    }

    fn allocate(
        &self,
        request: &BufferRequest,
        caller: &Caller,
    ) -> Result<Arc<dyn Buffer>, Failure> {
        let models = request.models.iter().map(own).collect();
        self.device.allocate(&BufferRequest { models, ..request.clone() }, caller)
    }
}

/// The device's own prepared model.
fn own(model: &Arc<dyn PreparedModel>) -> Arc<dyn PreparedModel> {
    let wrapped = model.downcast_ref::<LaunchModel>();
    Arc::clone(wrapped.map_or(model, |wrapped| &wrapped.model))
}

impl LaunchModel {
    /// An execution that comes now.
    fn run(&self, request: Request, caller: Caller, options: &ExecutionOptions) -> Run {
        let priority = self.options.map_or(Priority::Medium, |options| options.priority);
        Run::new(Arc::clone(&self.model), priority, request, caller, options)
    }
}

#[deny(clippy::missing_trait_methods, reason = "all that the model can do has to reach it")]
impl PreparedModel for LaunchModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.model.execute_synchronously(request, options)
    }

    fn execute_for(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        self.model.execute_for(request, options, caller)
    }

    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        options: ExecutionOptions,
        caller: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        let run = self.run(request, caller, &options);
        let checked = check(self.request_rules(), &run.request, UnspecifiedOutputs::Allowed);
        self.launcher.start(run, checked, options, callback)
    }

    fn execute_fenced(
        self: Arc<Self>,
        request: Request,
        wait_for: Vec<Fence>,
        options: FencedOptions,
        caller: Caller,
    ) -> Result<FencedExecution, Failure> {
        let run = self.run(request, caller, &options.execution);
        check_fenced(self.request_rules(), &run.request)?;
        self.launcher.start_fenced(run, wait_for, options)
    }

    fn wrapped(&self) -> Option<&Arc<dyn PreparedModel>> {
        Some(&self.model)
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        self.rules.as_ref().or_else(|| self.model.request_rules())
    }

    fn pace(&self) -> Option<&Pace> {
        self.model.pace()
    }

    fn prepare_options(&self) -> Option<PrepareOptions> {
        self.model.prepare_options().or(self.options)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        Arc::clone(&self.model).open_burst()
    }

    fn open_executor(self: Arc<Self>) -> Result<Option<Box<dyn BurstExecutor>>, Failure> {
        Arc::clone(&self.model).open_executor()
    }
}
