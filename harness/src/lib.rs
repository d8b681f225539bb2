//! Measures what this project is for: round trips between two processes, and whole models over every
//! path to a driver; always as ratios to something else that was measured in the same seconds.
//!
//! | folder | what |
//! |---|---|
//! | [`engine`] | rounds of trials in changing order, which rounds count, medians and ranges |
//! | [`report`] | text, JSON and the page with drawings, of whatever was measured |
//! | [`transport`] | one kind of subject: a way for two processes to exchange requests and answers |
//! | [`model`] | the other kind: a path over which a model runs |
//! | [`litert`] | LiteRT in a Python process, where a Python that has it is named |
//! | [`machine`] | the machine, its CPUs, keeping a thread on one |
//! | [`lines`] | what a cache line takes from one CPU to another |

#![forbid(unsafe_code)]

pub mod bounds;
pub mod engine;
pub mod error;
pub mod lines;
pub mod litert;
pub mod machine;
pub mod model;
mod progress;
pub mod report;
mod run_facts;
pub mod transport;
mod wait;

pub use error::HarnessError;
pub use progress::Progress;
pub use transport::case::{Case, Job, Placement, Role};
pub use transport::link::Link;
pub use transport::peers::{Peer, own_peers};
pub use transport::plan::{Options, run};
pub use transport::process::{CHILD_ARGUMENT, serve_child, serve_if_asked};
pub use transport::report::Report;
pub use transport::session::{ClientEnd, ClientSession, ServerSession};
pub use wait::WaitKind;
