//! Programs that show one thing each; `src/bin/` has them, `tests/` runs them.
//!
//! | program | shows |
//! |---|---|
//! | `smallest_driver SOCKET` | a driver in under forty lines: only what executes, no burst |
//! | `own_executor SOCKET` | a driver that keeps what it imported of each memory between executions |
//! | `own_context SOCKET` | a driver that serves the queues of its bursts itself, with its own type of prepared model |
//! | `event_loop SOCKET` | a client with two bursts on one thread, behind epoll |
//!
//! All three drivers add one to every byte, so that the client can be run with any of them:
//!
//! ```sh
//! cargo run --release -p examples --bin smallest_driver /tmp/example.sock &
//! cargo run --release -p examples --bin event_loop /tmp/example.sock
//! ```
//!
//! They compute nothing that a model asks for. `examples/add/` does: it is the driver of docs/WRITE-A-DRIVER.md, in a crate of its
//! own. So is `examples/extension/`: operations that the CPU driver does not have.
#![forbid(unsafe_code)]

use burst_hal::{
    DataLocation, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Pool, Request,
    RequestArgument, RequestPool,
};

/// Bytes of the model's input, and of its output.
pub const BYTES: u32 = 16;

/// A model of one RELU on `[1, 4]` floats, which these drivers take for something else.
#[must_use]
pub fn model() -> Model {
    let mut builder = ModelBuilder::new();
    let input = builder.input(OperandType::TensorFloat32, &[1, 4]);
    let output = builder.result_of(OperationType::Relu, &[input], OutputSpec::f32(&[1, 4]));
    builder.output(output);
    builder.build().unwrap_or_default()
}

/// A request with the input at the beginning of `memory` and the output behind it.
#[must_use]
pub fn request(memory: &Pool) -> Request {
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: BYTES },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(BYTES)],
        pools: vec![RequestPool::Memory(Pool::clone(memory))],
    }
}
