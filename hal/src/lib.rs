//! The Neural Networks HAL contract, versions 1.0 to 1.3, without any transport.
//!
//! Models and requests as data; status and timing; the traits [`Device`], [`PreparedModel`],
//! [`Burst`] and [`Buffer`]; sessions, which run a model on any device; validation that holds for
//! every operation; version rules; a graph dump. Nothing here knows about processes or
//! kernels: a driver implements the traits, and a transport carries calls of them to another process.
//!
//! A model, a device and an execution:
//!
//! ```
//! use std::sync::Arc;
//!
//! use burst_hal::validate::{UnspecifiedOutputs, validate_request};
//! use burst_hal::*;
//!
//! // A device that runs RELU on floats, in the memory of the request.
//! struct Relu;
//!
//! impl Device for Relu {
//!     fn name(&self) -> &str { "relu" }
//!     fn version_string(&self) -> &str { "1" }
//!     fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
//!         Ok(model.main.operations.iter().map(|one| one.ty == OperationType::Relu).collect())
//!     }
//!     fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
//!         Ok(Arc::new(Relu))
//!     }
//! }
//!
//! impl PreparedModel for Relu {
//!     fn execute_synchronously(&self, request: &Request, _: &ExecutionOptions) -> ExecutionResult {
//!         let (from, to) = (request.inputs[0].location, request.outputs[0].location);
//!         let RequestPool::Memory(pool) = &request.pools[0] else {
//!             return ExecutionResult::of(ErrorStatus::InvalidArgument);
//!         };
//!         let mut bytes = vec![0; from.length as usize];
//!         let done = pool.read(from.offset.into(), &mut bytes).and_then(|()| {
//!             for value in bytes.as_chunks_mut::<4>().0 {
//!                 *value = f32::from_le_bytes(*value).max(0.0).to_le_bytes();
//!             }
//!             pool.write(to.offset.into(), &bytes)
//!         });
//!         ExecutionResult::of(done.map_or(ErrorStatus::GeneralFailure, |()| ErrorStatus::None))
//!     }
//! }
//!
//! // A model: shapes in elements. `build` checks whatever holds for any operation.
//! let mut builder = ModelBuilder::new();
//! let x = builder.input(OperandType::TensorFloat32, &[2]);
//! let y = builder.result_of(OperationType::Relu, &[x], OutputSpec::f32(&[2]));
//! builder.output(y);
//! let model = builder.build()?;
//!
//! // A request: both arguments lie in one pool, offsets and lengths in bytes.
//! let values = [-1.0_f32, 3.0, 9.0, 9.0].map(f32::to_le_bytes).concat();
//! let pool: Pool = Arc::new(HeapMemory::new(values));
//! let argument = |offset| RequestArgument {
//!     location: DataLocation { pool_index: 0, offset, length: 8 },
//!     ..RequestArgument::default()
//! };
//! let request = Request {
//!     inputs: vec![argument(0)],
//!     outputs: vec![argument(8)],
//!     pools: vec![RequestPool::Memory(Pool::clone(&pool))],
//! };
//! validate_request(&request, &model, UnspecifiedOutputs::Allowed)?;
//!
//! let prepared = Relu.prepare_model(&model, &PrepareOptions::default())?;
//! let result = prepared.execute_synchronously(&request, &ExecutionOptions::default());
//! assert_eq!(result.status, ErrorStatus::None);
//! let mut output = [0; 8];
//! pool.read(8, &mut output)?;
//! assert_eq!(output.as_slice(), [0.0_f32, 3.0].map(f32::to_le_bytes).concat());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod buffer;
mod buffer_tracker;
mod builder;
mod caller;
mod cancel;
mod capabilities;
mod compilation_cache;
mod compliance;
mod device;
mod downcast;
mod dump;
mod extension_code;
mod fence;
pub mod forms;
mod graph_values;
pub mod log_tags;
mod model;
mod operand_type;
mod operation_type;
mod pace;
pub mod performance;
mod pool_memory;
mod request;
mod result_code;
mod route;
pub mod session;
mod status;
#[cfg(test)]
mod test_log;
mod time;
pub mod trace;
pub mod validate;
mod version;
pub mod versions;

pub use buffer::{Buffer, BufferRole};
pub use buffer_tracker::{
    BufferHandle, BufferRoles, BufferState, BufferTracker, RequestBuffers, TrackedBuffer,
};
pub use builder::{ModelBuilder, OutputSpec};
pub use caller::{Caller, MemoryAccount, MemoryCharge, Turn};
pub use cancel::{CancelHook, CancelWord};
pub use capabilities::{
    CacheFiles, Capabilities, CapabilitiesV1_0, CapabilitiesV1_1, CapabilitiesV1_2, Extension,
    ExtensionOperandType,
};
pub use compilation_cache::{CACHE_FILES_MAX, CACHE_TOKEN_BYTES, CompilationCache};
pub use compliance::{Compliance, compliant_with, request_complies};
pub use device::{
    BufferRequest, Burst, BurstExecutor, Device, PlainBurst, PrepareOptions, PrepareResult,
    PreparedModel,
};
pub use dump::{MAX_LOGGED_LINES, dump_graph, log_graph, write_graph};
pub use extension_code::ExtensionCode;
pub use fence::{
    ExecutionCallback, ExecutionInfo, Fence, FenceState, FencedExecution, FencedInfo, FencedOptions,
};
pub use graph_values::{Element, GraphValues, MAX_MADE_BYTES, TensorView};
pub use model::{
    DataLocation, Dimensions, ExtraParams, Model, Operand, OperandLifeTime, OperandValues,
    Operation, Subgraph,
};
pub use operand_type::{OperandKind, OperandType};
pub use operation_type::OperationType;
pub use pace::{Pace, REFUSALS_IN_A_ROW};
pub use performance::PerformanceInfo;
pub use pool_memory::{HeapMemory, Memory, MemoryError, MemoryKind, Pool};
pub use request::{
    ExecutionOptions, ExecutionResult, OutputShape, Request, RequestArgument, RequestPool,
};
pub use result_code::ResultCode;
pub use route::Route;
pub use status::{
    DeviceStatus, DeviceType, ErrorStatus, ExecutionPreference, Failure, FusedActivation, Priority,
};
pub use time::{LOOP_TIMEOUT_DEFAULT, LOOP_TIMEOUT_MAXIMUM, TimePoint, Timing};
pub use version::HalVersion;
