//! What the functional tests of the HAL demand of any device, beyond the vectors: checks that are given the
//! device, in this process or behind a socket.

pub mod caching;
