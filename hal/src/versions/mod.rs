//! Older versions of the HAL: what they can say of a model, a request and an answer, and drivers that
//! speak nothing else.
//!
//! [`AdaptedDevice`] makes a driver of HAL 1.0, 1.1 or 1.2 a current [`Device`](crate::Device), so that
//! everything that takes one takes such a driver too. [`LimitedDevice`] is the opposite.
//!
//! | asked for | what an older driver gets | |
//! |---|---|---|
//! | which operations it runs | the part of the model that its version can say, as a model ([`slice()`]); the others it does not run | below 1.3 |
//! | a model | the model without what makes no difference ([`Loss`]); GENERAL_FAILURE where it cannot be said | below 1.3 |
//! | a deadline | looked at before each call: MISSED_DEADLINE_PERSISTENT where it has passed | below 1.3 |
//! | an execution behind fences, a buffer | GENERAL_FAILURE; requests with tokens INVALID_ARGUMENT | below 1.3 |
//! | files for the compilation | no files needed; a model from files GENERAL_FAILURE | below 1.2 |
//! | a synchronous execution | an asynchronous one that is waited for | below 1.2 |
//! | a burst | a series of such executions | below 1.2 |
//! | an output of unknown size | INVALID_ARGUMENT; where one has too little room OUTPUT_INSUFFICIENT_SIZE, without asking | below 1.2 |
//! | shapes, times | none: it completes with a status only | below 1.2 |
//!
//! A driver of HAL 1.1, in full:
//!
//! ```
//! use std::sync::Arc;
//!
//! use burst_hal::versions::*;
//! use burst_hal::*;
//!
//! struct Relu;
//!
//! impl DeviceV1_1 for Relu {
//!     fn name(&self) -> &str { "relu" }
//!     fn capabilities(&self) -> Result<CapabilitiesV1_1, Failure> {
//!         let info = PerformanceInfo { exec_time: 0.5, power_usage: 0.5 };
//!         Ok(CapabilitiesV1_1 { float32: info, quantized8: info, relaxed_float32_to_float16: info })
//!     }
//!     fn supported_operations(&self, model: &ModelV1_1) -> Result<Vec<bool>, Failure> {
//!         let operations = &model.base.main.operations;
//!         Ok(operations.iter().map(|one| one.ty == OperationType::Relu).collect())
//!     }
//!     fn prepare_model(
//!         &self,
//!         _: &ModelV1_1,
//!         _: ExecutionPreference,
//!     ) -> Result<Arc<dyn PreparedModelV1_0>, Failure> {
//!         Ok(Arc::new(Relu))
//!     }
//! }
//!
//! impl PreparedModelV1_0 for Relu {
//!     fn execute(
//!         self: Arc<Self>,
//!         request: RequestV1_0,
//!         callback: StatusCallback,
//!     ) -> Result<(), Failure> {
//!         let (from, to) = (request.inputs[0].location, request.outputs[0].location);
//!         let mut bytes = vec![0; from.length as usize];
//!         let done = request.pools[0].read(from.offset.into(), &mut bytes).and_then(|()| {
//!             for value in bytes.as_chunks_mut::<4>().0 {
//!                 *value = f32::from_le_bytes(*value).max(0.0).to_le_bytes();
//!             }
//!             request.pools[0].write(to.offset.into(), &bytes)
//!         });
//!         callback(done.map_or(ErrorStatus::GeneralFailure, |()| ErrorStatus::None));
//!         Ok(())
//!     }
//! }
//!
//! let device = AdaptedDevice::new(OldDevice::V1_1(Arc::new(Relu)));
//! let mut builder = ModelBuilder::new();
//! let x = builder.input(OperandType::TensorFloat32, &[2]);
//! let y = builder.result_of(OperationType::Relu, &[x], OutputSpec::f32(&[2]));
//! // HARD_SWISH is of HAL 1.3: the driver never hears of it.
//! let z = builder.result_of(OperationType::HardSwish, &[y], OutputSpec::f32(&[2]));
//! builder.output(z);
//! assert_eq!(device.supported_operations(&builder.build()?)?, [true, false]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adapted;
mod adapted_model;
mod convert;
mod interfaces;
mod limited;
mod listener;
mod loss;
mod once;
mod slice;
#[cfg(test)]
mod tests;
mod types;

pub use adapted::{AdaptedDevice, OldDevice};
pub use convert::{
    capabilities_to_v1_0, capabilities_to_v1_1, capabilities_to_v1_2, execution_options_to,
    prepare_options_to, request_to, status_to,
};
pub use interfaces::{
    BurstV1_2, DeviceV1_0, DeviceV1_1, DeviceV1_2, PreparedModelV1_0, PreparedModelV1_2,
    StatusCallback,
};
pub use limited::LimitedDevice;
pub use loss::{Converted, Loss};
pub use slice::{Slice, model_to, slice};
pub use types::{ModelV1_0, ModelV1_1, ModelV1_2, RequestV1_0};
