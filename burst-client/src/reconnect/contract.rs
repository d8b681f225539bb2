//! What outlives its service as a [`burst_hal::Device`] and a [`burst_hal::PreparedModel`].

use std::sync::Arc;

use burst_hal::validate::RequestRules;
use burst_hal::{
    Buffer, BufferRequest, BurstExecutor, CacheFiles, Caller, Capabilities, CompilationCache,
    Device, DeviceStatus, DeviceType, ExecutionCallback, ExecutionOptions, ExecutionResult,
    Extension, Failure, Fence, FencedExecution, FencedOptions, HalVersion, Model, Pace,
    PrepareOptions, PreparedModel, Request, TimePoint,
};

use super::{Origin, ReconnectingDevice, ReconnectingModel};
use crate::BurstOptions;
use crate::prepared::launched;
use crate::waiting::{Patience, answer_by};

#[deny(clippy::missing_trait_methods, reason = "all that the model can do has to reach it")]
impl PreparedModel for ReconnectingModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.execute_for(request, options, &Caller::default())
    }

    fn execute_for(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        let patience = Patience::of(caller, answer_by(options.deadline));
        match self.reconnect_with(patience) {
            Ok(model) => model.execute_for(request, options, caller),
            Err(error) => {
                tracing::debug!(%error, "execution failed");
                ExecutionResult::of(error.status())
            }
        }
    }

    /// Connects again before it starts anything, on the caller's thread. An execution that is lost with its
    /// service is DEVICE_UNAVAILABLE and not started again: nobody knows what came of it.
    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        options: ExecutionOptions,
        caller: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        match self.reconnect(answer_by(options.deadline)) {
            Ok(model) => model.execute_asynchronously(request, options, caller, callback),
            Err(error) => {
                drop(request);
                callback(ExecutionResult::of(error.status()));
                launched(Err(error))
            }
        }
    }

    /// Likewise. Fences of executions that the service before had begun have failed, and so has a chain
    /// over its death.
    fn execute_fenced(
        self: Arc<Self>,
        request: Request,
        wait_for: Vec<Fence>,
        options: FencedOptions,
        caller: Caller,
    ) -> Result<FencedExecution, Failure> {
        let model = self.reconnect(answer_by(options.execution.deadline))?;
        model.execute_fenced(request, wait_for, options, caller)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn burst_hal::Burst>, Failure> {
        Ok(Box::new(self.configure_burst(&BurstOptions::default())?))
    }

    /// None: its bursts keep memories over the death of a service, which no executor of one connection does.
    fn open_executor(self: Arc<Self>) -> Result<Option<Box<dyn BurstExecutor>>, Failure> {
        Ok(None)
    }

    /// None that can be borrowed: the model that has them is replaced with every connection.
    fn request_rules(&self) -> Option<&RequestRules> {
        None
    }

    /// Likewise.
    fn pace(&self) -> Option<&Pace> {
        None
    }

    /// Likewise.
    fn wrapped(&self) -> Option<&Arc<dyn PreparedModel>> {
        None
    }

    fn prepare_options(&self) -> Option<PrepareOptions> {
        match &self.origin {
            Origin::Model { options, .. } => Some(PrepareOptions { deadline: None, ..*options }),
            Origin::Files(_) => self.current().prepare_options(),
        }
    }
}

/// Facts about the device are those of the connection there is, its version that of the first one
/// (a service may come back as another version); questions to a service that is gone fail, they
/// do not wait for the next one.
///
/// It makes no buffers: their values lie in the service and die with it, and nobody here could make them
/// again.
#[deny(clippy::missing_trait_methods, reason = "all that the device can do has to reach it")]
impl Device for ReconnectingDevice {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn version_string(&self) -> &str {
        &self.shared.version
    }

    fn device_type(&self) -> DeviceType {
        self.current().device_type()
    }

    fn hal_version(&self) -> HalVersion {
        self.current().hal_version()
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        self.current().capabilities()
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        self.current().supported_extensions()
    }

    fn cache_files_needed(&self) -> CacheFiles {
        self.current().cache_files_needed()
    }

    fn status(&self) -> DeviceStatus {
        self.current().status()
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.current().supported_operations(model)
    }

    fn supported_operations_for(
        &self,
        model: &Model,
        caller: &Caller,
    ) -> Result<Vec<bool>, Failure> {
        self.current().supported_operations_for(model, caller)
    }

    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        Ok(self.prepare(model, options)?)
    }

    fn prepare_model_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let patience = Patience::of(caller, answer_by(options.deadline));
        Ok(self.prepare_with(model, options, patience)?)
    }

    fn prepare_model_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let patience = Patience::of(caller, answer_by(options.deadline));
        Ok(self.prepare_caching_with(model, options, cache, patience)?)
    }

    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let patience = Patience::of(caller, answer_by(deadline));
        Ok(self.prepare_from_cache_with(cache, deadline, patience)?)
    }

    fn allocate(&self, _: &BufferRequest, _: &Caller) -> Result<Arc<dyn Buffer>, Failure> {
        Err(Failure::general(
            "a buffer would not outlive its service, as everything else here does",
        ))
    }
}
