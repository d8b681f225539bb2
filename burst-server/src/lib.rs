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

mod admin;
mod burst;
mod callbacks;
mod calls;
mod context;
mod counts;
mod descriptors;
mod error;
mod executor;
mod life;
mod limits;
mod listen;
mod memories;
mod memory;
mod memory_cache;
mod metrics;
mod model;
mod performance;
mod sandbox;
mod serve;
mod service;
mod session;
pub mod systemd;
mod users;
mod wakes;

pub use admin::serve_admin;
pub use context::{BurstContext, BurstContexts, BurstSetup, RequestCheck};
pub use counts::BurstCounts;
pub use descriptors::raise_descriptor_limit;
pub use error::ServerError;
pub use limits::{Limit, Limits};
pub use listen::{Listener, Stop, Stopper};
pub use memories::BurstMemories;
pub use metrics::{GivenUp, Metrics};
pub use performance::{Lever, Performance, PerformancePaths};
pub use sandbox::{LayerState, Sandbox, SandboxError, SandboxReport, can_open_files};
pub use service::{Access, Service, ServiceOptions, serve};
