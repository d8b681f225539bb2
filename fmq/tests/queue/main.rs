//! The queue with real memory: between threads and between processes.

#![cfg(not(loom))]

mod checklist;
mod common;
mod hostile;
mod interface;
mod libfmq_peer;
mod properties;
mod security_holes;
mod synchronized;
mod two_processes;
mod wait_set;
mod waking;
