//! Whole models, run in turns by everybody who can run them: a driver in this process, the same
//! driver over a burst or a socket, another library.
//!
//! Each contender is a [`Lane`]. A [`Turn`] is a life of its own: the model is prepared anew, run
//! for the first time, warmed up, run as often as fits into a share of a second, and everything is
//! given back; so nobody who waits for a turn polls or holds caches in the meantime. In every round
//! each lane has one turn, and ratios are taken between turns of one round ([`measure`]).
//!
//! | file | what |
//! |---|---|
//! | `command.rs` | what every command that measures models can be told |
//! | `subject.rs` | a model file, or the part of it that can be run, with inputs |
//! | `lane.rs` | lanes and turns; the loop that takes the times |
//! | `local.rs`, `remote.rs` | the lanes of a driver in this process, and in another one |
//! | `rounds.rs` | who runs when, and how often |
//! | `agreement.rs` | whether two lanes computed the same |
//! | `report.rs`, `text.rs`, `page.rs` | what was found: JSON, tables, a page with drawings |

mod agreement;
mod command;
mod local;
mod measure;
mod page;
mod remote;
pub(crate) mod report;
mod subject;
mod text;
mod workload;

pub use crate::engine::times::Times;
pub use agreement::{Agreement, agreement};
pub use command::Args;
pub use local::{InProcess, Memories};
pub use measure::{Options, TURN, Track, measure, ratio};
pub use page::{page, page_with};
pub use remote::{Connection, Remote, RemoteKind};
pub use report::{
    Copies, ModelReport, OperationRow, OperationTime, PathReport, Quantiles, Report, ThreadGain,
    operation_rows, paths,
};
pub use subject::{Label, Lane, Length, Pinned, Runs, Turn, take_turn};
pub use text::write_text;
pub use workload::{MAX_MODEL_BYTES, Subject};
