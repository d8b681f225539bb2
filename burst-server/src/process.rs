//! The process that serves: its sockets, its supervisor, and what the system lets it do.

mod descriptors;
mod file_size;
mod folder_lock;
mod listen;
mod performance;
mod sandbox;
mod state;
pub mod systemd;

pub use descriptors::raise_descriptor_limit;
pub use file_size::block_file_size_signal;
pub(crate) use listen::{Accept, RECOVERY};
pub use listen::{Listener, Stop, Stopper};
pub(crate) use performance::Hold;
pub use performance::{Lever, Performance, PerformancePaths};
pub use sandbox::{LayerState, Sandbox, SandboxError, SandboxReport, can_open_files};
pub use state::{STATE_KEY_BYTES, StateError, StateFolder};
