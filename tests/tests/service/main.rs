//! A client and a service over every path, in this process and in two.

#[path = "../burst_support/mod.rs"]
mod burst_support;
#[path = "../burst_support/peer.rs"]
mod peer;
#[path = "../service_support/mod.rs"]
mod service_support;

mod accounts;
mod burst_end_to_end;
mod burst_hostile;
mod burst_memory;
mod burst_packets;
mod burst_refusals;
mod burst_state;
mod bystanders;
mod caching;
mod called_off;
mod cancelled;
mod conformance;
mod contexts;
mod deadlines;
mod descriptor_tricks;
mod differences;
mod executions;
mod framework;
mod framework_deaths;
mod fuzz_seeds;
mod golden;
mod hostile_buffers;
mod hung_services;
mod last_word;
mod launches;
mod memory_domains;
mod older_service;
mod pipelining;
mod protocol;
mod protocol_client;
mod reconnect;
mod reconnect_launches;
mod retry;
mod run_tokens;
mod service_idle;
mod service_limits;
mod tracing;
mod unread;
mod unsent;
