//! The CPU device from the outside.

mod buffers;
mod control_flow;
mod execution;
mod legality;
mod paying;
mod profile;
mod zero_sized;
