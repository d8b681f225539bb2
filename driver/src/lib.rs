//! The CPU device: plans models and runs them.
//!
//! A model is prepared once into a plan: every operation looked up in the device's [`Registry`], shapes inferred, constants folded or packed into fast kernels, and every value given
//! its byte range in one arena. An execution borrows a context (the arena and scratch memory), copies
//! its inputs in, walks the steps and copies its outputs out; what lies in buffers of the device stays
//! there (`arguments.rs`).
//!
//! With several threads (`threads.rs`) an operation's output is cut into tiles that the thread of the
//! execution and the device's helpers share.
//!
//! Several devices can share one [`Engine`]: its threads, its registry, its figures. A [`Variant`] says what
//! one of them runs. Operations and operand types of extensions come from other crates ([`op`]).
//! The [`ReferenceDevice`] does without plan, arena and fast kernels, and judges the others.
//! With a [`CacheKey`] a device keeps compilations in files of its callers ([`cache`]).
//!
//! Where to read: [`device`](CpuDevice) → `planner.rs` → `plan.rs` → `arguments.rs` → `context.rs` → `graph_memory.rs` →
//! `ops/<family>/<op>.rs` → `kernels/`; `control_flow.rs` runs graphs from within graphs.
//!
//! Preparing a model and executing it:
//!
//! ```
//! use std::sync::Arc;
//!
//! use burst_driver::CpuDevice;
//! use burst_hal::*;
//!
//! // The sum of two tensors of two floats, then no activation.
//! let mut builder = ModelBuilder::new();
//! let a = builder.input(OperandType::TensorFloat32, &[2]);
//! let b = builder.input(OperandType::TensorFloat32, &[2]);
//! let none = builder.scalar_i32(FusedActivation::None.code());
//! let sum = builder.result_of(OperationType::Add, &[a, b, none], OutputSpec::f32(&[2]));
//! builder.output(sum);
//!
//! let device = CpuDevice::default();
//! let prepared = device.prepare_model(&builder.build()?, &PrepareOptions::default())?;
//!
//! // Both inputs and the output in one pool; offsets and lengths in bytes.
//! let values = [1.0_f32, 2.0, 10.0, 20.0, 0.0, 0.0].map(f32::to_le_bytes).concat();
//! let pool: Pool = Arc::new(HeapMemory::new(values));
//! let argument = |offset| RequestArgument {
//!     location: DataLocation { pool_index: 0, offset, length: 8 },
//!     ..RequestArgument::default()
//! };
//! let request = Request {
//!     inputs: vec![argument(0), argument(8)],
//!     outputs: vec![argument(16)],
//!     pools: vec![RequestPool::Memory(Pool::clone(&pool))],
//! };
//! let result = prepared.execute_synchronously(&request, &ExecutionOptions::default());
//! assert_eq!(result.status, ErrorStatus::None);
//! let mut output = [0; 8];
//! pool.read(16, &mut output)?;
//! assert_eq!(output.as_slice(), [11.0_f32, 22.0].map(f32::to_le_bytes).concat());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod aligned;
mod arena;
mod arguments;
mod budget;
mod buffers;
pub mod cache;
mod cache_error;
mod compute;
mod context;
mod control_flow;
mod device;
mod device_memory;
mod engine;
mod entry;
mod error;
mod extension_type;
mod figures;
mod graph_memory;
mod guarded;
mod kept;
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, unused_imports, reason = "parts that only bodies for x86 have a use for")
)]
mod kernels;
mod log;
mod offer;
pub mod op;
pub mod ops;
mod pages;
mod peak;
mod plan;
mod planner;
mod prepared;
mod profile;
mod reference;
mod registry;
mod rehearsal;
mod scratch;
mod stop;
mod tensor;
mod threads;
mod variant;
mod weight_room;

pub use arguments::argument_copies;
pub use cache::CacheKey;
pub use device::CpuDevice;
pub use engine::{DeviceOptions, Engine};
pub use error::{DriverError, ExtensionFault, OpError, Refusal, SignatureError};
pub use figures::Figures;
pub use kernels::Isa;
pub use peak::Peak;
pub use prepared::CpuPreparedModel;
pub use profile::OperationProfile;
pub use reference::ReferenceDevice;
pub use registry::{ExtensionDef, ExtensionOp, Registry, RegistryError};
pub use threads::MAX_THREADS;
pub use variant::Variant;
