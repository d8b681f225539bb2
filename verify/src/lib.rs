//! Android's conformance vectors, run against any [`burst_hal::Device`].
//!
//! Reads a directory of generated test vectors (a model, inputs and expected outputs each), builds
//! the model and the request as the original test suites do, executes in every suite and output
//! variant that applies, and judges statuses, shapes, timing and values by the same rules.
//!
//! The device may be in this process or behind a socket: nothing here can tell.
#![forbid(unsafe_code)]

mod error;
mod execute;
mod judge;
mod model;
mod suite;
mod vectors;

pub use error::VectorError;
pub use execute::{Mode, Outcome, run_suite};
pub use judge::{Tolerance, tolerance};
pub use model::{Arguments, Built, OutputShapes, build, to_signed};
pub use suite::Suite;
pub use vectors::{Graph, Op, Operand, Spec, Test, Vectors, open, specs};
