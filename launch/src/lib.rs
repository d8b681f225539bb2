//! Asynchronous and fenced executions on any device, and what a service needs for its own.
//!
//! | file | what a reader finds there |
//! |---|---|
//! | `device.rs` | [`Launcher::wrap`]: a device whose prepared models execute in all four ways |
//! | `launcher.rs` | [`Launcher`]: checks a launch, waits for its fences, hands it to a thread |
//! | `workers.rs` | the threads that execute, and what waits for them |
//! | `execution.rs` | [`Execution`]: a started execution as an object and as a `Future` |
//! | `completion.rs` | [`Completion`]: the fence and the times of a fenced execution |
//! | `watcher.rs` | [`FenceWatcher`]: one thread that waits for the fences of everybody |
//! | `fence.rs` | what a descriptor is as a fence, and how far it is |
//!
//! A driver that executes synchronously, in a program that wants to go on meanwhile:
//!
//! ```
//! use std::sync::Arc;
//!
//! use burst_hal::*;
//! use burst_launch::{Execution, Launcher};
//!
//! # struct Nothing;
//! # impl Device for Nothing {
//! #     fn name(&self) -> &str { "nothing" }
//! #     fn version_string(&self) -> &str { "1" }
//! #     fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
//! #         Ok(vec![true; model.main.operations.len()])
//! #     }
//! #     fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
//! #         Ok(Arc::new(Nothing))
//! #     }
//! # }
//! # impl PreparedModel for Nothing {
//! #     fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
//! #         ExecutionResult::of(ErrorStatus::None)
//! #     }
//! # }
//! # let mut builder = ModelBuilder::new();
//! # let x = builder.input(OperandType::TensorFloat32, &[2]);
//! # let y = builder.result_of(OperationType::Relu, &[x], OutputSpec::f32(&[2]));
//! # builder.output(y);
//! # let model = builder.build()?;
//! # let argument = |offset| RequestArgument {
//! #     location: DataLocation { pool_index: 0, offset, length: 8 },
//! #     ..RequestArgument::default()
//! # };
//! # let pool: Pool = Arc::new(HeapMemory::new(vec![0; 16]));
//! # let request = Request {
//! #     inputs: vec![argument(0)],
//! #     outputs: vec![argument(8)],
//! #     pools: vec![RequestPool::Memory(pool)],
//! # };
//! let launcher = Launcher::default();
//! let device = launcher.wrap(Arc::new(Nothing));
//! let prepared = device.prepare_model(&model, &PrepareOptions::default())?;
//! let execution = Execution::start(prepared, request, ExecutionOptions::default())?;
//! // ... something else, and then one of `wait`, `wait_until`, `when_done`, or `.await`:
//! assert_eq!(execution.wait().status, ErrorStatus::None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod completion;
mod device;
mod error;
mod execution;
mod fence;
mod launcher;
mod locks;
mod watcher;
mod workers;

pub use completion::{Completion, sooner};
pub use error::LaunchError;
pub use execution::Execution;
pub use fence::{CheckedFence, FenceKind, FenceSignal, FenceState};
pub use launcher::{Launcher, LauncherOptions};
pub use watcher::{FenceWatcher, WaitEnd, Waiting};
