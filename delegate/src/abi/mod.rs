//! The C interface of TFLite: its structures, the functions that it calls, and those of it that are called.
//!
//! 1. Pointers come from the runtime, which is trusted as any caller of a C function is. What it shows is copied
//!    out at once; no reference to a structure of it is kept across a call.
//! 2. Structures of newer runtimes may be longer than ours, never shorter: fields are only added at their ends.
//!    Ours, which the runtime reads, are longer than any and full of zeros.
//! 3. No panic leaves: `guard.rs` makes an error of it.
#![allow(unsafe_code, reason = "structures and functions of C")]

mod guard;
mod host;
mod kernel;
mod layout;
mod plugin;
mod raw;
mod state;
#[cfg(test)]
mod tests;
