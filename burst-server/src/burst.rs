//! A burst: two queues of a client and whoever serves them.

pub(crate) mod contexts;
pub(crate) mod executor;
pub(crate) mod idle_monitor;
pub(crate) mod memories;
pub(crate) mod memory_cache;
pub(crate) mod start;
pub(crate) mod wake_coalescer;
pub(crate) mod worker;
