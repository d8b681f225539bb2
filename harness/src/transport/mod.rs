//! Round trips between two real processes, always as a ratio to a floor of the same seconds.
//!
//! A bare number says nothing on a shared machine. So a round here is a *triple*: a floor (two
//! processes that hand a word to and fro, nothing else), the peer, the floor again. Which rounds count
//! is the [`engine`](crate::engine)'s to say.
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
//! [`CHILD_ARGUMENT`](process::CHILD_ARGUMENT), and the program gives control to
//! [`serve_if_asked`](process::serve_if_asked) before it reads its arguments. Each end reports what it
//! used of the CPU; under `strace -c` the same ends count their system calls.
//!
//! | file | what |
//! |---|---|
//! | [`case`] | what is measured: sizes, waits, CPUs |
//! | [`work`] | the work both ends do and check, the same for every peer |
//! | [`session`], [`sample`] | the loops of client and server around a peer's own calls; their times |
//! | [`peers`], [`names`] | the peers that need no other crate |
//! | [`link`], [`process`] | starting the two ends and collecting their outcomes |
//! | `subject.rs` | a peer in one case as a subject of the engine, and its floor |
//! | [`plan`] | the subjects of a run |
//! | [`mode`] | rounds by how long a cache line takes between the two CPUs |
//! | `row.rs`, [`checks`], [`report`] | what was found; what must be reached; text and page |
//! | [`command`] | the command line of it, for every program that has one |

pub mod case;
pub mod checks;
pub mod command;
pub mod link;
pub mod mode;
pub mod names;
pub mod peers;
pub mod plan;
pub mod process;
pub mod report;
mod row;
pub mod sample;
pub mod session;
mod subject;
pub mod work;

pub use row::{More, Row};
pub use subject::{PeerInCase, RoundTrips};
