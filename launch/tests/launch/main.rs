//! Executions that nobody waits for, on a device that executes synchronously only.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

mod asynchronous;
mod deadlines;
mod device;
mod fenced;
mod gated;
