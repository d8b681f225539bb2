//! What is measured: each file is one way for two processes to exchange requests and answers.

mod burst;
mod eventfd;
mod frame;
mod futex;
mod libfmq;
mod line;
mod mailbox;
mod ours;
mod pipe;
mod seqpacket;

use crate::error::HarnessError;
use crate::transport::case::Case;
use crate::transport::session::{ClientSession, Measured, Served, ServerSession};

pub use burst::Burst;
pub use eventfd::EventfdFloor;
pub use frame::{FrameInPool, FrameOurs, FramePlain, FrameStream};
pub use futex::FutexFloor;
pub use libfmq::Libfmq;
pub use line::{LineFloor, TwoLines};
pub use mailbox::Mailbox;
pub use ours::Ours;
pub use pipe::Pipe;
pub use seqpacket::Seqpacket;

/// One way for two processes to exchange requests and answers.
///
/// Each end runs in a process of its own; it sets up over the session's link, then hands its calls
/// to the session, which counts, times and checks.
pub trait Peer: Sync {
    /// The name in tables and JSON.
    fn name(&self) -> &'static str;

    /// Whether it can be measured so. What cannot is left out of the table, not counted as slow.
    fn supports(&self, case: &Case) -> bool;

    /// Bytes of its request where that is not the case's choice (floors).
    fn fixed_request_bytes(&self) -> Option<usize> {
        None
    }

    /// The client's whole life.
    ///
    /// # Errors
    /// Whatever stops it.
    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError>;

    /// The server's whole life.
    ///
    /// # Errors
    /// Whatever stops it.
    fn server(&self, session: ServerSession<'_>) -> Result<Served, HarnessError>;
}

/// The peers that need no crate but ours. The floors come first.
#[must_use]
pub fn own_peers() -> Vec<&'static dyn Peer> {
    vec![
        &LineFloor,
        &TwoLines,
        &Mailbox,
        &FutexFloor,
        &EventfdFloor,
        &Ours,
        &Burst::OURS,
        &Burst::OF_HAL_1_2,
        &Libfmq,
        &Pipe,
        &Seqpacket,
        &FramePlain,
        &FrameOurs,
        &FrameInPool,
        &FrameStream,
    ]
}
