//! The client in C: connect, load a `.tflite`, write an input, run, read an output. `include/burst.h` is its interface,
//! `examples/frame.c` a program.
//!
//! `exports.rs` is the edge, and the only file with `unsafe`: it follows the pointers that a caller gives, for as long as
//! the call lasts. Everything else is safe. A handle that a caller holds is a number that was never an address
//! (`handles.rs`): it is looked up, never followed.

mod client;
mod error;
mod exports;
mod handles;
