//! NNAPI's C functions: the edge between callers that promise in words and the safe framework.
//!
//! The only place of this crate with `unsafe`, and little of it:
//!
//! | file | what needs it |
//! |---|---|
//! | `arguments.rs` | pointers of callers are followed, for as long as the call lasts |
//! | `host_memory.rs` | buffers of executions are copied, until these have completed |
//! | `exports.rs` | names for the linker |
//! | `abi.rs`, `handles.rs`, `hardware_buffer.rs` | a promise each: any bits are a value of this type |
//! | `caller.rs`, `caller/raw.rs` | the exported functions are called with pointers to its own memory |
//! | `client/library.rs`, `client/objects.rs` | functions of a library that was loaded by name are called |
//!
//! Everything else here is safe. A handle that a caller holds is a number that was never an address
//! (`handles.rs`): it is looked up, never followed. `guard.rs` keeps panics and forked children out.
//! Facts about the functions: docs/NDK.md.

mod abi;
mod arguments;
mod burst;
pub mod caller;
pub mod client;
mod compilation;
mod devices;
mod event;
mod execution;
mod exports;
mod guard;
mod handles;
mod hardware_buffer;
mod host_memory;
mod memory;
mod memory_desc;
mod model;
