//! What a driver of HAL 1.0, 1.1 or 1.2 implements: the methods and types of its version, and no more.
//!
//! Where the HAL had a driver call back with a prepared model, these return it.

use std::sync::Arc;

use super::types::{ModelV1_0, ModelV1_1, ModelV1_2, RequestV1_0};
use crate::validate::RequestRules;
use crate::{
    CacheFiles, CapabilitiesV1_0, CapabilitiesV1_1, CapabilitiesV1_2, CompilationCache,
    DeviceStatus, DeviceType, ErrorStatus, ExecutionCallback, ExecutionPreference, ExecutionResult,
    Extension, Failure,
};

/// What is called with the end of an execution before HAL 1.2: a status, and nothing else.
pub type StatusCallback = Box<dyn FnOnce(ErrorStatus) + Send>;

/// A driver of HAL 1.0.
pub trait DeviceV1_0: Send + Sync {
    /// The name that clients choose it by.
    fn name(&self) -> &str;

    /// How fast and economical it is.
    ///
    /// # Errors
    /// DEVICE_UNAVAILABLE, GENERAL_FAILURE.
    fn capabilities(&self) -> Result<CapabilitiesV1_0, Failure>;

    /// For each operation whether it runs here.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a model that is not legal.
    fn supported_operations(&self, model: &ModelV1_0) -> Result<Vec<bool>, Failure>;

    /// Makes a model ready to execute.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a model that is not legal, GENERAL_FAILURE for one that does not run here.
    fn prepare_model(&self, model: &ModelV1_0) -> Result<Arc<dyn PreparedModelV1_0>, Failure>;

    /// Whether it takes work.
    fn status(&self) -> DeviceStatus {
        DeviceStatus::Available
    }
}

/// A driver of HAL 1.1.
pub trait DeviceV1_1: Send + Sync {
    /// The name that clients choose it by.
    fn name(&self) -> &str;

    /// How fast and economical it is.
    ///
    /// # Errors
    /// As [`DeviceV1_0::capabilities`].
    fn capabilities(&self) -> Result<CapabilitiesV1_1, Failure>;

    /// For each operation whether it runs here.
    ///
    /// # Errors
    /// As [`DeviceV1_0::supported_operations`].
    fn supported_operations(&self, model: &ModelV1_1) -> Result<Vec<bool>, Failure>;

    /// Makes a model ready to execute.
    ///
    /// # Errors
    /// As [`DeviceV1_0::prepare_model`].
    fn prepare_model(
        &self,
        model: &ModelV1_1,
        preference: ExecutionPreference,
    ) -> Result<Arc<dyn PreparedModelV1_0>, Failure>;

    /// Whether it takes work.
    fn status(&self) -> DeviceStatus {
        DeviceStatus::Available
    }
}

/// A model that a driver of HAL 1.0 or 1.1 has made ready.
pub trait PreparedModelV1_0: Send + Sync {
    /// Starts an execution; `callback` gets its status, exactly once. All dimensions of inputs and outputs
    /// are known, from the model or from the request.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a request that is not legal: `callback` gets the same status.
    fn execute(
        self: Arc<Self>,
        request: RequestV1_0,
        callback: StatusCallback,
    ) -> Result<(), Failure>;
}

/// A driver of HAL 1.2.
pub trait DeviceV1_2: Send + Sync {
    /// The name that clients choose it by.
    fn name(&self) -> &str;

    /// A text that changes whenever the behaviour does.
    fn version_string(&self) -> &str;

    /// What kind of hardware it is.
    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    /// How fast and economical it is, by operand type.
    ///
    /// # Errors
    /// As [`DeviceV1_0::capabilities`].
    fn capabilities(&self) -> Result<CapabilitiesV1_2, Failure>;

    /// Extensions it knows.
    fn supported_extensions(&self) -> Vec<Extension> {
        Vec::new()
    }

    /// Files it keeps a compilation in.
    fn cache_files_needed(&self) -> CacheFiles {
        CacheFiles::default()
    }

    /// For each operation whether it runs here.
    ///
    /// # Errors
    /// As [`DeviceV1_0::supported_operations`].
    fn supported_operations(&self, model: &ModelV1_2) -> Result<Vec<bool>, Failure>;

    /// Makes a model ready to execute, and keeps the compilation in `cache` where it is given.
    ///
    /// # Errors
    /// As [`DeviceV1_0::prepare_model`].
    fn prepare_model(
        &self,
        model: &ModelV1_2,
        preference: ExecutionPreference,
        cache: Option<&CompilationCache>,
    ) -> Result<Arc<dyn PreparedModelV1_2>, Failure>;

    /// Makes the model ready that was kept in these files.
    ///
    /// # Errors
    /// GENERAL_FAILURE for anything that is wrong with the files, or where none are kept.
    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
    ) -> Result<Arc<dyn PreparedModelV1_2>, Failure> {
        let _ = cache;
        Err(Failure::general("this device keeps no compilations"))
    }

    /// Whether it takes work.
    fn status(&self) -> DeviceStatus {
        DeviceStatus::Available
    }
}

/// A model that a driver of HAL 1.2 has made ready.
pub trait PreparedModelV1_2: Send + Sync {
    /// Starts an execution; `callback` gets its result, exactly once.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a request that is not legal: `callback` gets the same status.
    fn execute(
        self: Arc<Self>,
        request: RequestV1_0,
        measure_timing: bool,
        callback: ExecutionCallback,
    ) -> Result<(), Failure>;

    /// Runs once and waits for the result.
    fn execute_synchronously(&self, request: &RequestV1_0, measure_timing: bool)
    -> ExecutionResult;

    /// Starts a series of executions.
    ///
    /// # Errors
    /// GENERAL_FAILURE where the resources cannot be had.
    fn open_burst(self: Arc<Self>) -> Result<Box<dyn BurstV1_2>, Failure>;

    /// What it asks of a request. HAL 1.2 has no such question: a driver that keeps compilations answers it
    /// for a model from files, of which nobody else knows that.
    fn request_rules(&self) -> Option<&RequestRules> {
        None
    }
}

/// A series of executions, one at a time.
pub trait BurstV1_2: Send {
    /// Runs once and writes the result into `result`. Every failure is a status in the result.
    fn execute(
        &mut self,
        request: &RequestV1_0,
        measure_timing: bool,
        result: &mut ExecutionResult,
    );
}
