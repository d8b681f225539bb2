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
//! When a client goes, whatever it had goes with it, and nobody else notices.
#![forbid(unsafe_code)]

mod burst;
mod callbacks;
mod calls;
mod error;
mod limits;
mod listen;
mod memory;
mod memory_cache;
mod model;
mod serve;
mod service;
mod session;

pub use error::ServerError;
pub use limits::Limits;
pub use listen::{Listener, Stop, Stopper};
pub use service::{Access, Service, ServiceOptions, serve};
