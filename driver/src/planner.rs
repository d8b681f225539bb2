//! Makes a plan of a model.
//!
//! A model must be legal (`planner/legal.rs`). Each of its graphs is planned once
//! (`planner/graphs.rs`), operation by operation (`planner/graphs/builder.rs`).

mod graphs;
mod legal;
#[cfg(test)]
mod tests;

pub(crate) use graphs::{plan, survey};
pub(crate) use legal::check_legal;
