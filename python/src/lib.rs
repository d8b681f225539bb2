//! The native part of the Python package `burst`: connections, models in shared memory, tasks.
//!
//! Python's arrays lie in mappings of Python's own (`memory.rs`); this part makes the memory, hands its descriptor
//! over and never has a reference into what another process can write. Whatever waits lets the interpreter go on
//! (`waiting.rs`).

mod connection;
mod errors;
mod kinds;
mod memory;
mod model;
mod private_driver;
mod running;
mod task;
mod waiting;

/// What `package/burst/*.py` makes a package of.
#[pyo3::pymodule]
mod _burst {
    #[pymodule_export]
    use crate::connection::Connection;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::task::Task;
}
