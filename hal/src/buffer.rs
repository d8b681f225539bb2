//! Buffers in the driver's own memory (HAL 1.3), which executions read and write without a copy.

use std::any::Any;

use crate::{Failure, Pool};

/// A buffer in the driver's own memory. It is freed when the last reference to it is dropped, and no
/// execution uses it any more.
///
/// It has no value until an execution has written it, or [`copy_from`](Buffer::copy_from); where one of
/// these fails it has none again.
pub trait Buffer: Any + Send + Sync {
    /// The number that stands for it in a request; above 0, and unique among the buffers that the
    /// device has at the same time.
    fn token(&self) -> u32;

    /// Copies its value to a pool of the same size.
    ///
    /// # Errors
    /// GENERAL_FAILURE when it has no value; INVALID_ARGUMENT for another size.
    fn copy_to(&self, destination: &Pool) -> Result<(), Failure>;

    /// Fills it from a pool. `dimensions` are those of the value, and may be empty where the buffer was
    /// made with all of them known.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when size or dimensions do not fit.
    fn copy_from(&self, source: &Pool, dimensions: &[u32]) -> Result<(), Failure>;
}

/// An input or output of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferRole {
    /// Index among the models of the request.
    pub model: u32,
    /// Which input, or which output, of the model.
    pub position: u32,
    /// How often the buffer will be used for it: above 0, at most 1.
    pub frequency: f32,
}
