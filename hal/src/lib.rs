//! The Neural Networks HAL contract, versions 1.0 to 1.3, without any transport.
//!
//! Models and requests as data; status and timing; the traits [`Device`], [`PreparedModel`],
//! [`Burst`] and [`Buffer`]; sessions, which run a model on any device; validation that holds for
//! every operation; version rules; a graph dump. Nothing here knows of processes, and nothing of
//! kernels: a driver implements the traits, a transport carries them.
#![forbid(unsafe_code)]

mod builder;
mod cancel;
mod capabilities;
mod compliance;
mod device;
mod dump;
mod memory;
mod model;
mod operand_type;
mod operation_type;
mod request;
mod result_code;
mod route;
pub mod session;
mod status;
mod time;
pub mod validate;
mod version;

pub use builder::{ModelBuilder, OutputSpec};
pub use cancel::CancelWord;
pub use capabilities::{
    CacheFiles, Capabilities, CapabilitiesV1_0, CapabilitiesV1_1, CapabilitiesV1_2, Extension,
    ExtensionOperandType, PerformanceInfo,
};
pub use compliance::{Compliance, compliant_with, request_complies};
pub use device::{
    Buffer, Burst, BurstExecutor, Device, PlainBurst, PrepareOptions, PrepareResult, PreparedModel,
};
pub use dump::dump_graph;
pub use memory::{HeapMemory, Memory, MemoryError, Pool};
pub use model::{
    DataLocation, Dimensions, ExtraParams, Model, Operand, OperandLifeTime, OperandValues,
    Operation, Subgraph,
};
pub use operand_type::{OperandKind, OperandType};
pub use operation_type::OperationType;
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
