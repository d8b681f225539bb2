//! The service end: offers any [`burst_hal::Device`] to other processes, over a socket for set-up
//! and over bursts for the executions themselves. No code here knows which device it is.
//!
//! | room | what a reader finds there |
//! |---|---|
//! | `process` | the process: sockets, systemd, [`Sandbox`], [`Performance`], limit of descriptors |
//! | `admission` | who is let in, and with how much: [`Access`], users, [`Limits`], budgets |
//! | `client` | a client as its bursts see it: what they send it, ask it for and receive |
//! | `session` | a client's session: greeting, readers of the socket, calls, replies |
//! | `burst` | a burst: its thread, idle time, memories, executor, or a [`BurstContext`] of others |
//! | `launches` | executions that nobody waits for: asynchronous and fenced ones |
//! | `scheduler` | who computes when: run tokens, shared fairly between users |
//! | `metrics` | what is counted, and the admin socket that serves it ([`serve_admin`]) |
//! | `trace` | spans of what is done for a client, in a memory of its own |
//!
//! Rooms do not use each other in circles. `session` uses `burst` and `launches`, all three `client`, all of them
//! `admission` and `metrics`, which reports on `process`. [`Service`] puts them together: it accepts
//! connections, and starts a session for each.
//!
//! A request's way: `burst/idle_monitor.rs` waits for it, `burst/worker.rs` copies the packet out and
//! decodes it, `burst/memories.rs` and `burst/memory_cache.rs` find its mapped pools, `prepared.rs`
//! checks it, `burst/executor.rs` runs it on the device, `execution.rs` completes the result, and
//! `burst/worker.rs` puts that into the result queue; `burst/wake_coalescer.rs` says when the client is
//! woken.
//!
//! When a client disconnects, the service releases everything that it had; other clients are not
//! affected.
#![forbid(unsafe_code)]

mod admission;
mod buffers;
mod burst;
mod client;
mod error;
mod execution;
mod heap;
mod launches;
mod lines;
mod metrics;
mod options;
mod panics;
mod pools;
mod prepared;
mod process;
mod rate;
mod running;
mod scheduler;
mod service;
mod session;
mod threads;
mod trace;

pub use admission::{Access, Limit, Limits, Machine};
pub use burst::{
    BurstContext, BurstContexts, BurstEnder, BurstMemories, BurstSetup, BurstTurn, BurstTurns,
    KeptBuffers, RequestCheck,
};
pub use error::ServerError;
pub use metrics::{BurstCounts, GivenUp, Metrics, serve_admin};
pub use options::ServiceOptions;
pub use process::systemd;
pub use process::{
    LayerState, Lever, Listener, Performance, PerformancePaths, STATE_KEY_BYTES, Sandbox,
    SandboxError, SandboxReport, StateError, StateFolder, Stop, Stopper, block_file_size_signal,
    can_open_files, raise_descriptor_limit,
};
pub use service::{Service, serve};
