//! A model made ready to run: every operation looked up, shapes inferred as far as they can be,
//! constants packed or folded, every value's place known.
//!
//! A model must be legal (`plan/legal.rs`). Each of its graphs is planned once (`plan/graphs.rs`),
//! operation by operation (`plan/graphs/builder.rs`).

mod graph_plan;
mod graphs;
mod legal;
#[cfg(test)]
mod tests;

pub(crate) use graph_plan::{Control, GraphPlan, Loop, Place, Step, check_declared};
pub use graph_plan::{MAX_ARENA_BYTES, Plan};
pub(crate) use graphs::{plan, survey};
pub(crate) use legal::check_legal;
