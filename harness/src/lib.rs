//! Round trips between two real processes, always as a ratio to a floor of the same seconds; and
//! whole models over every path to a driver ([`model`]).
//!
//! A bare number says nothing on a shared machine. So a measurement here is a *triple*: a floor
//! (two processes that hand a word to and fro, nothing else), the peer, the floor again. Peers take
//! turns; triples whose two floors disagree, or whose cores were busy with somebody else's threads, are
//! thrown away and repeated ([`rounds`]).
//!
//! ```text
//!                 coordinator (this process)
//!          stdin, SEQPACKET /            \ stdin, SEQPACKET
//!                          /              \
//!        job, link -->  client            server  <-- job, link
//!                          \______________/
//!                            link, SEQPACKET: descriptors cross here
//! ```
//!
//! Both ends are fresh processes: the coordinator starts its own program again with
//! [`CHILD_ARGUMENT`], and the program gives control to [`serve_if_asked`] before it looks at its
//! arguments. Each end reports what it used of the CPU; under `strace -c` the same ends count their
//! system calls.
//!
//! | file | what |
//! |---|---|
//! | [`case`] | what is measured: sizes, waits, placements |
//! | [`work`] | the work both ends do and check, the same for every peer |
//! | [`session`] | the loops of client and server around a peer's own calls |
//! | [`peers`] | the peers that need no other crate |
//! | [`process`] | starting the two ends and collecting what they say |
//! | [`sample`] | times to quantiles |
//! | [`quiet`] | whether a core is ours alone |
//! | [`rounds`] | which triples count; medians |
//! | [`plan`] | the rows of a run, in turns |
//! | `lane` | one row: its rounds, and which of them count |
//! | [`report`], [`checks`] | table and JSON, and what must be reached |
//! | [`html`] | the page with drawings |
//! | [`model`] | whole models over every path to a driver, in turns |
//! | [`command`] | the command line of it, for every program that has one |

#![forbid(unsafe_code)]

pub mod engine;
pub mod error;
pub mod machine;
pub mod model;
mod progress;
pub mod report;
pub mod transport;

pub use error::HarnessError;
pub use progress::Progress;
pub use transport::case::{Case, Job, Placement, Role, WaitKind};
pub use transport::link::Link;
pub use transport::peers::{Peer, own_peers};
pub use transport::plan::{Options, run};
pub use transport::process::{CHILD_ARGUMENT, serve_child, serve_if_asked};
pub use transport::report::Report;
pub use transport::session::{ClientEnd, ClientSession, ServerSession};
