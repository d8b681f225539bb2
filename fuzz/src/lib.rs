//! Hostile bytes for everything that another process can send us.
//!
//! A target is an ordinary function over bytes. `fuzz/run` gives it to libFuzzer, which looks for
//! bytes that reach new code; `cargo test` gives it the kept seeds and a fixed number of their
//! mutations (`tests/tests/service/fuzz_seeds.rs`); `fuzz-tool replay` gives it single files.
//!
//! What a target may do with any bytes: return. What it must never do: panic, hang, touch memory
//! outside of a mapping, keep a descriptor, accept what an independent look at the same bytes
//! says is wrong. Each module says which of these it looks at, and how.
//!
//! | module | bytes are |
//! |---|---|
//! | [`queue_descriptor`] | a queue's description with the memories behind it |
//! | [`queue_synchronized`], [`queue_unsynchronized`] | a script of what a hostile peer writes into every shared word, mixed with our own calls |
//! | [`event_flag`] | the same for the event word alone, and for a set of queues |
//! | [`control_message`], [`socket`] | messages, and packets with descriptors, on the control socket |
//! | [`request_packet`], [`result_packet`], [`datums`] | what lies in a burst's two queues |
//! | [`memory_pool`] | descriptors of every kind, and what their owner does to them later |
//! | [`tflite`] | a `.tflite` file |
//! | [`trace`] | what a service writes into the memory for spans that a client lends it |
//! | [`compilation`] | a model's structure in a file that a compilation is kept in |
//! | [`hal_model`] | a model as a client sends it, and a request for it |
//! | [`device`] | a model and requests for the CPU device |
//! | [`changed_model`], [`tflite_device`], [`cache_files`], [`extension`] | models of other origins, prepared and executed too |
//! | [`calls`] | calls in any order to a service, over a real socket |
//! | [`c_api`] | calls of the C library in any order |

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a target's way to report a finding is to panic; inputs are cut to size"
)]

pub mod c_api;
pub mod cache_files;
pub mod calls;
pub mod changed_model;
pub mod compilation;
pub mod control_message;
pub mod datums;
pub mod device;
mod ends;
pub mod event_flag;
pub mod extension;
mod frames;
pub mod hal_model;
mod input;
mod judged;
mod leaks;
mod meant;
pub mod memory_pool;
mod mutate;
pub mod queue_descriptor;
pub mod queue_synchronized;
pub mod queue_unsynchronized;
pub mod request_packet;
pub mod result_packet;
pub mod socket;
pub mod tflite;
pub mod tflite_device;
pub mod trace;
mod words;

pub use input::{Input, Script};
pub use leaks::look_for_leaks;
pub use mutate::Mutator;

/// Something that takes bytes from another process.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: the argument of `fuzz/run`, and its folder of seeds.
    pub name: &'static str,
    /// What its bytes are, in a few words.
    pub about: &'static str,
    /// Takes any bytes. True where they got past the first checks: a seed does, noise does not.
    pub run: fn(&[u8]) -> bool,
    /// Makes the kept seeds.
    pub seeds: fn() -> Vec<Seed>,
}

/// An input to begin with, by the name of its file.
pub type Seed = (String, Vec<u8>);

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "c_api",
        about: "functions of the C library in any order",
        run: c_api::run,
        seeds: c_api::seeds,
    },
    Target {
        name: "cache_files",
        about: "files of a compilation, changed, and the model that they give",
        run: cache_files::run,
        seeds: cache_files::seeds,
    },
    Target {
        name: "calls",
        about: "calls of a client in any order, over a real socket",
        run: calls::run,
        seeds: calls::seeds,
    },
    Target {
        name: "changed_model",
        about: "a model as a client sends it, changed, prepared and executed",
        run: changed_model::run,
        seeds: changed_model::seeds,
    },
    Target {
        name: "compilation",
        about: "a model's structure in a file that a compilation is kept in",
        run: compilation::run,
        seeds: compilation::seeds,
    },
    Target {
        name: "control_message",
        about: "greetings, calls, replies and callbacks of the control socket",
        run: control_message::run,
        seeds: control_message::seeds,
    },
    Target {
        name: "datums",
        about: "requests and results of any content, through datums and back",
        run: datums::run,
        seeds: datums::seeds,
    },
    Target {
        name: "device",
        about: "a model and requests for the CPU device, by what holds of any device",
        run: device::run,
        seeds: device::seeds,
    },
    Target {
        name: "event_flag",
        about: "an event word, and a set of queues, that a peer changes at will",
        run: event_flag::run,
        seeds: event_flag::seeds,
    },
    Target {
        name: "extension",
        about: "a model with types and operations of an extension",
        run: extension::run,
        seeds: extension::seeds,
    },
    Target {
        name: "hal_model",
        about: "a model as a client sends it, and a request for it",
        run: hal_model::run,
        seeds: hal_model::seeds,
    },
    Target {
        name: "memory_pool",
        about: "descriptors of every kind as memory, and what their owner does later",
        run: memory_pool::run,
        seeds: memory_pool::seeds,
    },
    Target {
        name: "queue_descriptor",
        about: "a queue's description with the memories behind it",
        run: queue_descriptor::run,
        seeds: queue_descriptor::seeds,
    },
    Target {
        name: "queue_synchronized",
        about: "either end of a queue whose every shared word a peer changes at will",
        run: queue_synchronized::run,
        seeds: queue_synchronized::seeds,
    },
    Target {
        name: "queue_unsynchronized",
        about: "the same for the flavour with many readers",
        run: queue_unsynchronized::run,
        seeds: queue_unsynchronized::seeds,
    },
    Target {
        name: "request_packet",
        about: "a request packet as a service receives it",
        run: request_packet::run,
        seeds: request_packet::seeds,
    },
    Target {
        name: "result_packet",
        about: "a result packet as a client receives it",
        run: result_packet::run,
        seeds: result_packet::seeds,
    },
    Target {
        name: "socket",
        about: "packets with descriptors on the control socket",
        run: socket::run,
        seeds: socket::seeds,
    },
    Target { name: "tflite", about: "a .tflite file", run: tflite::run, seeds: tflite::seeds },
    Target {
        name: "tflite_device",
        about: "a .tflite file, imported, prepared and executed",
        run: tflite_device::run,
        seeds: tflite_device::seeds,
    },
    Target {
        name: "trace",
        about: "memory for spans that a service writes as it likes",
        run: trace::run,
        seeds: trace::seeds,
    },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// A seed whose name is a plain text.
pub(crate) fn seed(name: &str, bytes: impl Into<Vec<u8>>) -> Seed {
    (name.to_owned(), bytes.into())
}
