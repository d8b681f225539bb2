//! The CPU device: plans models and runs them.
//!
//! A model is prepared once into a plan: every operation looked up in the table of
//! [`ops`], shapes inferred, constants folded or packed into fast kernels, and every value given
//! its place in one arena. An execution borrows a context (the arena and scratch memory), copies
//! its inputs in, walks the steps and copies its outputs out.
//!
//! With several threads (`threads.rs`) an operation's output is cut into tiles that the thread of the
//! execution and the device's helpers share.
//!
//! Where to read: [`device`](CpuDevice) → `planner.rs` → `plan.rs` → `context.rs` → `memory.rs` →
//! `ops/<family>/<op>.rs` → `kernels/`; `control_flow.rs` runs graphs from within graphs.
#![deny(unsafe_code)]

mod aligned;
mod arena;
mod compute;
mod context;
mod control_flow;
mod device;
mod error;
mod kernels;
mod memory;
pub mod op;
pub mod ops;
mod plan;
mod planner;
mod prepared;
mod profile;
mod scratch;
mod stop;
mod tensor;
mod threads;

pub use device::{CpuDevice, DeviceOptions};
pub use error::{DriverError, OpError, SignatureError};
pub use kernels::Isa;
pub use prepared::CpuPreparedModel;
pub use profile::OperationProfile;
pub use threads::MAX_THREADS;
