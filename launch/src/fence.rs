//! Fences: what a descriptor is as one, how far it is, and one of our own.
//!
//! Nothing here reads from a fence: any number may wait for it.

mod kind;
mod own;
mod state;

pub use burst_hal::FenceState;
pub use kind::CheckedFence;
pub use own::FenceSignal;
pub use state::FenceKind;
