//! Executions that nobody waits for, in the words of the protocol: asynchronous and fenced ones.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

mod asynchronous;
mod client;
mod device;
mod endings;
mod fenced;
mod hostile;
mod sharing;
