//! The client in C: connect, load a `.tflite`, write an input, run, read an output; or load a task, and have it look at
//! pictures and listen to sound. `include/burst.h` is its interface, `examples/frame.c` and `examples/classify.c` are
//! programs.
//!
//! `exports.rs` and `exports/` are the edge, and the only place with `unsafe`: it follows the pointers that a caller gives, for as long as
//! the call lasts. Everything else is safe. A handle that a caller holds is a number that was never an address
//! (`handles.rs`): it is looked up, never followed.

mod client;
mod error;
mod exports;
mod handles;
mod task;
