//! The CPU device from the outside.

mod control_flow;
mod execution;
mod legality;
mod profile;
mod zero_sized;
