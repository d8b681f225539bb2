//! The service end: offers any [`burst_hal::Device`] to other processes, over a socket for set-up
//! and over bursts for the executions themselves.
//!
//! ```text
//! Listener ── Service ─┬─ Session (one per client: its threads read the socket)
//!                      │     ├─ prepared models, shared memories
//!                      │     └─ bursts: one thread each, waiting on its request queue
//!                      └─ Session …
//! ```
//! A request's way through here: `serve.rs` (woken, copies the packet out, decodes, checks),
//! `memory_cache.rs` (slots to mapped pools), the device, back in `serve.rs` (result into the
//! queue). Which device it is nobody here knows.
//!
//! Around that: [`Limits`] for each client and what they answer, [`Sandbox`] that the process enters
//! before its threads start, [`Metrics`] on an admin socket ([`serve_admin`]), [`systemd`] for sockets
//! and readiness, [`Performance`] for the system's high-performance state.
//!
//! When a client goes, whatever it had goes with it, and nobody else notices.
#![forbid(unsafe_code)]

mod admission;
mod burst;
mod client;
mod error;
mod execution;
mod metrics;
mod options;
mod panics;
mod pools;
mod prepared;
mod process;
mod service;
mod session;
mod threads;

pub use admission::{Access, Limit, Limits};
pub use burst::{BurstContext, BurstContexts, BurstMemories, BurstSetup, RequestCheck};
pub use error::ServerError;
pub use metrics::{BurstCounts, GivenUp, Metrics, serve_admin};
pub use options::ServiceOptions;
pub use process::systemd;
pub use process::{
    LayerState, Lever, Listener, Performance, PerformancePaths, Sandbox, SandboxError,
    SandboxReport, Stop, Stopper, can_open_files, raise_descriptor_limit,
};
pub use service::{Service, serve};
