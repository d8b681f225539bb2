//! Whole models, run in rounds over every path that can run them: a driver in this process, the same
//! driver over a burst or a socket, another library.
//!
//! Each is a [`ModelSubject`] of the [`engine`](crate::engine). In a trial the model is prepared anew,
//! run for the first time, warmed up, run as often as fits into a share of a second, and everything is
//! given back ([`Executions`]). Ratios are between trials of one round ([`ratio`]).
//!
//! | file | what |
//! |---|---|
//! | `command.rs` | options that every command has which measures models |
//! | `workload.rs` | a model file, or the part of it that can be run, with inputs |
//! | `subject.rs` | subjects and trials; the loop that takes the times |
//! | `local.rs`, `remote.rs` | a driver in this process, and in another one |
//! | `measure.rs` | how long trials are; what is kept of them |
//! | `agreement.rs` | whether two subjects computed the same |
//! | `report.rs`, `findings.rs` | what was found: the fields of the JSON; text and page |
//! | `profile.rs`, `profile_text.rs` | the same of a model's operations |

mod agreement;
mod command;
mod findings;
mod local;
mod measure;
mod profile;
mod profile_text;
mod remote;
mod report;
mod subject;
mod workload;

pub use agreement::{Agreement, agreement};
pub use command::Args;
pub use findings::{figures_of, page_of};
pub use local::{InProcess, LocalMemory};
pub use measure::{Options, Series, TRIAL, measure, measure_while, ratio, ratio_by_round};
pub use profile::{
    OperationFigures, OperationRow, OperationTime, Profile, Roofs, operation_figures,
    operation_rows,
};
pub use remote::{Connection, Remote, RemoteKind};
pub use report::{Copies, ModelReport, ModelsReport, PathReport, Report, ThreadGain, paths};
pub use subject::{Clock, Executable, Executions, Label, ModelSubject, Pinned, take_trial};
pub use workload::{MAX_MODEL_BYTES, Workload};
