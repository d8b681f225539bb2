//! LiteRT in a Python process of its own (`litert.py`), asked over two pipes: as a subject beside our paths, and as
//! what our answers are compared with.
//!
//! | file | what |
//! |---|---|
//! | `litert.py` | the process: models that it has loaded, inputs in, outputs out |
//! | `python.rs` | our end of its pipes |
//! | `subject.rs` | a model in it, as a subject of the engine |

mod python;
mod subject;

pub use python::{Kernels, Load, Package, Python};
pub use subject::LiteRt;

/// The name of its path.
pub const PATH: &str = "litert";
