//! The client end: connect to a driver service, prepare models, run them.
//!
//! ```no_run
//! # fn frame() -> Vec<u8> { Vec::new() }
//! # fn model() -> burst_hal::Model { burst_hal::Model::default() }
//! use burst_client::{Client, Deadline, StreamOptions};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), burst_client::ClientError> {
//! let client = Client::connect("/run/user/1000/burst.sock")?;
//! let device = client.device("cpu")?;
//! let mut stream = device.stream(&model(), &StreamOptions::default())?;
//! stream.input(0).copy_from_slice(&frame());
//! stream.run(Deadline::after(Duration::from_secs(1)))?;
//! println!("{:?}", stream.output(0)?);
//! # Ok(())
//! # }
//! ```
//! [`Stream`] is the short way. Below it are [`RemoteDevice`] and [`RemotePreparedModel`], which
//! are a [`burst_hal::Device`] and a [`burst_hal::PreparedModel`] like any other, and [`Burst`],
//! which reaches the driver through shared memory: no system call while both sides are awake.
//!
//! Executions that the caller does not wait for are objects: [`RemotePreparedModel::start`] gives an
//! [`Execution`], [`RemotePreparedModel::start_fenced`] one with a fence.
//!
//! One thread per connection, the watcher, owns the reading of its socket. It hands replies to
//! those who called, answers the service's questions for memories, and when the service dies it
//! ends every wait at once with [`ClientError::PeerDied`].
#![forbid(unsafe_code)]

mod backoff;
mod buffer;
mod burst;
mod client;
mod connect;
mod connection;
mod device;
mod error;
mod model_handle;
mod prepared;
mod reconnect;
mod retry;
mod shm_memory;
mod stream;
mod trace;
mod waiting;

pub use backoff::Backoff;
pub use buffer::RemoteBuffer;
pub use burst::{Burst, BurstOptions, PAGE_DATUMS, Ticket};
pub use burst_hal::Route;
pub use burst_hal::session::StateBinding;
pub use burst_launch::Execution;
pub use burst_wire::control::Versions;
pub use client::{Client, ServiceInfo};
pub use connect::{ConnectOptions, default_socket_path};
pub use device::RemoteDevice;
pub use error::ClientError;
pub use fmq::{Deadline, Wait};
pub use model_handle::{Executed, RemoteFenced};
pub use prepared::RemotePreparedModel;
pub use reconnect::{
    Outages, ReconnectingBurst, ReconnectingDevice, ReconnectingModel, ReconnectingStream,
};
pub use retry::RetryPolicy;
pub use shm_memory::{SharedAllocator, ShmMemory};
pub use stream::{Stream, StreamOptions};
pub use trace::{TraceBuffer, TraceCounts};
pub use waiting::{ANSWER_GRACE, answer_by, deadline_at};
