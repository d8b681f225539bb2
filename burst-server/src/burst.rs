//! A burst: two queues of a client, and the burst's *server*, which executes and answers its requests.
//!
//! `start.rs` gives a new burst its server: a thread of this crate, whose loop is `worker.rs`, or a
//! context that the driver brings (`contexts.rs`). The session keeps a [`BurstHandle`], through which it ends the
//! burst; the burst knows its client through a [`ClientLink`](crate::client::ClientLink).

mod contexts;
mod end_reason;
mod ender;
mod ending;
mod executor;
mod framing;
mod handle;
mod idle_monitor;
mod memories;
mod memory_cache;
mod params;
mod queues;
mod spin_shares;
mod start;
mod waiting;
mod wake_coalescer;
mod worker;

pub use contexts::{BurstContext, BurstContexts, BurstSetup, BurstTurn, BurstTurns, RequestCheck};
pub use ender::BurstEnder;
pub(crate) use handle::{BuffersInSlots, BurstHandle};
pub use memories::{BurstMemories, KeptBuffers};
pub(crate) use memory_cache::BUFFER_SLOT_BYTES;
pub(crate) use params::BurstParams;
pub(crate) use spin_shares::SpinShares;
pub(crate) use start::{BurstStarter, NewBurst};
