//! Android's conformance vectors, run against any [`burst_hal::Device`].
//!
//! Reads a directory of generated test vectors (a model, inputs and expected outputs each), builds
//! the model and the request as the original test suites do, executes in every suite and output
//! variant that applies, and judges statuses, shapes, timing and values by the same rules. Models
//! and requests broken in every way the original suites know must be refused.
//!
//! [`models`] does the same for whole models against the outputs of reference kernels. [`functional`] has
//! what the original suites ask of a driver besides values. [`fuzzing`] makes models and requests of any bytes,
//! [`random`] models that nobody wrote, from seeds, and [`judging`] has one device judge another over those.
//!
//! The device may be in this process or behind a socket: this crate treats both alike.
//!
//! For the author of a device, all of it in a few lines:
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use burst_hal::session::{HeapAllocator, PoolAllocator};
//! use burst_hal::{Device, Route};
//! use burst_verify::{Plan, Target, functional, fuzzing, run, specs};
//!
//! fn verify(device: &dyn Device, vectors: &Path) -> Result<(), Box<dyn std::error::Error>> {
//!     // The conformance vectors, in the ways that this device executes.
//!     let memory: Arc<dyn PoolAllocator> = Arc::new(HeapAllocator);
//!     let target = Target { device, memory: &memory };
//!     let plan = Plan::everything(&[Route::Synchronous, Route::Burst]);
//!     let report = run(&specs(vectors)?, &plan, 2, || Ok(target), |_, _| {})?;
//!     assert!(report.is_sound(), "{report:?}");
//!     // What the original suites ask besides values, row by row.
//!     for check in functional::memory_domains::CHECKS {
//!         (check.run)(device)?;
//!     }
//!     // Models that nobody wrote by hand.
//!     fuzzing::judge_device(device, b"any bytes at all")?;
//!     Ok(())
//! }
//! ```
#![forbid(unsafe_code)]

mod arguments;
mod case;
mod checks;
mod deadlines;
mod domains;
mod error;
mod execute;
pub mod functional;
pub mod fuzzing;
mod golden_error;
mod interface;
mod judge;
pub mod judging;
mod model;
pub mod models;
mod outcome;
pub mod random;
mod recorded;
mod report;
mod run;
mod subject;
mod suite;
mod validation;
mod vectors;
mod ways;

pub use error::{RunError, VectorError};
pub use interface::Interface;
pub use judge::{Tolerance, tolerance};
pub use model::{Built, OutputShapes, build, to_signed};
pub use outcome::{Done, LeftOut, Miss, Outcome};
pub use recorded::{Recorded, RecordedOutput, RecordedRun};
pub use report::{Cell, Finding, Report, SuiteCounts, Tally};
pub use run::{DeviceLease, Plan, run, run_while};
pub use subject::Target;
pub use suite::Suite;
pub use validation::wrong_models;
pub use vectors::{Graph, Op, Operand, Spec, Test, Vectors, open, specs};
