//! The NNAPI framework over any [`burst_hal::Device`], and `libneuralnetworks.so`.
//!
//! | module | what a reader finds there |
//! |---|---|
//! | `devices`, `registry`, `discovery` | [`RuntimeDevice`], [`Registry`]: which devices there are, and what they answered once |
//! | `service`, `remote`, `patience` | services: connections, what is reached through them, and how long they may keep anybody waiting |
//! | `model` | [`Model`]: operands and operations one by one, and a legal model of the HAL at the end |
//! | `memory`, `memory_desc` | [`Memory`], [`MemoryDesc`]: bytes of the application, and buffers of a device |
//! | [`partition`] | [`partition::Plan`]: which device runs which operations, in which order |
//! | `compilation` | [`Compilation`]: who runs what, prepared |
//! | `execution`, `burst` | [`Execution`], [`Burst`]: arguments, paths, fallback, results |
//! | `event` | [`Event`]: what an execution that nobody waits for leaves |
//! | `c` | the functions of the C library over all that, and a client of such a library |
//!
//! Nothing happens when the library is loaded: the first call that needs devices looks for them. Every
//! object is used behind an `Arc`, and says by its state what may be called.
#![deny(unsafe_code)]

mod burst;
pub mod c;
mod cache_key;
mod compilation;
mod compiled;
mod devices;
mod discovery;
mod error;
mod event;
mod execution;
mod frame;
mod launching;
mod memory;
mod memory_desc;
mod model;
mod own_file;
pub mod partition;
mod patience;
mod prepared;
mod process;
mod registry;
mod remote;
mod service;
mod supported;
mod switches;
#[cfg(test)]
mod tests;

pub use burst::Burst;
pub use compilation::{Compilation, priority_code};
pub use devices::RuntimeDevice;
pub use error::{Error, Result};
pub use event::Event;
pub use execution::{Argument, Execution};
pub use memory::Memory;
pub use memory_desc::MemoryDesc;
pub use model::{Model, OperandTypeDesc};
pub use process::check_process;
pub use registry::Registry;

/// The feature level of the framework as a whole: NNAPI feature level 5.
pub const RUNTIME_FEATURE_LEVEL: i64 = 31;
