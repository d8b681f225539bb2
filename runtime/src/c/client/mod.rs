//! The other side of the edge: a program that knows the library by its file and its functions alone.
//!
//! [`NdkDevice`] is a device of such a library as a [`burst_hal::Device`]. Whatever drives devices can thereby
//! drive the C API: `burst verify --mode ndk` does, with the conformance vectors.

mod buffers;
mod device;
mod execution;
mod inference;
mod library;
mod model;
mod objects;

pub use device::NdkDevice;
pub use inference::{Call, Inference, Place};
pub use library::{Library, LoadError};
