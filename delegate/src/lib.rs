//! An external delegate for TFLite and LiteRT: `libburst_delegate.so`.
//!
//! The runtime shows its graph; nodes that the importer maps and a device of the framework runs are taken
//! over, partition by partition; all others stay with the runtime, each with a reason.
//!
//! | module | what a reader finds there |
//! |---|---|
//! | `abi` | the C structures of TFLite, and the functions that it calls: the only `unsafe` |
//! | `options`, `target` | what the application asks for, and which devices that means |
//! | `graph`, `builtin`, `piece` | what the runtime shows, as values, and nodes of it as a graph for the importer |
//! | `select` | which nodes are taken over |
//! | `compiled` | a partition that is ready to run, with its memory |
//! | `explain` | what became of each node, for a person |
//!
//! Nothing happens when the library is loaded.
#![deny(unsafe_code)]

mod abi;
mod builtin;
mod compiled;
mod error;
mod explain;
mod graph;
mod options;
mod piece;
mod select;
mod target;
