//! What a driver is: a device that prepares models, prepared models that execute, bursts that
//! execute often.
//!
//! A service offers any [`Device`] over a socket; a client sees the same trait on its side.

use std::sync::Arc;

use crate::{
    CacheFiles, Capabilities, DeviceStatus, DeviceType, ErrorStatus, ExecutionOptions,
    ExecutionPreference, ExecutionResult, Extension, Failure, Model, Priority, Request, TimePoint,
};

/// How a model is to be prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrepareOptions {
    /// What it should be good at.
    pub preference: ExecutionPreference,
    /// How urgent its executions are.
    pub priority: Priority,
    /// When the prepared model is no longer wanted.
    pub deadline: Option<TimePoint>,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        PrepareOptions {
            preference: ExecutionPreference::FastSingleAnswer,
            priority: Priority::Medium,
            deadline: None,
        }
    }
}

/// A driver. Answers to questions are constant over the device's life.
pub trait Device: Send + Sync {
    /// The name that clients choose it by.
    fn name(&self) -> &str;

    /// A text that changes whenever the behaviour does.
    fn version_string(&self) -> &str;

    /// What kind of hardware it is.
    fn device_type(&self) -> DeviceType;

    /// How well it does, by operand type.
    ///
    /// # Errors
    /// A device that cannot be reached.
    fn capabilities(&self) -> Result<Capabilities, Failure>;

    /// Extensions it knows.
    fn supported_extensions(&self) -> Vec<Extension> {
        Vec::new()
    }

    /// Files it keeps a compilation in.
    fn cache_files_needed(&self) -> CacheFiles {
        CacheFiles::default()
    }

    /// Whether it takes work.
    fn status(&self) -> DeviceStatus {
        DeviceStatus::Available
    }

    /// For each operation of the main graph, whether this device runs it.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a model that is not legal.
    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure>;

    /// Makes a model ready to execute.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a model that is not legal or has an operation this device lacks;
    /// GENERAL_FAILURE, MISSED_DEADLINE_* or RESOURCE_EXHAUSTED_* otherwise.
    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure>;
}

/// A model that is ready to execute, from any number of threads at once.
pub trait PreparedModel: Send + Sync {
    /// Runs once and waits for the result.
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult;

    /// Starts a series of executions that keep their resources in between.
    ///
    /// # Errors
    /// GENERAL_FAILURE where the resources cannot be had.
    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure>;
}

/// A series of executions on one prepared model, one at a time, with warm resources.
pub trait Burst: Send {
    /// Runs once; the result is written into `result`, whose storage is used again.
    ///
    /// Every failure is a status in the result.
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    );

    /// Lets go of whatever can be made again, after idle time.
    fn release_resources(&mut self) {}
}

/// The burst of a device that brings none of its own: every execution is a synchronous one.
pub struct PlainBurst(Arc<dyn PreparedModel>);

impl PlainBurst {
    /// A burst over a prepared model.
    #[must_use]
    pub fn new(model: Arc<dyn PreparedModel>) -> Self {
        PlainBurst(model)
    }
}

impl Burst for PlainBurst {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        *result = self.0.execute_synchronously(request, options);
    }
}

/// A buffer in the driver's own memory (HAL 1.3).
pub trait Buffer: Send + Sync {
    /// The number that stands for it in a request; above 0.
    fn token(&self) -> u32;

    /// Copies its content to a pool of the same size.
    ///
    /// # Errors
    /// GENERAL_FAILURE when nothing was written to it yet; INVALID_ARGUMENT for another size.
    fn copy_to(&self, destination: &crate::Pool) -> Result<(), Failure>;

    /// Fills it from a pool.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when size or dimensions do not fit.
    fn copy_from(&self, source: &crate::Pool, dimensions: &[u32]) -> Result<(), Failure>;
}

/// What a status means for a call that only succeeds or fails.
impl From<ErrorStatus> for Failure {
    fn from(status: ErrorStatus) -> Self {
        Failure::new(status, status.name())
    }
}
