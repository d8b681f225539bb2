//! One engine.

pub mod quiet;
pub mod times;
pub mod verdict;
