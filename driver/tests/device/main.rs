//! The CPU device from the outside.

mod argument_threads;
mod buffers;
mod caching;
mod control_flow;
mod execution;
mod joining;
mod joining_channels;
mod legality;
mod paying;
mod preferences;
mod profile;
mod reference;
mod statuses;
mod tracing;
mod turns;
mod variants;
mod working_memory;
mod zero_sized;
