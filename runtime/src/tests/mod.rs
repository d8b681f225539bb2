//! What an application sees of the framework, call by call.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

mod buffers;
mod caching;
mod compilation_rules;
mod control;
mod devices;
mod divided;
mod every_fault;
mod execution_rules;
mod fallback;
mod fences;
mod memory_rules;
mod model_rules;
mod scripted;
mod support;
mod switched;
