//! Android's conformance vectors, run against any [`burst_hal::Device`].
//!
//! Reads a directory of generated test vectors (a model, inputs and expected outputs each), builds
//! the model and the request as the original test suites do, executes in every suite and output
//! variant that applies, and judges statuses, shapes, timing and values by the same rules. Models
//! and requests broken in every way the original suites know must be refused.
//!
//! [`models`] does the same for whole models against the outputs of reference kernels. [`functional`] has
//! what the original suites ask of a driver besides values.
//!
//! The device may be in this process or behind a socket: this crate treats both alike.
#![forbid(unsafe_code)]

mod arguments;
mod case;
mod checks;
mod deadlines;
mod domains;
mod error;
mod execute;
pub mod functional;
mod golden_error;
mod judge;
mod model;
pub mod models;
mod outcome;
mod report;
mod run;
mod subject;
mod suite;
mod validation;
mod vectors;
mod ways;

pub use error::{RunError, VectorError};
pub use judge::{Tolerance, tolerance};
pub use model::{Built, OutputShapes, build, to_signed};
pub use outcome::{Done, LeftOut, Miss, Outcome};
pub use report::{Cell, Finding, Report, SuiteCounts, Tally};
pub use run::{DeviceLease, Plan, run};
pub use subject::Target;
pub use suite::Suite;
pub use validation::wrong_models;
pub use vectors::{Graph, Op, Operand, Spec, Test, Vectors, open, specs};
